/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line of the fake server. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "libcoll/tree.h"

static const char usage[] =
"usage: fake-server [options] PROGRAM [ARG ...]\n"
"Run PROGRAM on a step of processes of this machine, with the agents of\n"
"mpi/pmi2x and without Slurm.\n"
"  -N, --nodes N         agents (default 1)\n"
"  -n, --ntasks N        ranks in all (default: one a node)\n"
"  -m, --distribution D  block, cyclic, plane=K, or list=NODE,NODE,...\n"
"  -k, --width K         children of a node in the tree (default: auto)\n"
"  -p, --ports A-B       port range (default 28000-31999)\n"
"  -s, --slow N          nodes wait N times as long for each other (default 1)\n"
"      --no-shm          no shared memory between agent and ranks\n"
"      --late NODE:MS    start one node MS milliseconds later\n"
"  -v, --verbose         debug lines\n"
"  -h, --help            this text\n";

enum { OPT_NO_SHM = 256, OPT_LATE, OPT_PARENT, OPT_REQUEST, OPT_SPAWNER };

static const struct option long_options[] = {
	{"nodes", required_argument, NULL, 'N'},
	{"ntasks", required_argument, NULL, 'n'},
	{"distribution", required_argument, NULL, 'm'},
	{"width", required_argument, NULL, 'k'},
	{"ports", required_argument, NULL, 'p'},
	{"slow", required_argument, NULL, 's'},
	{"no-shm", no_argument, NULL, OPT_NO_SHM},
	{"late", required_argument, NULL, OPT_LATE},
	{"parent-fd", required_argument, NULL, OPT_PARENT},
	{"request-fd", required_argument, NULL, OPT_REQUEST},
	{"spawner", required_argument, NULL, OPT_SPAWNER},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int take_range(struct fake_options *o, const char *text)
{
	return sscanf(text, "%hu-%hu", &o->port_first, &o->port_last) == 2 &&
	       o->port_first && o->port_first <= o->port_last;
}

/* Returns 1 when the option is in order. */
static int take_option(struct fake_options *o, int c, const char *text)
{
	switch (c) {
	case 'N': o->nodes = strtoul(text, NULL, 10); return 1;
	case 'n': o->ranks = strtoul(text, NULL, 10); return 1;
	case 'm': o->distribution = text; return 1;
	case 'k': o->tree_width = strtoul(text, NULL, 10); return 1;
	case 'p': return take_range(o, text);
	case 's': o->slow = strtoul(text, NULL, 10); return 1;
	case 'v': o->verbose = true; return 1;
	case OPT_NO_SHM: o->shared_memory = false; return 1;
	case OPT_LATE:
		return sscanf(text, "%d:%u", &o->late_node, &o->late_ms) == 2;
	case OPT_PARENT: o->parent_fd = atoi(text); return 1;
	case OPT_REQUEST: o->request_fd = atoi(text); return 1;
	case OPT_SPAWNER: o->spawner_jobid = text; return 1;
	default: return 0;
	}
}

static int check(struct fake_options *o)
{
	if (!o->ranks)
		o->ranks = o->nodes;
	return o->nodes >= 1 && o->nodes <= FAKE_NODES_MAX &&
	       (o->ranks >= o->nodes || o->request_fd >= 0) &&
	       (o->tree_width == TREE_WIDTH_AUTO ||
		(o->tree_width >= TREE_WIDTH_MIN &&
		 o->tree_width <= TREE_WIDTH_MAX)) &&
	       o->slow >= 1 && o->slow <= FAKE_SLOW_MAX &&
	       (o->program[0] || o->request_fd >= 0);
}

int main(int argc, char **argv)
{
	struct fake_options o = {
		.nodes = 1, .slow = 1, .distribution = "block",
		.port_first = 28000, .port_last = 31999, .shared_memory = true,
		.late_node = -1, .parent_fd = -1, .request_fd = -1,
	};
	int c;

	while ((c = getopt_long(argc, argv, "+N:n:m:k:cp:s:vh", long_options,
				NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (!take_option(&o, c, optarg)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	o.program = argv + optind;
	if (!check(&o)) {
		fputs(usage, stderr);
		return 2;
	}
	return fake_launch(&o);
}
