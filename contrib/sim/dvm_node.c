/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts of simulated nodes. A daemon does one thing at a time; a process runs for as long
 * as its first argument says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm_sim.h"
#include "libutil/array.h"

/* ---- processes ---- */

/* UINT32_MAX: no memory. */
static uint32_t take_process(struct dvm_sim *s)
{
	uint32_t i = s->free_process;
	size_t cap = s->processes_cap;

	if (i != UINT32_MAX) {
		s->free_process = s->processes[i].next;
		return i;
	}
	if (array_grow(&s->processes, s->nprocesses, &cap, sizeof(*s->processes))) {
		dvm_sim_fail(s, "not enough memory");
		return UINT32_MAX;
	}
	s->processes_cap = (uint32_t)cap;
	return s->nprocesses++;
}

static void give_process(struct dvm_sim *s, uint32_t i)
{
	s->processes[i].node = UINT32_MAX;
	s->processes[i].next = s->free_process;
	s->free_process = i;
}

/* The daemon works: longer on a slow node, and later where all cores are busy. */
static void spend(struct sim_dvm_node *n, sim_time cost, bool urgent)
{
	n->free = dvm_sim_spend(n->sim, n->free, sim_time_of((double)cost * n->factor), urgent);
}

void sim_node_spend(struct sim_dvm_node *n, sim_time cost)
{
	if (cost)
		spend(n, cost, true);
}

/* A process is a sleep: its first argument is the time for which it runs, in seconds. */
static sim_time time_of(const struct dvm_launch *l)
{
	const char *name = dvm_texts_next(&l->argv, NULL);
	const char *time = name ? dvm_texts_next(&l->argv, name) : NULL;

	return time ? sim_time_of(strtod(time, NULL) * (double)SIM_S + 0.5) : 0;
}

/* Each of the part's ranks here has the same. False: no memory. */
static bool start_rank(struct sim_dvm_node *n, const struct node_start *what, uint32_t slot,
		       uint64_t *number)
{
	const struct dvm_launch *l = what->launch;
	struct dvm_sim *s = n->sim;
	uint32_t i = take_process(s);

	if (i == UINT32_MAX)
		return false;
	spend(n, s->scenario->dvm.start, false);
	s->processes[i] = (struct dvm_process){
		.node = n->number, .life = n->life, .part = what->part, .slot = slot,
		.cores = cores_count(&l->cores) / l->ranks_here,
		.gpus = (uint32_t)__builtin_popcountll(l->gpus) / l->ranks_here,
		.began = n->free, .time = (sim_time)((double)time_of(l) * n->factor),
	};
	if (n->free > s->last_start)
		s->last_start = n->free;
	*number = i;
	return true;
}

/* Ranks run from their starts on. The node hears of it when all have been started. */
static void note_started(struct sim_dvm_node *n, const struct dvm_started_ranks *r)
{
	struct dvm_sim *s = n->sim;

	s->running += r->count;
	if (s->running > s->most)
		s->most = s->running;
	dvm_sim_send(s, n->free, EVENT_DVM_STARTED,
		     dvm_frame_new(s, n->number, 0, r, sizeof(*r) +
				   r->count * sizeof(r->processes[0])));
	for (uint32_t i = 0; i < r->count; i++) {
		const struct dvm_process *p = &s->processes[r->processes[i]];
		sim_time at = p->began + p->time;

		dvm_sim_add(s, at > n->free ? at : n->free, EVENT_DVM_EXIT,
			    (uint32_t)r->processes[i]);
	}
}

static void start(void *arg, const struct node_start *what)
{
	struct sim_dvm_node *n = arg;
	uint32_t count = what->launch->ranks_here - what->first;
	struct dvm_started_ranks *r = malloc(sizeof(*r) + count * sizeof(r->processes[0]));

	if (!r) {
		dvm_sim_fail(n->sim, "not enough memory");
		return;
	}
	r->part = what->part;
	r->count = 0;
	while (r->count < count && start_rank(n, what, what->first + r->count,
					      &r->processes[r->count]))
		r->count++;
	note_started(n, r);
	free(r);
}

static void signal_part(void *arg, uint32_t part, int number)
{
}

/* ---- messages ---- */

static void node_send(void *arg, const void *data, size_t len)
{
	struct sim_dvm_node *n = arg;
	struct dvm_sim *s = n->sim;

	if (n->tree) {
		sim_tree_node_send(n, data, len);
		return;
	}
	dvm_sim_send(s, n->free + s->scenario->dvm.latency, EVENT_DVM_TO_HEAD,
		     dvm_frame_new(s, n->head->number, n->position, data, len));
}

static int open_output(void *arg, uint32_t part)
{
	return 0;
}

static int open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	return 0;
}

static void close_part(void *arg, uint32_t part)
{
}

static void pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
}

static void profile_known(void *arg, const struct dvm_profile_msg *profile)
{
}

static void leave(void *arg)
{
}

/* ---- turns ---- */

/* When its daemon can begin with something that has come now. */
static struct dvm_time begin(struct sim_dvm_node *n)
{
	if (n->free < n->sim->now)
		n->free = n->sim->now;
	return dvm_sim_time(n->free);
}

static void turn(struct sim_dvm_node *n)
{
	int left = dvm_node_turn(n->node, dvm_sim_time(n->free));
	sim_time at = left < 0 ? SIM_TIME_MAX : n->free + left * SIM_MS;

	if (at >= n->turn && n->turn > n->sim->now)
		return;
	n->turn = at;
	if (left >= 0)
		dvm_sim_add(n->sim, at, EVENT_DVM_TURN, n->number);
}

