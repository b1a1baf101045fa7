/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's life, and its nodes. */
#include "dvm/core/head_private.h"
#include "libutil/plural.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODE_OUT_MAX ((size_t)512 << 20) /* bytes of messages of a turn */

/* ---- life ---- */

int dvm_head_create(struct dvm_head **out, const struct dvm_head_options *options,
		    const struct dvm_head_ops *ops, void *arg,
		    const struct log_hook *log)
{
	struct dvm_head *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->options = *options;
	h->ops = *ops;
	h->arg = arg;
	h->log = log;
	h->adopting = options->adopts;
	h->next_id = head_id_after(h, 0);
	for (int i = 0; i < NODE_LISTS; i++)
		h->list_first[i] = NODE_NONE;
	journal_init(h);
	buf_init(&h->node_names, NODE_OUT_MAX);
	h->nodes = calloc(options->nodes, sizeof(*h->nodes));
	if (!h->nodes || tasks_init(h) || ledger_create(&h->ledger) ||
	    queue_create(&h->queue, &options->queue)) {
		dvm_head_destroy(h);
		return -ENOMEM;
	}
	*out = h;
	return 0;
}

int dvm_head_add_counter(struct dvm_head *h, const char *name, uint32_t amount)
{
	int rc = ledger_add_counter(h->ledger, name, amount);

	return rc < 0 ? rc : 0;
}

void dvm_head_destroy(struct dvm_head *h)
{
	struct head_client *c, *next;

	if (!h)
		return;
	tasks_free(h);
	HASH_ITER(hh, h->clients, c, next)
		dvm_head_client_closed(h, c->number, h->now);
	head_forget_names(h);
	for (uint32_t i = 0; h->nodes && i < dvm_head_positions(h); i++)
		head_node_free(&h->nodes[i]);
	head_growth_forget(h);
	free(h->nodes);
	buf_free(&h->node_names);
	journal_free(h);
	queue_destroy(h->queue);
	ledger_destroy(h->ledger);
	free(h->buckets);
	free(h->spare);
	free(h);
}

/* ---- nodes ---- */

void dvm_head_node_address(struct dvm_head *h, uint32_t node, const uint8_t ip[16])
{
	memcpy(h->nodes[node].address.ip, ip, sizeof(h->nodes[node].address.ip));
}

/* All have registered: the ledger has them in order, whoever came first. */
static int open_ledger(struct dvm_head *h)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < h->options.nodes; i++) {
		rc = ledger_add_node(h->ledger, &h->nodes[i].has);
		if (!rc && h->nodes[i].lost)
			ledger_lose_node(h->ledger, i);
	}
	return rc;
}

static int add_node(struct dvm_head *h, uint32_t node, const struct dvm_register *r)
{
	struct head_node *n = &h->nodes[node];

	n->name = strndup(r->name.data, r->name.len);
	if (!n->name)
		return -ENOMEM;
	n->has = r->has;
	n->address.port = r->port;
	buf_init(&n->out, NODE_OUT_MAX);
	buf_init(&n->done, NODE_OUT_MAX);
	buf_init(&n->later, NODE_OUT_MAX);
	buf_init(&n->early, NODE_OUT_MAX);
	if (node >= h->options.nodes) {
		head_growth_registered(h);
		return 0;
	}
	if (head_add_name(h, node))
		return -ENOMEM;
	return ++h->registered == h->options.nodes ? open_ledger(h) : 0;
}

void dvm_head_node_absent(struct dvm_head *h, uint32_t node, const char *name,
			  const struct dvm_address *where)
{
	const struct dvm_register r = {
		.name = { name, strlen(name) }, .has = { .cores = 1 }, .port = where->port,
	};

	if (h->nodes[node].name)
		return;
	h->nodes[node].address = *where;
	h->nodes[node].lost = true;
	(void)add_node(h, node, &r);
}

/* ---- what nodes say ---- */

static const char *take_register(struct dvm_head *h, uint32_t node,
				 const struct dvm_register *r)
{
	int rc;

	if (h->nodes[node].name)
		return "the daemon registered twice";
	if (r->version != DVM_VERSION)
		return "the version of pmi2x-dvmd differs";
	rc = add_node(h, node, r);
	return rc ? strerror(-rc) : NULL;
}

/* At once and by itself: it is pmi2x-dvmd's, which does not read what is for others. */
static void answer_lease(struct dvm_head *h, uint32_t node, const struct dvm_msg *m)
{
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (!dvm_msg_pack(&b, m))
		h->ops.node_send(h->arg, node, b.data, b.len);
}

const char *head_take(struct dvm_head *h, uint32_t node, const struct dvm_msg *m)
{
	switch (m->type) {
	case DVM_STARTED:
		task_started(h, &m->started);
		return NULL;
	case DVM_FAILING:
		task_failing(h, &m->started);
		return NULL;
	case DVM_FAILED:
		task_failed(h, &m->failed);
		return NULL;
	case DVM_OUTPUT:
		task_output(h, node, &m->output);
		return NULL;
	case DVM_BULK:
		return NULL;
	case DVM_ENDED:
		task_part_ended(h, node, &m->ended);
		return NULL;
	case DVM_LEASE:
		answer_lease(h, node, m);
		return NULL;
	case DVM_GONE:
		h->nodes[node].gone = true;
		return NULL;
	case DVM_NAMES:
		asks_names(h, node, &m->names);
		return NULL;
	case DVM_SPAWN:
		asks_spawn(h, node, &m->spawn);
		return NULL;
	case DVM_READY:
		asks_ready(h, &m->ready);
		return NULL;
	case DVM_TOLD:
		why_told(h, &m->told);
		return NULL;
	default:
		return "the daemon sent a message that only a head may send";
	}
}

