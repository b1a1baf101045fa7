/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A head that goes on where another was lost, and the nodes waited for it. Each has said
 * what it holds of tasks: parts that run, or whose ends the other head may not have
 * written down. A task that the journal says has been started goes on with these. If some
 * nodes of a task are missing, its rest is ended, as when a node is lost. A part that
 * nobody wants is ended: the journal says that its task has.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct key {
	uint64_t task, instance; /* no padding between them */
};

/* The parts of a task that its nodes hold. */
struct held {
	struct key key;
	struct ledger_placement *placement; /* `ranks` 0: a part that no node holds */
	uint64_t started_ns;
	uint32_t parts, ended; /* parts on nodes, and ended ones */
	bool taken;
	UT_hash_handle hh;
};

struct adoption {
	struct dvm_head *h;
	struct held *all;
};

/* ---- what nodes hold ---- */

static struct held *find(struct adoption *a, uint64_t task, uint32_t instance)
{
	const struct key key = { task, instance };
	struct held *e;

	HASH_FIND(hh, a->all, &key, sizeof(key), e);
	return e;
}

static struct held *add(struct adoption *a, const struct dvm_held *m)
{
	struct held *e = calloc(1, sizeof(*e));

	if (e)
		e->placement = calloc(1, sizeof(*e->placement) +
				      m->nodes * sizeof(e->placement->parts[0]));
	if (!e || !e->placement) {
		free(e);
		return NULL;
	}
	e->key = (struct key){ m->task, m->instance };
	e->placement->count = m->nodes;
	e->started_ns = m->started_ns;
	HASH_ADD(hh, a->all, key, sizeof(e->key), e);
	if (e->hh.tbl)
		return e;
	free(e->placement);
	free(e);
	return NULL;
}

/* NULL, or what is wrong. */
static const char *note_held(struct adoption *a, uint32_t node,
			     const struct dvm_held *m)
{
	struct held *e = find(a, m->task, m->instance);

	if (m->nodes > a->h->options.nodes)
		return "the daemon reports a task on too many nodes";
	e = e ? e : add(a, m);
	if (!e)
		return strerror(ENOMEM);
	if (m->nodes != e->placement->count || e->placement->parts[m->node].ranks)
		return "the daemon reports ranks that another node reports, too";
	e->placement->parts[m->node] = (struct ledger_part){
		node, m->first_rank, m->ranks_here, m->cores, m->gpus, false,
	};
	e->parts++;
	if (m->started_ns < e->started_ns)
		e->started_ns = m->started_ns;
	return NULL;
}

/* The node has reported before that it holds this part. */
static void note_ended(struct adoption *a, const struct dvm_ended *m)
{
	struct held *e = find(a, m->task, m->instance);

	if (e)
		e->ended++;
}

/*
 * Messages of nodes that a pass reads: parts that they hold; how those have ended; all
 * others.
 */
enum pass { PASS_HELD, PASS_ENDS, PASS_REST };

/* NULL, or what is wrong. */
static const char *read_one(struct adoption *a, uint32_t node, enum pass pass,
			    const struct dvm_msg *m)
{
	bool end = m->type == DVM_ENDED || m->type == DVM_FAILED;

	if (pass == PASS_HELD && m->type == DVM_HELD)
		return note_held(a, node, &m->held);
	if (pass == PASS_HELD && m->type == DVM_ENDED)
		note_ended(a, &m->ended);
	return m->type == DVM_HELD || (pass == PASS_HELD) || (pass == PASS_ENDS && !end) ?
		       NULL : head_take(a->h, node, m);
}

/* Each message of a node, which is of those that make sense. */
static void read_early(struct adoption *a, uint32_t node, enum pass pass)
{
	struct head_node *n = &a->h->nodes[node];
	const char *why = NULL;
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, n->early.data, n->early.len);
	while (!why && cursor_left(&c))
		why = dvm_msg_unpack(&c, &m) ? "the daemon sent an invalid message" :
					       read_one(a, node, pass, &m);
	if (why)
		a->h->ops.node_break(a->h->arg, node, why);
	if (why || pass == PASS_REST)
		buf_free(&n->early);
}

