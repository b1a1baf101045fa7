/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI no-op of pmi2x bench launch: PMI init and finalize, and nothing else. Rank
 * 0 says how many ranks there were, since a client without a server is alone.
 */
#include "bench_pmi.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "pmi2x-build.h"

static void usage(FILE *to)
{
	fputs("usage: srun --mpi=TYPE pmi2x-noop [--library=LIBRARY] [--hold]\n\n"
	      "Run by pmi2x-bench-launch(1). PMI init and PMI finalize with the client\n"
	      "LIBRARY; \"pmi1\" is PMI-1, built in. Rank 0 prints the number of\n"
	      "ranks.\n\n"
	      "  --hold  between the two every rank says \"held\" and waits for\n"
	      "          the end of its standard input\n", to);
}

/* Returns -1 to go on, otherwise the exit status. */
static int parse(int argc, char **argv, const char **library, bool *hold)
{
	static const struct option names[] = {
		{ "library", required_argument, NULL, 'l' },
		{ "hold", no_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'l': *library = optarg; break;
		case 'o': *hold = true; break;
		case 'h': usage(stdout); return 0;
		case 'V': puts("pmi2x-noop " PMI2X_BUILD); return 0;
		default: usage(stderr); return 2;
		}
	}
	if (optind == argc)
		return -1;
	usage(stderr);
	return 2;
}

static void wait_for_end_of_input(void)
{
	char ignored[64];

	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, ignored, sizeof(ignored)) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *library = "libpmi2x.so.0";
	int spawned, size, rank, appnum, status;
	struct bench_pmi pmi;
	bool hold = false;

	status = parse(argc, argv, &library, &hold);
	if (status >= 0)
		return status;
	if (strcmp(library, "pmi1") == 0)
		bench_pmi1(&pmi);
	else if (!bench_pmi_load(&pmi, library))
		return 2;
	if (pmi.init(&spawned, &size, &rank, &appnum) != PMI2_SUCCESS) {
		fputs("pmi2x-noop: PMI init failed\n", stderr);
		return 1;
	}
	if (hold)
		wait_for_end_of_input();
	if (rank == 0)
		printf("noop ranks=%d\n", size);
	return pmi.finalize() == PMI2_SUCCESS ? 0 : 1;
}
