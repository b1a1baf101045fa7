/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the layout, the script and the faults of a run. */
#include "testsuite/dst/plan.h"

#include <stdio.h>
#include <string.h>

#include "testsuite/dst/sockets.h"

static const char *const fault_names[FAULTS] = {
	[FAULT_NONE] = "none",
	[FAULT_REFUSED] = "refused",
	[FAULT_CUT_EARLY] = "cut-early",
	[FAULT_LATE] = "late",
	[FAULT_STOPPED] = "stopped",
	[FAULT_LOOKUP] = "lookup",
	[FAULT_CUT] = "cut",
	[FAULT_NODE_DIES] = "node-dies",
	[FAULT_AGENT_DIES] = "agent-dies",
	[FAULT_SUPERVISOR_DIES] = "supervisor-dies",
	[FAULT_HOST_DOWN] = "host-down",
	[FAULT_RANK_DIES] = "rank-dies",
	[FAULT_ABORT] = "abort",
	[FAULT_EARLY_EXIT] = "early-exit",
	[FAULT_NO_MEMORY] = "no-memory",
	[FAULT_NO_FDS] = "no-fds",
};

enum fault fault_named(const char *name)
{
	enum fault f = FAULT_NONE;

	while (f < FAULTS && strcmp(fault_names[f], name) != 0)
		f++;
	return f;
}

const char *fault_name(enum fault f)
{
	return fault_names[f];
}

/* Each node has a rank; the others are anywhere. */
static void draw_layout(struct plan *p)
{
	p->nodes = 1 + draw_below(NODES_MAX);
	p->ranks = p->nodes + draw_below(2 * p->nodes + 1);
	for (uint32_t r = 0; r < p->ranks; r++)
		p->node_of[r] = r < p->nodes ? r : draw_below(p->nodes);
	for (uint32_t r = p->ranks; r-- > 1;) {
		uint32_t other = draw_below(r + 1), node = p->node_of[r];

		p->node_of[r] = p->node_of[other];
		p->node_of[other] = node;
	}
	p->tree_width = 2 + draw_below(3);
}

static void draw_options(struct plan *p)
{
	p->piece = draw_once_in(3) ? 64 + draw_below(2000) : 0;
	p->one_host = draw_once_in(3);
	p->addresses_told = draw_once_in(5);
	p->ports = draw_once_in(4) ? NODES_MAX : 100;
	p->srun = !draw_once_in(4);
	p->stubborn = draw_once_in(3);
	p->end_on_failure = draw_once_in(3);
	p->no_kill = draw_once_in(6);
	p->trace = p->srun && draw_once_in(6);
	p->region_size = draw_once_in(4) ? 0 : 4 << 20;
	p->connect_ms = draw_once_in(2) ? 60000 : 10000;
	p->wire = draw_once_in(3) ? 1 + draw_below(2) : WIRE_EXTENDED;
}

static bool is_possible(const struct plan *p, enum step_kind kind)
{
	switch (kind) {
	case STEP_GROUP:
		return p->wire != WIRE_PMI2;
	case STEP_NODE_ATTR:
		return p->wire != WIRE_PMI1;
	case STEP_NAMES:
		return p->srun;
	default:
		return true;
	}
}

static void draw_steps(struct plan *p)
{
	p->nsteps = 1 + draw_below(STEPS_MAX);
	for (unsigned i = 0; i < p->nsteps; i++) {
		do {
			p->steps[i] = draw_below(STEP_KINDS);
		} while (!is_possible(p, p->steps[i]));
	}
}

static void draw_hardship(void)
{
	static const uint64_t latencies[] = { 20 * US, 200 * US, 5 * MS,
					      100 * MS };

	hardship.switches = 1 + draw_below(30);
	hardship.short_io = draw_once_in(2) ? 0 : 2 + draw_below(20);
	hardship.interrupts = draw_once_in(2) ? 0 : 10 + draw_below(100);
	hardship.aborted = draw_once_in(4) ? 3 : 0;
	hardship.latency = latencies[draw_below(4)];
	hardship.stalls = draw_once_in(3) ? 40 : 0;
	hardship.stall = draw_once_in(2) ? 10 * MS : 300 * MS;
	hardship.buffer = draw_once_in(2) ? 65536 : 300 + draw_below(3000);
	hardship.no_peerpidfd = draw_once_in(2);
}

static void draw_fault(struct plan *p)
{
	p->fault = draw_once_in(3) ? FAULT_NONE : draw_below(FAULTS);
	p->fault_at = now() + draw_below(1 << draw_below(14)) * MS +
		      draw_below(1000) * US;
	p->victim_step = draw_below(p->nsteps);
	p->late_ns = 10 * MS;
}

static void arm_fault(struct plan *p)
{
	p->victim = draw_below(p->fault >= FAULT_NODE_DIES &&
			       p->fault <= FAULT_HOST_DOWN ? p->nodes :
							     p->ranks);
	switch (p->fault) {
	case FAULT_REFUSED:
		network.refuse_first = draw_below(8);
		network.lose_first = draw_below(2);
		break;
	case FAULT_CUT_EARLY:
		network.cut_early = 1 + draw_below(6);
		break;
	case FAULT_CUT:
		network.cut_late = 1 + draw_below(4);
		network.cut_bytes = 5000;
		break;
	case FAULT_LATE:
		p->late_ns = 5 * SEC;
		break;
	case FAULT_LOOKUP:
		p->failing_lookups = draw_below(3);
		break;
	case FAULT_NO_MEMORY:
		hardship.no_memory = 50 + draw_below(2000);
		break;
	default:
		break;
	}
	if (p->fault == FAULT_HOST_DOWN)
		p->one_host = false;
}

void plan_draw(struct plan *p, uint64_t seed)
{
	enum fault wanted = p->fault;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	draw_layout(p);
	draw_options(p);
	draw_steps(p);
	draw_hardship();
	draw_fault(p);
	if (wanted != FAULTS)
		p->fault = wanted;
	arm_fault(p);
}

bool plan_succeeds(const struct plan *p)
{
	return p->fault < FAULT_FATAL;
}

void plan_describe(const struct plan *p)
{
	printf("seed %llu: fault %s, %u nodes%s, %u ranks, width %u, wire %d, %u steps, region %u, %ssrun, latency %g ms, buffers of %u bytes, %u ports%s\n",
	       (unsigned long long)p->seed, fault_names[p->fault], p->nodes,
	       p->one_host ? " on one host" : "", p->ranks, p->tree_width,
	       p->wire, p->nsteps, p->region_size, p->srun ? "" : "no ",
	       hardship.latency / 1e6, hardship.buffer, p->ports,
	       p->addresses_told ? " to be told" : "");
}
