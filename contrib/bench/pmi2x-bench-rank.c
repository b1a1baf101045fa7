/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line and the frame of a rank of pmi2x bench collectives; see bench_rank.h. */
#include "bench_rank.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"

#define BENCH_REST_MAX 60000 /* milliseconds */

static void usage(FILE *to)
{
	fputs("usage: srun --mpi=TYPE pmi2x-bench-rank --library=LIBRARY\n"
	      "           [--op=OP] [--bytes=B] [--rounds=N] [--work=US]\n"
	      "           [--rest=MS] [--meet=FILE] [--check-node]\n\n"
	      "Run by pmi2x-bench-collectives(1). Times an operation of the PMI client\n"
	      "LIBRARY, checks the values, prints one line. The library \"none\"\n"
	      "is no PMI: what the launch alone takes; \"pmi1\" is PMI-1, built in.\n\n"
	      "  --op=OP       what to time (fence); --op=list lists them\n"
	      "  --bytes=B     length of a value, 1 to 1023 (64)\n"
	      "  --rounds=N    how often, 1 to 16 (6)\n"
	      "  --work=US     microseconds of CPU time that a rank computes\n"
	      "                between call and wait (2000)\n"
	      "  --rest=MS     milliseconds of rest before what is timed (0)\n"
	      "  --meet=FILE   meet in this file, of zeros, before what is timed,\n"
	      "                without PMI at the end: all ranks are on one machine\n"
	      "  --check-node  the ranks of a node check all values, each its\n"
	      "                share; without it each checks one. Rank 0 checks\n"
	      "                all in either case\n", to);
}

static bool parse_number(const char *name, int low, int high, int *number)
{
	uint32_t value;

	if (!decimal_u32(optarg, low, high, &value)) {
		fprintf(stderr, "pmi2x-bench-rank: --%s=%s is not within %d "
			"to %d\n", name, optarg, low, high);
		return false;
	}
	*number = (int)value;
	return true;
}

static bool parse_op(struct bench *b)
{
	b->op = bench_op_find(optarg);
	if (!b->op)
		fprintf(stderr, "pmi2x-bench-rank: unknown operation '%s'\n", optarg);
	return b->op != NULL;
}

static bool parse_work(struct bench *b)
{
	int microseconds;

	if (!parse_number("work", 0, 60000000, &microseconds))
		return false;
	b->work = microseconds * 1e-6;
	return true;
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
	case 'w':
		return parse_work(b);
	case 'r':
		return parse_number("rest", 0, BENCH_REST_MAX, &b->rest);
	case 'm':
		b->meeting = bench_meet_open(optarg);
		return b->meeting != NULL;
	case 'c':
		b->check_node = true;
		return true;
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
		{ "work", required_argument, NULL, 'w' },
		{ "rest", required_argument, NULL, 'r' },
		{ "meet", required_argument, NULL, 'm' },
		{ "check-node", no_argument, NULL, 'c' },
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
				puts("pmi2x-bench-rank " PMI2X_BUILD);
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

static bool load_none(struct bench *b)
{
	b->alone = true;
	if (!b->op->alone)
		fprintf(stderr, "pmi2x-bench-rank: '%s' needs PMI\n",
			b->op->name);
	return b->op->alone;
}

static bool load(struct bench *b, const char *library)
{
	const char *missing;

	if (strcmp(library, "none") == 0)
		return load_none(b);
	if (strcmp(library, "pmi1") == 0)
		bench_pmi1(&b->pmi);
	else if (!bench_pmi_load(&b->pmi, library))
		return false;
	missing = b->op->lacks ? b->op->lacks(&b->pmi) : NULL;
	if (missing)
		fprintf(stderr, "pmi2x-bench-rank: %s has no %s, which '%s' "
			"needs\n", library, missing, b->op->name);
	return !missing;
}

static int environment_number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static void run_alone(struct bench *b)
{
	b->rank = environment_number("SLURM_PROCID", 0);
	b->size = environment_number("SLURM_NTASKS", 1);
	b->op->round(b, 0, &b->stamps[0]);
	bench_await_all(b); /* as with PMI, none ends before all have begun */
	bench_report(b);
}

static void start_session(struct bench *b)
{
	int spawned, appnum;

	bench_place(&b->local, &b->locals);
	bench_check(b, b->pmi.init(&spawned, &b->size, &b->rank, &appnum),
		    "init");
	bench_settle_choose(b);
	if (b->op->once)
		b->stamps[0].part = bench_now() - b->begin;
	else
		bench_check(b, b->pmi.fence(), "first fence");
}

static void run(struct bench *b)
{
	int phases = b->op->phases ? b->op->phases : 1;

	if (b->op->start)
		b->op->start(b);
	start_session(b);
	if (b->op->prepare)
		b->op->prepare(b);
	for (int i = 0; i < b->rounds; i++)
		b->op->round(b, i, &b->stamps[i * phases]);
	if (b->op->clock != BENCH_WALL)
		bench_await_all(b);
	if (b->op->check)
		b->op->check(b);
	bench_report(b);
	if (b->op->clock != BENCH_WALL)
		bench_check(b, b->pmi.fence(), "last fence");
	free(b->state);
}

int main(int argc, char **argv)
{
	struct bench b = { .rank = -1, .bytes = 64, .rounds = 6, .work = 0.002,
			   .puts = "none", .begin = bench_now() };
	const char *library = "libpmi2x.so.0";
	int status;

	b.op = bench_op_find("fence");
	status = parse(&b, argc, argv, &library);
	if (status >= 0)
		return status;
	if (b.op->once || b.op->rounds)
		b.rounds = b.op->once ? 1 : b.op->rounds;
	if (!load(&b, library))
		return 2;
	if (b.alone) {
		run_alone(&b);
		return 0;
	}
	run(&b);
	return b.pmi.finalize() == PMI2_SUCCESS ? 0 : 1;
}
