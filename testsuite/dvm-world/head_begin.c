/* SPDX-License-Identifier: BSD-3-Clause */
/* How a head gets its daemons: those that wait for one, and new ones. */
#include "head_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- daemons that wait ---- */

static void begin(struct head_process *h);

static void answered(struct head_process *h)
{
	if (!--h->called)
		begin(h);
}

/* A daemon that was given up is called for as long as its ranks may run. */
static bool is_worth_it(const struct peer *p, uint64_t tries)
{
	const struct head_process *h = p->head;

	return p->kind == KIND_ENDS ? dvm_head_node_may_run(h->head, p->position) :
				      tries < CALL_MS / SECOND;
}

static void on_call(struct world *w, void *arg, uint64_t tries)
{
	struct peer *p = arg;
	struct head_process *h = p->head;
	bool reached = is_reachable(w, h->machine, daemon_machine(p->daemon));
	struct link_end mine, its;

	if (h->state == DEAD || p->link)
		return;
	if (!reached && is_worth_it(p, tries)) {
		after(w, SECOND, on_call, p, tries + 1);
		return;
	}
	if (reached && daemon_takes_head(p->daemon, h->number)) {
		mine = head_node_end(p);
		its = daemon_end(p->daemon);
		p->link = link_new(w, &mine, &its);
		daemon_join(p->daemon, p->link, h->number);
		if (p->kind == KIND_ENDS) {
			head_tell_to_end(p); /* the daemon sends GONE and ends */
			return;
		}
		h->nodes[p->position] = p;
		h->adopted++;
	}
	if (p->kind != KIND_ADOPTS)
		return;
	h->gone[p->position] = reached && daemon_is_gone(p->daemon);
	h->unheard = h->unheard || (!p->link && !h->gone[p->position]);
	answered(h);
}

void head_call_again(struct peer *p)
{
	if (is_worth_it(p, 0))
		after(p->head->w, SECOND, on_call, p, 0);
}

void head_call(struct head_process *h, uint32_t position, enum kind kind)
{
	struct peer *p = head_add_peer(h, kind);

	p->position = position;
	p->daemon = h->daemons[position];
	after(h->w, draw(h->w, 4 * h->w->plan.latency_ms + 1), on_call, p, 0);
}

/* ---- beginning ---- */

/* A daemon ends after its ranks, and no other starts before (src/dvm/node/claim.h). */
static bool is_free(const struct head_process *h, unsigned machine)
{
	const struct world *w = h->w;

	for (uint32_t i = 0; i < w->nranks; i++)
		if (w->ranks[i].runs && w->ranks[i].machine == machine)
			return false;
	for (uint32_t i = h->nold; i < DAEMONS_MAX; i++) /* a step of Slurm has a node once */
		if (h->daemons[i] && daemon_machine(h->daemons[i]) == machine)
			return false;
	return is_reachable(w, h->machine, machine) && !daemon_on(h->w, machine);
}

/* As Slurm does it: on any node where none is. */
static void on_start_daemon(struct world *w, void *arg, uint64_t position)
{
	struct head_process *h = arg;
	unsigned first = (unsigned)draw(w, NODES);

	if (h->state != RUNS)
		return;
	for (unsigned i = 0; i < NODES; i++) {
		unsigned machine = (first + i) % NODES;

		if (!is_free(h, machine))
			continue;
		h->daemons[position] = daemon_start(w, machine, h, (uint32_t)position);
		return;
	}
	after(w, START_RETRY_MS, on_start_daemon, h, position);
}

static void on_late(struct world *w, void *arg, uint64_t number)
{
	struct head_process *h = arg;

	if (h->state == RUNS && !h->ready)
		head_fails(h, "not all nodes have come");
}

static void be_without(struct head_process *h, uint32_t position)
{
	static const struct dvm_address nowhere; /* the world knows */

	dvm_head_node_absent(h->head, position, daemon_name(h->daemons[position]), &nowhere);
	if (h->gone[position])
		dvm_head_node_gone(h->head, position, head_now_of(h));
}

static void adopt(struct head_process *h)
{
	static const struct dvm_msg msg = { .type = DVM_ADOPT };
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &msg);
	for (uint32_t i = 0; i < h->nold; i++)
		if (h->nodes[i])
			link_send(h->nodes[i]->link, 0, b.data, b.len);
		else
			be_without(h, i);
}