void sim_node_turn(struct dvm_sim *s, uint32_t node)
{
	struct sim_dvm_node *n = &s->nodes[node];

	if (!n->node || n->turn != s->now)
		return; /* an earlier one has been done */
	begin(n);
	turn(n);
}

/* A message to a daemon that was lost is dropped. */
static bool is_for(const struct sim_dvm_node *n, struct dvm_frame *f)
{
	if (n->node && n->life == f->life)
		return true;
	free(f);
	return false;
}

static sim_time parts_in(const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;
	sim_time n = 0;

	cursor_init(&c, data, len);
	while (cursor_left(&c) && !dvm_msg_unpack(&c, &m))
		n += m.type == DVM_LAUNCH;
	return n;
}

void sim_node_head_says(struct sim_dvm_node *n, const void *data, size_t len)
{
	spend(n, parts_in(data, len) * n->sim->scenario->dvm.take, true);
	if (dvm_node_input(n->node, data, len, dvm_sim_time(n->free)))
		dvm_sim_fail(n->sim, "node %u cannot take a message", n->number);
}

void sim_node_take(struct dvm_sim *s, struct dvm_frame *f)
{
	struct sim_dvm_node *n = &s->nodes[f->to];

	if (!is_for(n, f))
		return;
	begin(n);
	if (n->tree)
		sim_tree_node_take(n, f);
	else
		sim_node_head_says(n, f->data, f->len);
	free(f);
	turn(n);
}

void sim_node_started(struct dvm_sim *s, struct dvm_frame *f)
{
	const struct dvm_started_ranks *r = (const void *)f->data;
	struct sim_dvm_node *n = &s->nodes[f->to];

	if (!is_for(n, f))
		return;
	dvm_node_started(n->node, r->part, r->processes, r->count, 0, begin(n));
	free(f);
	turn(n);
}

void sim_process_exit(struct dvm_sim *s, uint32_t process)
{
	const struct dvm_process *p = &s->processes[process];
	struct sim_dvm_node *n = &s->nodes[p->node];
	const struct node_end end = { 0 };
	double seconds = units_seconds(p->time);

	if (!n->node || p->life != n->life) {
		give_process(s, process); /* it was killed */
		return;
	}
	s->core_s += seconds * p->cores;
	s->gpu_s += seconds * p->gpus;
	s->running--;
	begin(n);
	spend(n, s->scenario->dvm.exit, false);
	dvm_node_ended(n->node, p->part, p->slot, &end, dvm_sim_time(n->free));
	give_process(s, process);
	turn(n);
}

/* ---- life ---- */

int sim_node_begin(struct sim_dvm_node *n)
{
	static const struct dvm_node_ops ops = {
		.send = node_send, .open_output = open_output, .close_output = close_part,
		.open_pmi = open_pmi, .pmi_rank_ended = pmi_rank_ended,
		/* No rank fails here, so nobody waits for the end of its PMI. */
		.close_pmi = close_part, .all_started = close_part, .give_up = close_part,
		.profile = profile_known, .forget = close_part,
		.start = start, .signal = signal_part,
		.leave = leave,
	};
	const struct dvm_params *p = &n->sim->scenario->dvm;
	const struct dvm_register r = {
		.version = DVM_VERSION,
		.has = { (uint32_t)p->slots, (uint32_t)p->gpus, 0 },
		.build = { "sim", 3 },
		.name = { n->name, strlen(n->name) },
	};

	n->turn = SIM_TIME_MAX;
	begin(n);
	if (dvm_node_create(&n->node, &ops, n))
		return dvm_sim_fail(n->sim, "not enough memory");
	if (sim_tree_node_begin(n))
		return -1;
	dvm_node_register(n->node, &r);
	turn(n);
	return 0;
}

/* True: the process was of this daemon, which is killed. */
static bool is_running(const struct dvm_process *p, const struct sim_dvm_node *n)
{
	return p->node == n->number && p->life == n->life;
}

void sim_node_die(struct sim_dvm_node *n)
{
	struct dvm_sim *s = n->sim;

	for (uint32_t i = 0; i < s->nprocesses; i++)
		s->running -= is_running(&s->processes[i], n);
	dvm_node_destroy(n->node);
	sim_tree_node_end(n);
	n->node = NULL;
	n->life++;
}

static int make(struct dvm_sim *s, struct sim_dvm_node *n, struct sim_head *h)
{
	n->sim = s;
	n->number = (uint32_t)(n - s->nodes);
	n->head = h;
	n->position = n->number - h->first;
	n->factor = 1;
	snprintf(n->name, sizeof(n->name), "%s%u", s->scenario->dvm.names, n->number);
	return sim_node_begin(n);
}

int sim_nodes_make(struct dvm_sim *s)
{
	uint32_t i = 0;

	s->nnodes = (uint32_t)s->scenario->dvm.nodes;
	s->nodes = calloc(s->nnodes, sizeof(*s->nodes));
	if (!s->nodes)
		return dvm_sim_fail(s, "not enough memory");
	for (uint32_t h = 0; h < s->nheads; h++)
		for (; i < s->heads[h].first + s->heads[h].nodes; i++)
			if (make(s, &s->nodes[i], &s->heads[h]))
				return -1;
	return 0;
}

void sim_nodes_free(struct dvm_sim *s)
{
	for (uint32_t i = 0; s->nodes && i < s->nnodes; i++) {
		sim_tree_node_end(&s->nodes[i]);
		if (s->nodes[i].node)
			dvm_node_destroy(s->nodes[i].node);
	}
	free(s->nodes);
}
