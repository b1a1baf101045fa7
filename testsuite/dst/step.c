/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the step of a plan, lets its faults happen, and ends it as Slurm does. */
#include "testsuite/dst/step.h"

#include <stdlib.h>
#include <string.h>

#include "libcoll/layout.h"
#include "testsuite/dst/memory.h"
#include "testsuite/dst/sockets.h"

static const char *const names[NODES_MAX] = { "n0", "n1", "n2", "n3", "n4" };

static void log_text(void *arg, enum log_level level, const char *text)
{
	trace_text("log %d: %s", level, text);
}

const struct log_hook *step_log(void)
{
	static const struct log_hook hook = { log_text, NULL };

	return &hook;
}

static bool is_alone(void *arg)
{
	const struct process *p = arg;

	return p->tasks == 1;
}

/* hang_up has what has not been read closed by a thread, which nobody joins. */
void check_nothing_left(struct process *p)
{
	unsigned blocks;
	size_t bytes;

	task_wait(is_alone, p, now() + SEC);
	bytes = memory_left(p, &blocks);

	if (bytes || blocks)
		failed("%zu bytes in %u blocks are left", bytes, blocks);
	if (p->fds)
		failed("%u descriptors are left", p->fds);
	if (p->tasks > 1)
		failed("%u threads are left", p->tasks - 1);
}

/* ---- the layout ---- */

static void place_ranks(struct step *s)
{
	uint32_t counts[NODES_MAX] = { 0 }, list[NODES_MAX][RANKS_MAX];
	const uint32_t *lists[NODES_MAX];

	for (uint32_t r = 0; r < s->plan->ranks; r++) {
		uint32_t node = s->plan->node_of[r];

		s->ranks[r].step = s;
		s->ranks[r].rank = r;
		s->ranks[r].node = &s->nodes[node];
		s->ranks[r].slot = counts[node];
		s->ranks[r].pmi_fd = -1;
		list[node][counts[node]++] = r;
	}
	for (uint32_t i = 0; i < s->plan->nodes; i++)
		lists[i] = list[i];
	if (layout_create(&s->layout, s->plan->nodes, s->plan->ranks, counts,
			  lists))
		abort();
}

static void make_node(struct step *s, uint32_t id)
{
	struct sim_node *n = &s->nodes[id];

	n->step = s;
	n->id = id;
	n->registration_fd = n->connect_back_fd = -1;
	n->agent_killed = NEVER;
	n->view = (struct pmi_step){
		.jobid = "7.0",
		.layout = s->layout,
		.position = layout_position(s->layout, id),
		.tree_width = s->plan->tree_width,
		.piece = s->plan->piece,
		.universe_size = s->plan->ranks,
		.build = "0.1",
		.node_names = names,
	};
}

/* ---- faults that happen once ---- */

static void kill_ranks_of(struct step *s, const struct sim_node *n)
{
	for (uint32_t r = 0; r < s->plan->ranks; r++)
		if (s->ranks[r].process && (!n || s->ranks[r].node == n))
			process_kill(s->ranks[r].process, 9);
}

static void node_dies(void *arg, void *how)
{
	struct step *s = arg;
	struct sim_node *n = &s->nodes[s->plan->victim];

	if (!n->process)
		return;
	if (s->plan->fault == FAULT_HOST_DOWN)
		network_host_is_down(n->process->host);
	process_kill(n->process, 9);
	if (n->agent)
		process_kill(n->agent, 9);
	kill_ranks_of(s, n);
}

/* The agent's ranks live on. Without an agent nothing happens. */
static void agent_dies(void *arg, void *how)
{
	struct step *s = arg;
	struct sim_node *n = &s->nodes[s->plan->victim];

	if (!n->agent || n->agent->dead)
		return;
	n->agent_killed = now();
	process_kill(n->agent, 9);
}

static void supervisor_dies(void *arg, void *how)
{
	struct step *s = arg;
	struct sim_node *n = &s->nodes[s->plan->victim];

	if (n->process)
		process_kill(n->process, 9);
}

static void rank_dies(void *arg, void *how)
{
	struct step *s = arg;
	struct process *p = s->ranks[s->plan->victim].process;

	if (p)
		process_kill(p, draw_once_in(2) ? 9 : 3 << 8);
}

static void some_are_stopped(void *arg, void *how)
{
	struct step *s = arg;

	for (uint32_t r = 0; r < s->plan->ranks; r++)
		if (s->ranks[r].process && draw_once_in(3))
			s->ranks[r].process->stopped_until =
				now() + draw_below(20 * SEC);
}

static void starve(struct process *p)
{
	if (p && draw_once_in(2))
		p->starved_until = now() + draw_below(8 * SEC);
}

static void fds_run_out(void *arg, void *how)
{
	struct step *s = arg;

	for (uint32_t i = 0; i < s->plan->nodes; i++) {
		starve(s->nodes[i].process);
		starve(s->nodes[i].agent);
	}
}

static void plan_fault(struct step *s)
{
	static void (*const events[FAULTS])(void *arg, void *how) = {
		[FAULT_STOPPED] = some_are_stopped,
		[FAULT_NODE_DIES] = node_dies,
		[FAULT_AGENT_DIES] = agent_dies,
		[FAULT_SUPERVISOR_DIES] = supervisor_dies,
		[FAULT_HOST_DOWN] = node_dies,
		[FAULT_RANK_DIES] = rank_dies,
		[FAULT_NO_FDS] = fds_run_out,
	};

	if (events[s->plan->fault])
		at_time(s->plan->fault_at, events[s->plan->fault], s, NULL);
}

/* ---- life ---- */

void step_begin(struct step *s, struct plan *plan)
{
	memset(s, 0, sizeof(*s));
	s->plan = plan;
	s->failing_lookups = plan->failing_lookups;
	for (unsigned i = 0; i < sizeof(s->secret.bytes); i++)
		s->secret.bytes[i] = draw();
	place_ranks(s);
	for (uint32_t i = 0; i < plan->nodes; i++)
		make_node(s, i);
	plan_fault(s);
	if (plan->srun)
		srun_begin(s);
	else
		for (uint32_t i = 0; i < plan->nodes; i++)
			node_begin(&s->nodes[i]);
}

static void kill_all_ranks(void *arg, void *unused)
{
	kill_ranks_of(arg, NULL);
}

void step_abort(struct step *s, const char *why)
{
	uint64_t after = s->plan->stubborn ? 120 * SEC : 3 * SEC;

	trace_text("the step is to be ended: %s", why);
	if (s->ending)
		return;
	if (plan_succeeds(s->plan))
		failed("the step is ended: %s", why);
	s->ending = true;
	at_time(now() + draw_below(after), kill_all_ranks, s, NULL);
}

void step_end(struct step *s)
{
	layout_destroy(s->layout);
}
