/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe: tries out whatever PMI server it runs under. */
#include "tools/probe.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x-build.h"
#include "tools/probe_mpi.h"

static void vsay(FILE *to, const char *prefix, const char *fmt, va_list ap)
{
	char line[4096];

	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(to, "%s%s\n", prefix, line); /* one write: lines stay whole */
}

bool probe_fail(const struct probe *p, const char *fmt, ...)
{
	char prefix[48];
	va_list ap;

	snprintf(prefix, sizeof(prefix), "pmi2x-probe: rank %d: ", p->rank);
	va_start(ap, fmt);
	vsay(stderr, prefix, fmt, ap);
	va_end(ap);
	return false;
}

void probe_say(const struct probe *p, const char *fmt, ...)
{
	va_list ap;

	if (p->rank != 0)
		return;
	va_start(ap, fmt);
	vsay(stdout, "", fmt, ap);
	va_end(ap);
}

static void usage(FILE *to)
{
	fputs("Usage: srun --mpi=TYPE pmi2x-probe [--pmi1] [OPERATION...]\n"
	      "       pmi2x-probe --nodes LIST\n"
	      "       pmi2x-probe --mpi PROGRAM [--run [ARGUMENT...]]\n"
	      "Prints the properties of the step's PMI server, or runs operations\n"
	      "in order and checks their results.\n\n"
	      "Options:\n"
	      "  -1, --pmi1        start with PMI_Init instead of PMI2_Init\n"
	      "  -n, --nodes LIST  outside a step: list the nodes without plugin\n"
	      "                    mpi/pmi2x, and those with another build of it\n"
	      "  -m, --mpi PROGRAM print which PMI the program will use, without\n"
	      "                    running it\n"
	      "  -r, --run         also run the program on two ranks: with srun in an\n"
	      "                    allocation, else with pmi2x's own server\n"
	      "  -h, --help        print this and exit\n"
	      "  -V, --version     print the version and exit\n\n"
	      "Operations (%r in a KEY, NAME or VALUE becomes the rank):\n",
	      to);
	probe_list_operations(to);
	fputs("\nExit status: 0 success, 1 a check failed or nodes differ, 2 wrong\n"
	      "usage, 3 PMI could not be started; with --mpi: 4 only PMIx, 5 no PMI,\n"
	      "6 unknown without --run.\n", to);
}

static bool start_pmi1(struct probe *p)
{
	int spawned;

	if (PMI_Init(&spawned) || PMI_Get_rank(&p->rank) ||
	    PMI_Get_size(&p->size) || PMI_Get_appnum(&p->appnum))
		return false;
	p->spawned = spawned != 0;
	return true;
}

static bool start_pmi2(struct probe *p)
{
	int spawned;

	if (PMI2_Init(&spawned, &p->size, &p->rank, &p->appnum))
		return false;
	p->spawned = spawned != 0;
	return true;
}

static int run_operations(const struct probe *p, char **words, int count)
{
	bool ok = true;
	int used = 0;

	for (int i = 0; i < count; i += used) {
		if (!probe_operation(p, words + i, count - i, &used))
			ok = false;
		if (used == 0)
			return PROBE_USAGE;
	}
	return ok ? PROBE_OK : PROBE_FAILED;
}

static int run(bool pmi1, char **words, int count)
{
	struct probe p = { .rank = -1 };
	int status;

	if (!(pmi1 ? start_pmi1(&p) : start_pmi2(&p))) {
		fputs("pmi2x-probe: PMI could not be started\n", stderr);
		return PROBE_NO_PMI;
	}
	if (count > 0)
		status = run_operations(&p, words, count);
	else
		status = probe_show(&p) ? PROBE_OK : PROBE_FAILED;
	if (PMI2_Finalize() && status == PROBE_OK) {
		probe_fail(&p, "finalize failed");
		status = PROBE_FAILED;
	}
	return status;
}

/* Options other than operations. */
struct wanted {
	const char *program; /* of --mpi */
	bool run;
	bool pmi1;
};

static int look_and_run(const struct wanted *w, char **argv)
{
	int status = probe_mpi(w->program);

	if (!w->run || status == PROBE_FAILED)
		return status;
	*--argv = (char *)w->program; /* the word before is an option */
	return probe_run(argv);
}

static int carry_out(const struct wanted *w, char **argv, int count)
{
	if (w->program && (w->run || !count))
		return look_and_run(w, argv);
	if (!w->program && !w->run)
		return run(w->pmi1, argv, count);
	usage(stderr);
	return PROBE_USAGE;
}

#define OPTION_WITNESS 256

static const struct option options[] = {
	{ "pmi1", no_argument, NULL, '1' },
	{ "nodes", required_argument, NULL, 'n' },
	{ "mpi", required_argument, NULL, 'm' },
	{ "run", no_argument, NULL, 'r' },
	{ "witness", no_argument, NULL, OPTION_WITNESS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	struct wanted w = { NULL, false, false };
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0); /* an abort would lose the rest */
	while ((c = getopt_long(argc, argv, "+1n:m:rhV", options, NULL)) != -1) {
		switch (c) {
		case '1':
			w.pmi1 = true;
			break;
		case 'm':
			w.program = optarg;
			break;
		case 'r':
			w.run = true;
			break;
		case 'n':
			return probe_nodes(optarg);
		case OPTION_WITNESS:
			return probe_witness(argv + optind);
		case 'h':
			usage(stdout);
			return PROBE_OK;
		case 'V':
			puts("pmi2x-probe " PMI2X_BUILD);
			return PROBE_OK;
		default:
			usage(stderr);
			return PROBE_USAGE;
		}
	}
	return carry_out(&w, argv + optind, argc - optind);
}
