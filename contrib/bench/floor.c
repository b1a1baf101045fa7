/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the floor program, and its report; see floor.h. */
#include "floor.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "number.h"
#include "pmi2x-build.h"

static const struct floor_way *const ways[] = { &floor_socket, &floor_shm };

static void usage(FILE *to)
{
	fputs("usage: floor [-N NODES] [-r RANKS] [-u MOST] [-b BYTES]\n"
	      "             [-k WIDTH] [-m socket|shm] [-i ROUNDS] [-t SECONDS]\n"
	      "             [-s] [-c]\n\n"
	      "Times what a fence costs without PMI, on this machine: the same\n"
	      "processes, the same tree, the same bytes. Prints the time from\n"
	      "the first rank's entry to the last rank's exit.\n\n"
	      "  -N NODES    node processes, a tree of TCP links (16)\n"
	      "  -r RANKS    rank processes of each node (4)\n"
	      "  -u MOST     as many ranks in all, but unevenly: MOST on some\n"
	      "              nodes and 1 on the rest\n"
	      "  -b BYTES    of the record of each rank (64)\n"
	      "  -k WIDTH    children of a node in the tree (16)\n"
	      "  -m MODE     socket: a rank writes its record and reads an\n"
	      "              answer; shm: ranks share memory with their node,\n"
	      "              an eventfd wakes the node, a futex the ranks (shm)\n"
	      "  -i ROUNDS   timed rounds (9)\n"
	      "  -s          ranks meet in memory before each round; without it\n"
	      "              a rank enters a round as soon as it has left the last\n"
	      "  -c          only check whether this machine allows the size\n"
	      "  -t SECONDS  give up and kill everything after this time (300)\n"
	      "  -h, --help, -V, --version\n", to);
}

static bool parse_way(const char *text, const struct floor_way **way)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(text, ways[i]->name) == 0) {
			*way = ways[i];
			return true;
		}
	}
	fprintf(stderr, "floor: unknown mode '%s'\n", text);
	return false;
}

static bool parse_option(struct floor_options *o, int c, const char *text)
{
	switch (c) {
	case 'N':
		return number_parse(text, 1, FLOOR_NODES_MAX, &o->nodes);
	case 'r':
		return number_parse(text, 1, FLOOR_RANKS_MAX, &o->ranks);
	case 'u':
		return number_parse(text, 1, FLOOR_RANKS_MAX, &o->most);
	case 'b':
		return number_parse(text, 1, FLOOR_BYTES_MAX, &o->bytes);
	case 'k':
		return number_parse(text, TREE_WIDTH_MIN, TREE_WIDTH_MAX,
				    &o->width);
	case 'i':
		return number_parse(text, 1, FLOOR_ROUNDS_MAX, &o->rounds);
	case 't':
		return number_parse(text, 1, 86400, &o->timeout);
	case 's':
		o->meet = true;
		return true;
	case 'c':
		o->check_only = true;
		return true;
	case 'm':
		return parse_way(text, &o->way);
	}
	return false;
}

/* Whether to go on; otherwise *status is the exit status. */
static bool parse(struct floor_options *o, int argc, char **argv, int *status)
{
	static const struct option names[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*status = 2;
	while ((c = getopt_long(argc, argv, "N:r:u:b:k:m:i:t:schV", names,
				NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			*status = 0;
			if (c == 'h')
				usage(stdout);
			else
				puts("floor (pmi2x) " PMI2X_BUILD);
			return false;
		}
		if (!parse_option(o, c, optarg)) {
			if (c == '?')
				usage(stderr);
			return false;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return false;
	}
	if (o->ranks > FLOOR_RANKS_MAX / o->nodes) {
		fprintf(stderr, "floor: more than %u ranks\n", FLOOR_RANKS_MAX);
		return false;
	}
	return true;
}

static double span(const struct floor_run *run, uint32_t round)
{
	uint32_t size = floor_size(&run->options);
	const struct floor_stamp *row = run->stamps + (size_t)round * size;
	double in = row->in, out = row->out;

	for (uint32_t r = 1; r < size; r++) {
		if (row[r].in < in)
			in = row[r].in;
		if (row[r].out > out)
			out = row[r].out;
	}
	return out - in;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int report(const struct floor_run *run)
{
	const struct floor_options *o = &run->options;
	double *times = calloc(o->rounds, sizeof(*times));

	if (!times)
		return -ENOMEM;
	printf("result op=fence mode=%s nodes=%u ranks=%u bytes=%u width=%u "
	       "clock=span times=", o->way->name, o->nodes, floor_size(o),
	       o->bytes, o->width);
	for (uint32_t i = 0; i < o->rounds; i++) {
		times[i] = span(run, i + 1); /* round 0 is cold */
		printf("%s%.9f", i ? "," : "", times[i]);
	}
	qsort(times, o->rounds, sizeof(*times), by_size);
	printf(" median=%.6f min=%.6f max=%.6f\n", times[o->rounds / 2],
	       times[0], times[o->rounds - 1]);
	free(times);
	return 0;
}

static const char *reason(int rc)
{
	if (rc == -ECANCELED)
		return "a process has failed";
	return rc == -ETIMEDOUT ? "not done in time; see -t" : strerror(-rc);
}

int main(int argc, char **argv)
{
	struct floor_run run = { .options = {
		.nodes = 16, .ranks = 4, .bytes = 64, .width = 16, .rounds = 9,
		.timeout = 300, .way = &floor_shm } };
	int rc, status;

	if (!parse(&run.options, argc, argv, &status))
		return status;
	if (!floor_limits_allow(&run.options))
		return 1;
	run.first = floor_memory(sizeof(*run.first) * (run.options.nodes + 1),
				 false);
	if (!floor_layout(&run.options, run.first))
		return 1;
	if (run.options.check_only)
		return 0;
	run.stamps = floor_memory(
		sizeof(*run.stamps) * floor_size(&run.options) *
			(size_t)(run.options.rounds + FLOOR_UNTIMED),
		true);
	if (run.options.meet)
		run.meeting = floor_meet_create();
	rc = floor_launch(&run);
	if (rc == 0)
		rc = report(&run);
	if (rc)
		fprintf(stderr, "floor: %s\n", reason(rc));
	return rc ? 1 : 0;
}
