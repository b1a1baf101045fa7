/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line and the frame of a rank of pmi2x-bench; see bench_rank.h. */
#include "bench_rank.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config.h"

static void usage(FILE *to)
{
	fputs("usage: srun --mpi=TYPE pmi2x-bench-rank --library=LIBRARY\n"
	      "           [--op=OP] [--bytes=B] [--rounds=N] [--share=N]\n\n"
	      "Run by pmi2x-bench(1). Times an operation of the PMI client\n"
	      "LIBRARY, checks the values, prints one line.\n\n"
	      "  --op=OP       what to time (fence); --op=list lists them\n"
	      "  --bytes=B     length of a value, 1 to 1023 (64)\n"
	      "  --rounds=N    how often, 1 to 16 (6)\n"
	      "  --share=N     of N ranks in a row one checks a given value\n"
	      "                (all ranks); rank 0 checks all of them\n", to);
}

double bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

void bench_check(const struct bench *b, int rc, const char *what)
{
	if (rc == PMI2_SUCCESS)
		return;
	fprintf(stderr, "pmi2x-bench-rank: rank %d: %s failed with %d\n",
		b->rank, what, rc);
	b->pmi.abort(1, "pmi2x-bench-rank failed");
	exit(1);
}

void *bench_alloc(const struct bench *b, size_t len)
{
	void *memory = calloc(1, len);

	bench_check(b, memory ? PMI2_SUCCESS : PMI2_ERR_NOMEM, "allocation");
	return memory;
}

void bench_key(char key[PMI2_MAX_KEYLEN], int rank, int i)
{
	snprintf(key, PMI2_MAX_KEYLEN, "bench-%d-%d", i, rank);
}

/* Letters that differ with rank and round in every byte, at any length. */
void bench_value(const struct bench *b, char *value, int rank, int i)
{
	uint32_t x = (uint32_t)rank * 2654435761u + (uint32_t)i * 40503u + 1;

	for (int n = 0; n < b->bytes; n++) {
		x = x * 1664525u + 1013904223u;
		value[n] = 'A' + (x >> 27); /* 'A' to '`' */
	}
	value[b->bytes] = '\0';
}

void bench_compare(const struct bench *b, const char *value, int len, int rank,
		   int i)
{
	char want[BENCH_VALUE_MAX + 1], what[64];

	bench_value(b, want, rank, i);
	snprintf(what, sizeof(what), "comparison of rank %d's value %d", rank,
		 i);
	bench_check(b, len == b->bytes && memcmp(value, want, len) == 0 ?
		    PMI2_SUCCESS : PMI2_FAIL, what);
}

static bool parse_number(const char *name, int low, int high, int *number)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(optarg, &end, 10);
	if (end == optarg || *end || errno || value < low || value > high) {
		fprintf(stderr, "pmi2x-bench-rank: --%s=%s is not within %d "
			"to %d\n", name, optarg, low, high);
		return false;
	}
	*number = value;
	return true;
}

static bool parse_op(struct bench *b)
{
	b->op = bench_op_find(optarg);
	if (!b->op)
		fprintf(stderr, "pmi2x-bench-rank: there is no operation "
			"'%s'\n", optarg);
	return b->op != NULL;
}

static bool parse_option(struct bench *b, int c, const char **library)
{
	switch (c) {
	case 'l':
		*library = optarg;
		return true;
	case 'o':
		return parse_op(b);
	case 'b':
		return parse_number("bytes", 1, BENCH_VALUE_MAX, &b->bytes);
	case 'n':
		return parse_number("rounds", 1, BENCH_ROUNDS_MAX, &b->rounds);
	case 's':
		return parse_number("share", 1, INT32_MAX, &b->share);
	}
	usage(stderr);
	return false;
}

/* Returns -1 to go on, otherwise the exit status. */
static int parse(struct bench *b, int argc, char **argv, const char **library)
{
	static const struct option names[] = {
		{ "library", required_argument, NULL, 'l' },
		{ "op", required_argument, NULL, 'o' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "share", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'h' || c == 'V' ||
		    (c == 'o' && strcmp(optarg, "list") == 0)) {
			if (c == 'h')
				usage(stdout);
			else if (c == 'V')
				puts("pmi2x-bench-rank " PACKAGE_VERSION);
			else
				bench_op_list();
			return 0;
		}
		if (!parse_option(b, c, library))
			return 2;
	}
	if (optind == argc)
		return -1;
	usage(stderr);
	return 2;
}

static bool load(struct bench *b, const char *library)
{
	const char *missing;

	if (!bench_pmi_load(&b->pmi, library))
		return false;
	missing = b->op->lacks ? b->op->lacks(&b->pmi) : NULL;
	if (missing)
		fprintf(stderr, "pmi2x-bench-rank: %s has no %s, which '%s' "
			"needs\n", library, missing, b->op->name);
	return !missing;
}

static void start_session(struct bench *b)
{
	int spawned, appnum;

	bench_check(b, b->pmi.init(&spawned, &b->size, &b->rank, &appnum),
		    "init");
	if (b->share == 0 || b->share > b->size)
		b->share = b->size;
}

static void run(struct bench *b)
{
	start_session(b);
	if (b->op->once)
		b->stamps[0].part = bench_now() - b->begin;
	else
		bench_check(b, b->pmi.fence(), "first fence");
	if (b->op->prepare)
		b->op->prepare(b);
	for (int i = 0; i < b->rounds; i++)
		b->op->round(b, i, &b->stamps[i]);
	if (b->op->check)
		b->op->check(b);
	bench_report(b);
	bench_check(b, b->pmi.fence(), "last fence");
	free(b->state);
}

int main(int argc, char **argv)
{
	struct bench b = { .rank = -1, .bytes = 64, .rounds = 6,
			   .begin = bench_now() };
	const char *library = "libpmi2x.so.0";
	int status;

	b.op = bench_op_find("fence");
	status = parse(&b, argc, argv, &library);
	if (status >= 0)
		return status;
	if (b.op->once)
		b.rounds = 1;
	if (!load(&b, library))
		return 2;
	run(&b);
	return b.pmi.finalize() == PMI2_SUCCESS ? 0 : 1;
}
