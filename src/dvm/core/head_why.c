/* SPDX-License-Identifier: BSD-3-Clause */
/* The request "why": reasons why a task waits, or the state of its ranks. */
#include "dvm/core/head_private.h"
#include "libutil/plural.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- reasons ---- */

__attribute__((format(printf, 2, 3)))
static void add(struct buf *reasons, const char *fmt, ...)
{
	char text[DVM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)buf_append(reasons, text, strlen(text) + 1);
}

/* ---- what it lacks ---- */

static void lacks_counters(const struct dvm_head *h, const struct ledger_shape *s,
			   struct buf *reasons)
{
	const char *name;
	uint32_t left;

	for (uint32_t i = 0; (name = ledger_counter(h->ledger, i, &left)); i++)
		if (s->counters[i] > left)
			add(reasons, "needs %u of %s; left: %u", s->counters[i],
			    name, left);
}

static void lacks_places(const struct dvm_head *h, const struct ledger_shape *s,
			 struct buf *reasons)
{
	for (uint32_t i = 0; i < s->placed->count; i++)
		if (!ledger_place_is_free(h->ledger, s, i))
			add(reasons, "the requested cores or GPUs of node %s are not free",
			    head_node_name(h, s->placed->parts[i].node));
}

/* A kind of resource: what is needed on a node, and where there is most of it. */
struct want {
	const char *what; /* of one */
	uint64_t needed;
	uint64_t most;
	uint32_t node; /* NODE_NONE: nowhere */
};

enum { WANT_CORES, WANT_GPUS, WANT_MEMORY, WANTS };

static void look_at(struct want *w, uint64_t has, uint32_t node)
{
	if (w->node != NODE_NONE && has <= w->most)
		return;
	w->most = has;
	w->node = node;
}

static void find_most(const struct dvm_head *h, const struct ledger_shape *s,
		      struct want wants[WANTS])
{
	struct ledger_resources left;

	for (uint32_t i = 0; i < ledger_nodes(h->ledger); i++) {
		if (!ledger_may_use(s, i) || !ledger_node_free(h->ledger, i, &left))
			continue;
		look_at(&wants[WANT_CORES], left.cores, i);
		look_at(&wants[WANT_GPUS], left.gpus, i);
		look_at(&wants[WANT_MEMORY], left.memory, i);
	}
}

static bool add_lack(const struct dvm_head *h, const struct want *w, struct buf *reasons)
{
	if (w->node == NODE_NONE || w->most >= w->needed)
		return false;
	add(reasons, "needs %" PRIu64 " free %s%s on a node; most free: %" PRIu64 " on %s",
	    w->needed, w->what, plural(w->needed), w->most, head_node_name(h, w->node));
	return true;
}

/* Nodes that the head has drained itself, and that could run the task otherwise. */
static void add_drained(const struct dvm_head *h, struct buf *reasons)
{
	for (uint32_t i = 0; i < ledger_nodes(h->ledger); i++)
		if (!h->nodes[i].lost && h->nodes[i].drained_why)
			add(reasons, "node %s is drained: %s", head_node_name(h, i),
			    h->nodes[i].drained_why);
}

/* All its ranks are to be on one node. */
static void lacks_a_node(const struct dvm_head *h, const struct ledger_shape *s,
			 struct buf *reasons)
{
	struct want wants[WANTS] = {
		[WANT_CORES] = { "core", (uint64_t)s->ranks * s->cores, 0, NODE_NONE },
		[WANT_GPUS] = { "GPU", (uint64_t)s->ranks * s->gpus, 0, NODE_NONE },
		[WANT_MEMORY] = { "byte", s->memory * s->ranks, 0,
				  NODE_NONE },
	};
	bool any = false;

	find_most(h, s, wants);
	if (wants[WANT_CORES].node == NODE_NONE) {
		add(reasons, "%s accepts tasks: each is lost, drained, or used by an --exclusive task",
		    s->named ? "none of the named nodes" : "no node");
		add_drained(h, reasons);
		return;
	}
	for (int i = 0; i < WANTS; i++)
		any |= add_lack(h, &wants[i], reasons);
	if (!any)
		add(reasons, s->exclusive ?
			"needs an idle node" :
			"no node has all of the needed resources free at once");
}

/*
 * The number of nodes that take `ranks` or more of it, and the number that all nodes take
 * together.
 */
static uint32_t nodes_that_take(const struct dvm_head *h, const struct ledger_shape *s,
				uint32_t ranks, uint64_t *all)
{
	uint32_t n = 0;

	*all = 0;
	for (uint32_t i = 0; i < ledger_nodes(h->ledger); i++) {
		uint32_t takes = ledger_node_takes(h->ledger, s, i);

		n += takes >= ranks;
		*all += takes;
	}
	return n;
}

static void put_rank(const struct ledger_shape *s, char *out, size_t size)
{
	int n = snprintf(out, size, "%u core%s", s->cores, plural(s->cores));

	if (s->gpus)
		n += snprintf(out + n, size - (size_t)n, ", %u GPU%s", s->gpus,
			      plural(s->gpus));
	if (s->memory)
		snprintf(out + n, size - (size_t)n, ", %" PRIu64 " bytes of memory",
			 s->memory);
}

/* The ranks may be, or must be, on several nodes. */
static void lacks_nodes(const struct dvm_head *h, const struct ledger_shape *s,
			struct buf *reasons)
{
	uint32_t each = s->nodes ? s->ranks / s->nodes : 1, n;
	const char *alone = s->exclusive ? " and nothing else on them" : "";
	char rank[128];
	uint64_t all;