/* The user may give the next head fewer nodes: perhaps the others are cut off. */
static uint32_t draw_nodes(const struct head_process *h)
{
	return h->number && draw_once_in(h->w, 2) ? NODES - 1 : NODES;
}

/* All daemons that were called have answered, or will not. */
static void begin(struct head_process *h)
{
	struct dvm_head_options options = {
		.name = "world", .build = "world", .grace_ms = 2000, .max_waiting = 1000,
		.queue = { .window = 100, .patience_ms = 60000 },
		.keeps = h->w->plan.orphan, .once = h->w->plan.once, .fast = h->w->plan.fast,
		.lease_ms = h->w->plan.lease_ms + h->w->plan.grace_ms,
		.away_ms = h->w->plan.away_ms,
	};
	uint32_t wanted = draw_nodes(h), more;

	options.unheard = h->unheard;
	if (!h->adopted) {
		h->nold = 0;
		memset(h->daemons, 0, sizeof(h->daemons));
	}
	more = h->adopted < wanted ? wanted - h->adopted : 0;
	options.nodes = h->nold + more;
	options.adopts = h->adopted;
	if (options.nodes > DAEMONS_MAX || dvm_head_create(&h->head, &options, &world_head_ops, h, NULL))
		abort();
	if (!h->adopted)
		head_tree_open(h);
	h->state = RUNS;
	trace(h->w, "head %u begins with %u daemons, %u are to come", h->number, h->adopted, more);
	adopt(h);
	for (uint32_t i = 0; i < more; i++)
		after(h->w, draw(h->w, SECOND), on_start_daemon, h, h->nold + i);
	after(h->w, WITHIN_MS, on_late, h, 0);
	head_turn(h);
}

static bool is_former_gone(const struct head_process *h)
{
	for (uint32_t i = 0; i < h->nformer; i++)
		if (!is_reachable(h->w, h->machine, daemon_machine(h->former[i])) ||
		    !daemon_is_gone(h->former[i]))
			return false;
	return true;
}

/* As src/dvm/head/former_nodes.c. */
static void on_call_former(struct world *w, void *arg, uint64_t number)
{
	struct head_process *h = arg;

	if (h->state == DEAD || (h->ready && !dvm_head_is_unheard(h->head)))
		return;
	if (h->ready && is_former_gone(h)) {
		trace(w, "head %u: all nodes of the last head are gone", h->number);
		dvm_head_former_gone(h->head, head_now_of(h));
		head_turn(h);
	}
	after(w, SECOND, on_call_former, h, 0);
}

/* The last head has written them down, if it knew all of those before. */
static void note_former(struct head_process *h)
{
	struct world *w = h->w;

	if (w->known_unheard || w->known_epoch + 1 != h->number)
		return;
	h->nformer = w->nknown;
	memcpy(h->former, w->known, h->nformer * sizeof(*h->former));
	after(w, SECOND, on_call_former, h, 0);
}

static void call_daemons(struct head_process *h)
{
	struct world *w = h->w;

	h->unheard = !w->plan.orphan || w->known_unheard;
	if (w->plan.orphan)
		h->nold = w->nknown;
	else
		note_former(h);
	memcpy(h->daemons, w->known, h->nold * sizeof(*h->daemons));
	h->called = h->nold + 1;
	for (uint32_t i = 0; i < h->nold; i++)
		head_call(h, i, KIND_ADOPTS);
	answered(h);
}

void head_start(struct world *w, unsigned machine, bool take_over)
{
	struct head_process *h;

	if (w->nheads == HEADS_MAX)
		abort();
	h = calloc(1, sizeof(*h));
	if (!h)
		abort();
	h->w = w;
	h->number = w->nheads;
	h->machine = machine;
	h->turn_ms = NEVER;
	w->heads[w->nheads++] = h;
	trace(w, "head %u starts on machine %u%s", h->number, machine,
	      take_over ? ", to take over" : "");
	if (store_open(&h->store, w, machine, h->number, take_over, &world_store_ops, h)) {
		head_forget(h);
		head_start_another(w, true);
		return;
	}
	call_daemons(h);
}