static void read_all(struct adoption *a, enum pass pass)
{
	for (uint32_t i = 0; i < a->h->options.nodes; i++)
		if (!a->h->nodes[i].lost)
			read_early(a, i, pass);
}

struct adoption *adoption_create(struct dvm_head *h)
{
	struct adoption *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->h = h;
	read_all(a, PASS_HELD);
	return a;
}

/* ---- what goes on ---- */

bool adoption_is_whole(const struct dvm_head *h)
{
	for (uint32_t i = 0; i < h->options.nodes; i++)
		if (h->nodes[i].lost && !h->nodes[i].gone)
			return false;
	return !h->options.unheard;
}

/* Leave out parts that no node holds. */
static void close_gaps(struct ledger_placement *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->count; i++)
		if (p->parts[i].ranks)
			p->parts[n++] = p->parts[i];
	p->count = n;
}

/*
 * The parts of its last try that nodes hold: starts that the journal has lost, for they
 * were not safe, may have followed the one that it has.
 */
static struct held *find_last(struct adoption *a, const struct head_task *t)
{
	uint32_t retries = t->retries < RETRIES_MAX ? t->retries : RETRIES_MAX;
	uint32_t more = HEAD_INSTANCES_MAX + retries;
	struct held *last = NULL, *e;

	for (uint32_t i = 0; i <= more; i++) {
		e = find(a, t->id, t->instance + i);
		last = e ? e : last;
	}
	return last;
}

bool adoption_take(struct adoption *a, struct head_task *t, bool once)
{
	struct held *e = find_last(a, t);
	struct ledger_shape shape = *queue_shape(&t->item);
	struct ledger_placement *placement;
	uint32_t nodes;

	if (!e || task_begin_run(t))
		return false;
	nodes = e->placement->count;
	close_gaps(e->placement);
	shape.placed = e->placement;
	shape.named = false;
	if (ledger_place_running(a->h->ledger, &shape, &placement))
		return false;
	e->taken = true;
	t->instance = (uint32_t)e->key.instance;
	task_adopt(a->h, t, placement, e->started_ns);
	if (placement->count < nodes)
		task_lose_rest(a->h, t, once);
	return true;
}

bool adoption_is_over(struct adoption *a, const struct head_task *t)
{
	const struct held *e = find_last(a, t);

	return e && e->ended == e->parts;
}

void adoption_take_ends(struct adoption *a)
{
	read_all(a, PASS_ENDS);
}

/* ---- what does not ---- */

static void end_part(struct dvm_head *h, uint32_t node, const struct key *k)
{
	const struct dvm_msg m = {
		.type = DVM_SIGNAL,
		.signal = { k->task, (uint32_t)k->instance, SIGKILL },
	};

	done_pack(h, node, k->task, (uint32_t)k->instance);
	head_queue_msg(h, node, &m);
}

/*
 * A try that follows has another number, for this one's end is still to come. So has a
 * task that follows, if the journal has lost this one before it was safe.
 */
static void refuse(struct dvm_head *h, const struct held *e)
{
	struct head_task *t = task_find(h, e->key.task);

	for (uint32_t i = 0; i < e->placement->count; i++)
		if (e->placement->parts[i].ranks)
			end_part(h, e->placement->parts[i].node, &e->key);
	if (!t && e->key.task >= h->next_id)
		h->next_id = head_id_after(h, e->key.task);
	if (t && task_waits(t) && t->instance <= e->key.instance)
		t->instance = (uint32_t)e->key.instance + 1;
}

void adoption_end(struct adoption *a)
{
	struct held *e, *next;

	HASH_ITER(hh, a->all, e, next) {
		if (!e->taken)
			refuse(a->h, e);
		HASH_DEL(a->all, e);
		free(e->placement);
		free(e);
	}
	read_all(a, PASS_REST);
	free(a);
}