	each += s->nodes && s->ranks % s->nodes;
	n = nodes_that_take(h, s, each, &all);
	put_rank(s, rank, sizeof(rank));
	if (s->nodes)
		add(reasons, "needs %u node%s with room for %u rank%s of %s%s; there %s %u",
		    s->nodes, plural(s->nodes), each, plural(each), rank, alone,
		    n == 1 ? "is" : "are", n);
	else
		add(reasons, "needs room for %u rank%s of %s%s; there is room for %" PRIu64,
		    s->ranks, plural(s->ranks), rank, alone, all);
}

static void lacks(const struct dvm_head *h, const struct ledger_shape *s,
		  struct buf *reasons)
{
	size_t before;

	lacks_counters(h, s, reasons);
	before = reasons->len;
	if (s->placed && !s->named)
		lacks_places(h, s, reasons);
	else if (before)
		return;
	else if (s->ranks == 1 || s->nodes == 1)
		lacks_a_node(h, s, reasons);
	else
		lacks_nodes(h, s, reasons);
}

/* ---- others ---- */

/* The task fits, and does not run: say why. */
static void is_held(struct dvm_head *h, const struct head_task *t, size_t before,
		    struct buf *reasons)
{
	const struct queue_item *held = queue_held_for(h->queue, h->ledger, &t->item,
						       h->now.ms);

	if (held)
		add(reasons, "the task would fit, but all slots are reserved for task %" PRIu64 ", which has waited longer than --patience (%" PRIu64 " s)",
		    task_of_item(held)->id, h->options.queue.patience_ms / 1000);
	else if (before > h->options.queue.window)
		add(reasons, "the task would fit, but at most %u task%s may pass a waiting one",
		    h->options.queue.window, plural(h->options.queue.window));
	else
		add(reasons, "the task fits and is about to start");
}

static void is_behind(const struct queue_item *first, size_t before, struct buf *reasons)
{
	if (before == 1)
		add(reasons, "task %" PRIu64 " comes before it", task_of_item(first)->id);
	else if (before)
		add(reasons, "%zu tasks come before it, task %" PRIu64 " first", before,
		    task_of_item(first)->id);
}

static void not_written(const struct dvm_head *h, struct buf *reasons)
{
	if (h->journal.error)
		add(reasons, "nothing is started until the journal can be written: %s",
		    strerror(-h->journal.error));
}

static void why_queued(struct dvm_head *h, const struct head_task *t, struct buf *reasons)
{
	const struct ledger_shape *s = queue_shape(&t->item);
	const struct queue_item *first;
	size_t before = queue_before(h->queue, &t->item, &first);

	if (ledger_fits(h->ledger, s))
		is_held(h, t, before, reasons);
	else
		lacks(h, s, reasons);
	is_behind(first, before, reasons);
}

static void is_unread(struct dvm_head *h, const struct head_task *t, struct buf *reasons)
{
	char who[64];
	uint32_t node = output_waits(h, t, who, sizeof(who));

	if (node != NODE_NONE)
		add(reasons, "its output on node %s is not being read by %s: ranks that write more wait",
		    head_node_name(h, node), who);
}

void why_reasons(struct dvm_head *h, const struct head_task *t, struct buf *reasons)
{
	if (t->state == TASK_HELD)
		add(reasons, "ranks of the task may still run on nodes of the previous head: the task waits for %" PRIu64 " s",
		    (h->unheard_ms - h->now.ms + 999) / 1000);
	else if (t->state == TASK_COMING)
		add(reasons, "its client is still submitting tasks: the largest of all is started first (--order)");
	else if (t->state == TASK_QUEUED)
		why_queued(h, t, reasons);
	if (task_waits(t) || t->state == TASK_PLACED)
		not_written(h, reasons);
	if (task_runs(t) && t->cancelled)
		add(reasons, "the task was cancelled, and its ranks are being ended");
	else if (task_runs(t) && (t->run->loss || t->status))
		add(reasons, "a rank of the task failed, and the other ranks are being ended%s%s",
		    t->why ? ": " : "", t->why ? t->why : "");
	is_unread(h, t, reasons);
}

/* ---- nodes ---- */

uint32_t why_ask(struct dvm_head *h, const struct head_task *t, uint32_t client)
{
	struct dvm_msg m = {
		.type = DVM_ASK,
		.ask = { .task = t->id, .instance = t->instance, .client = client },
	};

	if (t->state != TASK_LAUNCHED)
		return 0;
	for (uint32_t i = 0; i < t->run->placement->count; i++) {
		m.ask.node = i;
		head_queue_msg(h, t->run->placement->parts[i].node, &m);
	}
	return t->run->placement->count;
}

void why_told(struct dvm_head *h, const struct dvm_told *m)
{
	const struct head_task *t = task_find(h, m->about.task);
	struct head_event e = { .type = EVENT_TOLD, .told = { .m = m } };
	const struct ledger_placement *where = t ? task_run(t)->placement : NULL;

	if (!where || t->instance != m->about.instance || m->about.node >= where->count)
		return;
	e.told.task = t->id;
	e.told.outputs = t->profile->outputs;
	e.told.node = head_node_name(h, where->parts[m->about.node].node);
	client_tell(h, m->about.client, &e);
}
