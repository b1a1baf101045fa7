/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of a seed: the layout of the step, what its ranks do, what goes wrong. */
#pragma once

#include "testsuite/dst/world.h"

#define NODES_MAX 5
#define RANKS_MAX 15
#define STEPS_MAX 10
#define SRUN_HOST 60

/* Each but the last three is a collective of all ranks. */
enum step_kind {
	STEP_FENCE,     /* puts, a fence, gets */
	STEP_BARRIER,
	STEP_ALLGATHER,
	STEP_RING,
	STEP_IN_FLIGHT, /* several at once, completed in any order */
	STEP_GROUP,     /* barriers of some ranks, then perhaps a fence of all */
	STEP_STORE,     /* keys, counters and barriers of pmi2x-sync */
	STEP_NODE_ATTR, /* of all ranks of a node */
	STEP_JOB_ATTR,
	STEP_NAMES,
	STEP_PAUSE,
	STEP_KINDS,
};

enum wire { WIRE_EXTENDED, WIRE_PMI2, WIRE_PMI1 };

/* From FAULT_FATAL on ranks may hear of an error; up to HOST_DOWN those of a node. */
enum fault {
	FAULT_NONE,
	FAULT_REFUSED,    /* connects are refused, or lost, for a while */
	FAULT_CUT_EARLY,  /* connections break before they are proved */
	FAULT_LATE,       /* nodes and ranks start late */
	FAULT_STOPPED,    /* ranks are stopped for a while */
	FAULT_LOOKUP,     /* the resolver is slow, and fails at first */
	FAULT_FATAL,
	FAULT_CUT = FAULT_FATAL, /* links break */
	FAULT_NODE_DIES,
	FAULT_AGENT_DIES,
	FAULT_SUPERVISOR_DIES, /* slurmstepd: the agent and the ranks see that */
	FAULT_HOST_DOWN,
	FAULT_RANK_DIES,
	FAULT_ABORT,
	FAULT_EARLY_EXIT, /* without finalize */
	FAULT_NO_MEMORY,
	FAULT_NO_FDS,
	FAULTS,
};

struct plan {
	uint64_t seed;
	enum fault fault;
	uint32_t nodes, ranks;
	uint32_t node_of[RANKS_MAX]; /* node id of each rank */
	uint32_t tree_width;
	uint32_t piece;
	bool one_host;       /* all nodes have one address, as in a test bed */
	bool addresses_told; /* neighbours do not know where to try */
	unsigned ports;      /* in the range */
	bool srun;
	bool stubborn;       /* the step's end takes long */
	bool end_on_failure;
	bool no_kill;
	bool trace;
	uint32_t region_size;
	uint32_t connect_ms;
	enum wire wire;
	unsigned nsteps;
	enum step_kind steps[STEPS_MAX];
	uint64_t fault_at;   /* moment of what happens once */
	uint32_t victim;     /* node id or rank */
	unsigned victim_step;
	uint64_t late_ns;
	unsigned failing_lookups;
};

void plan_draw(struct plan *p, uint64_t seed);
/* Must every call succeed? */
bool plan_succeeds(const struct plan *p);
void plan_describe(const struct plan *p);
/* --fault NAME; FAULTS: no such name. */
enum fault fault_named(const char *name);
const char *fault_name(enum fault f);