/* A message about tasks is of use once this head knows them. */
static const char *keep_early(struct head_node *n, struct cursor *c)
{
	size_t len = cursor_left(c);

	return buf_append(&n->early, unpack_raw(c, len), len) ?
	       "the daemon sent too much before it was registered" : NULL;
}

/*
 * The daemon of a node whose zygote cannot be started says that no rank runs, and ends. In a
 * tree, LEASE may overtake REGISTER when a relay moves: LEASE has no number (session.h).
 */
static bool may_come_first(const struct dvm_msg *m)
{
	return m->type == DVM_GONE || m->type == DVM_LEASE;
}

/* A node that was adopted may still send messages that were meant for another head. */
static const char *take(struct dvm_head *h, uint32_t node, const struct dvm_msg *m)
{
	if (m->type == DVM_REGISTER)
		return take_register(h, node, &m->reg);
	if (!h->nodes[node].name)
		return h->options.adopts || may_come_first(m) ? NULL : "the daemon has not registered";
	return head_take(h, node, m);
}

/* A lease is answered at once: ranks run while their node waits for this head to resume. */
static bool is_lease(const struct cursor *c)
{
	struct cursor at = *c;

	return unpack_u8(&at) == DVM_LEASE;
}

/* A message that has been read, which began when `left` bytes were left. */
static void count_message(struct dvm_head *h, const struct dvm_msg *m, size_t left,
			  const struct cursor *c)
{
	if (m->type == DVM_LEASE)
		return;
	h->traffic.messages++;
	h->traffic.bytes += left - cursor_left(c);
}

void dvm_head_node_input(struct dvm_head *h, uint32_t node, const void *data,
			 size_t len, struct dvm_time now)
{
	const char *why = NULL;
	struct dvm_msg m;
	struct cursor c;
	size_t left;

	h->now = now;
	if (node >= dvm_head_positions(h))
		return; /* others could not join with it */
	h->nodes[node].heard_ms = now.ms;
	cursor_init(&c, data, len);
	while (!why && (left = cursor_left(&c)))
		if (h->adopting && h->nodes[node].name && !is_lease(&c)) {
			why = keep_early(&h->nodes[node], &c);
		} else if (dvm_msg_unpack(&c, &m)) {
			why = "the daemon sent an invalid message";
		} else {
			count_message(h, &m, left, &c);
			why = take(h, node, &m);
		}
	if (why)
		h->ops.node_break(h->arg, node, why);
}

/* ---- turns ---- */

static void send_to_nodes(struct dvm_head *h)
{
	uint32_t i;

	while ((i = head_take_listed(h, NODES_OUT)) != NODE_NONE) {
		struct head_node *n = &h->nodes[i];

		if (n->out.len && !n->lost)
			h->ops.node_send(h->arg, i, n->out.data, n->out.len);
		buf_clear(&n->out);
	}
}

static void leave(struct dvm_head *h)
{
	const struct dvm_msg m = { .type = DVM_LEAVE };

	h->phase = HEAD_LEFT;
	for (uint32_t i = 0; i < h->options.nodes; i++)
		head_queue_msg(h, i, &m);
}

/*
 * With a journal, tasks do not end for lack of nodes at once: an allocation that ends
 * takes one node after another, and then they are for the head that goes on.
 */
static void end_hopeless(struct dvm_head *h)
{
	if (!h->journal.on || !h->hopeless_ms || h->now.ms < h->hopeless_ms ||
	    (head_has_lost_all(h) && h->nrunning)) /* on one of these, perhaps */
		return;
	h->hopeless_ms = 0;
	if (!head_has_lost_all(h)) {
		tasks_fail_impossible(h);
		return;
	}
	log_error(h->log, "all nodes are lost, and %zu task%s %s queued: continue with pmi2x-dvm up --resume",
		  h->nqueued, plural(h->nqueued), is_or_are(h->nqueued));
	journal_left(h);
	leave(h);
}

/* True: nothing runs, and nothing will. */
static bool is_done(const struct dvm_head *h)
{
	if (h->nrunning)
		return false;
	return h->phase == HEAD_STOPS || (h->phase == HEAD_DRAINS && !h->nqueued) ||
	       (!h->journal.on && !h->growth.nodes && head_has_lost_all(h));
}

/* Report placements that are in the journal, and ends that are safe in it. */
static void tell(struct dvm_head *h)
{
	bool done = is_done(h), written;

	if (done)
		journal_left(h);
	written = journal_flush(h);
	done_send(h);
	if (written) {
		tasks_launch(h);
	} else if (done) {
		log_error(h->log, "the journal misses ends of tasks: pmi2x-dvm up --resume will run these tasks again");
	}
	if (written || done)
		report_turn(h);
	output_turn(h);
	if (done)
		leave(h);
}

void dvm_head_turn(struct dvm_head *h, struct dvm_time now)
{
	bool was = h->phase == HEAD_LEFT;

	h->now = now;
	head_nodes_turn(h);
	head_unreached_turn(h);
	end_hopeless(h);
	head_stop_turn(h);
	submits_turn(h);
	if (h->phase != HEAD_STOPS && journal_ready(h))
		tasks_place(h);
	tell(h);
	send_to_nodes(h);
	if (!was && h->phase == HEAD_LEFT)
		h->ops.end(h->arg);
}
