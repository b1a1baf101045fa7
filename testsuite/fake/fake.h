/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake server: a host of the same agents and the same server as the Slurm
 * plugin, without Slurm. One process a "node", all on this machine. For tests,
 * and for more nodes than slurmd processes fit in memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libcoll/layout.h"
#include "libio/secret.h"
#include "libpmi/spawn.h"
#include "libutil/log.h"
#include "pmi2x-build.h"

#define FAKE_NODES_MAX 4096
#define FAKE_SLOW_MAX 100
#define FAKE_BUILD "fake-" PMI2X_BUILD

/* Options of the command line. */
struct fake_options {
	uint32_t nodes;
	uint32_t ranks;
	uint32_t tree_width; /* or TREE_WIDTH_AUTO */
	const char *distribution; /* block, cyclic, plane=N, list=n0,n0,n1... */
	uint32_t slow;   /* times as long as usual nodes wait for each other */
	uint16_t port_first;
	uint16_t port_last;
	bool shared_memory;
	bool verbose;
	int late_node;   /* node that starts late_ms later, or -1 */
	uint32_t late_ms;
	int parent_fd;   /* spawned: the descriptor to the parent's server, or -1 */
	int request_fd;  /* spawned: holds the packed request, or -1 */
	const char *spawner_jobid;
	char **program;  /* argv of what to run, unless spawned */
};

/* One run of the fake server: shared by the launcher and its node processes. */
struct fake_step {
	const struct fake_options *options;
	struct spawn_request *request; /* the programs and the preput values */
	struct layout *layout;
	struct secret secret;
	uint64_t port_seed;
	char jobid[64];
	char *mapping;
	uint32_t *app_sizes;
	char **node_names;
	uint16_t srun_port;
	struct log_hook log;
};

/* fake-layout.c: a layout from -N, -n and -m. 0 or a negative errno. */
int fake_layout(struct layout **out, const struct fake_options *o);

/* fake-node.c: run one node to its end, in a process of its own. Exit code. */
int fake_node_run(const struct fake_step *step, uint32_t node_id);

/* fake-srun.c: everything else. Exit code. */
int fake_launch(const struct fake_options *o);
