/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon's links in the tree of control: to its parent, and to its children. This is a
 * short form of src/dvm/node/tree_link.c.
 */
#include "daemon_private.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define LEAVE_MS (5 * SECOND)    /* for children to go to other relays */
#define WITHIN_MS (120 * SECOND) /* in which a daemon tries to reach its head */
#define TELL_MS 100              /* between two looks at whether the head has sent addresses */
#define TURN_MS 4                /* of a relay, at most */

static const uint8_t no_ip[16];

struct child {
	struct daemon_tree *tree;
	struct link *link;
	uint32_t position;
	bool taken; /* it has sent a frame */
	struct child *prev, *next;
};

struct daemon_tree {
	struct daemon *d;
	const struct head_process *head;
	uint32_t position;
	struct tree_node node;
	uint32_t ancestors[TREE_ANCESTORS_MAX]; /* the nearest first */
	uint32_t count;
	uint32_t next;       /* the next one to try; behind them: the head */
	uint32_t parent;     /* at the other end of d->head, or TREE_HEAD */
	uint64_t dials;      /* counts tries to connect */
	bool dialing;
	bool try_again;      /* the head may answer later */
	uint64_t begun_ms;   /* when it began to look for a parent */
	uint64_t moved_ms;   /* when it last left a parent that did not answer */
	bool refused;        /* the parent was lost before the node had attached */
	bool parent_leaves;
	bool changed;        /* the node has got messages */
	bool flushes;        /* an event will */
	bool leaves;
	struct child *children;
};

/* ---- turns ---- */

static void check_parent(struct daemon_tree *t);

static void flush(struct world *w, void *arg, uint64_t number)
{
	struct daemon_tree *t = arg;

	t->flushes = false;
	if (t->d->tree == t)
		tree_node_turn(&t->node);
}

/* Messages of a moment leave together. */
static void flush_soon(struct daemon_tree *t)
{
	struct world *w = t->d->w;

	if (!t->flushes)
		after(w, draw(w, TURN_MS), flush, t, 0);
	t->flushes = true;
}

/* Messages have come from the parent or from a child. */
static void take_turn(struct daemon_tree *t)
{
	struct daemon *d = t->d;

	if (t->changed && d->node)
		daemon_turn(d);
	t->changed = false;
	flush_soon(t);
	if (d->tree == t)
		check_parent(t);
}

/* ---- children ---- */

static struct child *find_child(const struct daemon_tree *t, uint32_t position)
{
	struct child *c;

	DL_FOREACH(t->children, c)
		if (c->position == position && c->taken)
			return c;
	return NULL;
}

static void drop_child(struct child *c, const char *why)
{
	struct daemon_tree *t = c->tree;

	DL_DELETE(t->children, c);
	link_close(c->link, 0);
	if (c->taken)
		tree_node_child_lost(&t->node, c->position, why);
	free(c);
}

/* The last that the head hears: no rank is left. */
static void say_gone(struct daemon_tree *t)
{
	static const char gone = DVM_GONE;
	struct daemon *d = t->d;

	if (tree_node_send(&t->node, &gone, 1))
		abort();
	daemon_tree_close(d, link_close);
	link_close(d->head, d->end);
	d->head = NULL;
}

static void check_left(struct daemon_tree *t)
{
	if (t->leaves && !t->children)
		say_gone(t);
}

static void on_late(struct world *w, void *arg, uint64_t number)
{
	struct daemon_tree *t = arg;

	if (t->d->tree != t)
		return;
	while (t->children)
		drop_child(t->children, "its parent leaves");
	check_left(t);
}

void daemon_tree_leave(struct daemon *d)
{
	struct daemon_tree *t = d->tree;

	t->leaves = true;
	tree_node_leave(&t->node);
	flush_soon(t);
	after(d->w, LEAVE_MS, on_late, t, 0);
	check_left(t);
}

/* False: this one takes no children. */
static bool take_child(struct child *c)
{
	struct daemon_tree *t = c->tree;
	struct child *old = find_child(t, c->position);

	if (t->leaves || !t->d->node)
		return false;
	if (old)
		drop_child(old, "it has connected again");
	c->taken = true;
	if (tree_node_child(&t->node, c->position))
		abort();
	return true;
}

static void on_child_says(void *arg, const void *data, size_t len)
{
	struct child *c = arg;
	struct daemon_tree *t = c->tree;

	if (!c->taken && !take_child(c)) {
		drop_child(c, "");
		return;
	}
	if (!bundle_is(data, len))
		tree_node_child_gone(&t->node, c->position);
	else if (tree_node_input(&t->node, c->position, data, len, no_ip))
		failed(t->d->w, "%s cannot read what node %u says", t->d->name, c->position);
	take_turn(t);
}

static void on_child_ended(void *arg, const char *why)
{
	struct child *c = arg;
	struct daemon_tree *t = c->tree;

	drop_child(c, why);
	flush_soon(t);
	check_left(t);
}

static struct link *accept_child(struct daemon_tree *t, struct daemon *child)
{
	struct child *c = calloc(1, sizeof(*c));
	const struct link_end mine = { t->d->machine, on_child_says, on_child_ended, c };
	const struct link_end its = daemon_end(child);

	if (!c)
		abort();
	*c = (struct child){ .tree = t, .position = child->tree->position };
	c->link = link_new(t->d->w, &mine, &its);
	DL_APPEND(t->children, c);
	return c->link;
}

/* ---- the parent ---- */

static void on_dialed(struct world *w, void *arg, uint64_t number);

static void dial(struct daemon_tree *t)
{
	struct world *w = t->d->w;

	t->dialing = true;
	after(w, draw(w, w->plan.latency_ms + 1), on_dialed, t, ++t->dials);
}

static void connect_from(struct daemon_tree *t, uint32_t first)
{
	t->next = first;
	dial(t);
}

static void on_try_again(struct world *w, void *arg, uint64_t number)
{
	struct daemon_tree *t = arg;

	if (t->d->tree == t && t->d->node && number == t->dials)
		connect_from(t, 0);
}

/* All have been tried. An older link goes on. */
static void wait_to_try_again(struct daemon_tree *t)
{
	struct daemon *d = t->d;

	t->dialing = false;
	if (d->head || !d->node)
		return;
	if (t->try_again && d->w->ms - t->begun_ms < WITHIN_MS)
		after(d->w, SECOND, on_try_again, t, t->dials);
	else
		daemon_loses_head(d, "it cannot be reached");
}

static void dial_next(struct daemon_tree *t)
{
	if (t->next++ < t->count)
		dial(t);
	else
		wait_to_try_again(t);
}

static void refused(struct daemon_tree *t)
{
	t->try_again = false;
	dial_next(t);
}

static void on_no_answer(struct world *w, void *arg, uint64_t number)
{
	struct daemon_tree *t = arg;

	if (t->d->tree != t || !t->dialing || number != t->dials)
		return;
	t->try_again = t->next >= t->count;
	dial_next(t);
}

static void have_parent(struct daemon_tree *t, struct link *l, uint32_t parent)
{
	struct daemon *d = t->d;

	trace(d->w, "%s: its parent is %d", d->name, (int)parent);
	t->dialing = false;
	link_close(d->head, d->end);
	d->head = l;
	d->end = 1;
	t->parent = parent;
	daemon_start_ranks(d);
	if (tree_node_up(&t->node))
		abort();
	flush_soon(t);
}

static struct daemon *process_at(const struct daemon_tree *t)
{
	return t->next < t->count ? head_daemon(t->head, t->ancestors[t->next]) : NULL;
}

static void on_dialed(struct world *w, void *arg, uint64_t number)
{
	struct daemon_tree *t = arg;
	struct daemon *d = t->d, *to = process_at(t);
	unsigned machine = to ? to->machine : head_machine(t->head);

	if (d->tree != t || !d->node || !t->dialing || number != t->dials)
		return;
	if (!to && d->head && t->parent == TREE_HEAD)
		t->dialing = false;
	else if (!is_reachable(w, d->machine, machine))
		after(w, CONNECT_MS, on_no_answer, t, number);
	else if (to && to->tree)
		have_parent(t, accept_child(to->tree, d), t->ancestors[t->next]);
	else if (!to && head_serves(t->head))
		have_parent(t, head_take_daemon(w->heads[head_number(t->head)], d, t->position),
			    TREE_HEAD);
	else
		refused(t);
}

/* The place behind the parent among the ancestors. */
static uint32_t behind_parent(const struct daemon_tree *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->ancestors[i] == t->parent)
			return i + 1;
	return t->count;
}

static void check_parent(struct daemon_tree *t)
{
	struct daemon *d = t->d;

	if (t->parent_leaves && d->head && d->node && !t->dialing)
		connect_from(t, behind_parent(t));
	t->parent_leaves = false;
}

void daemon_tree_ended(struct daemon *d, const char *why)
{
	struct daemon_tree *t = d->tree;

	trace(d->w, "%s: its parent is lost: %s", d->name, why);
	d->head = NULL;
	t->refused = t->node.state != TREE_ATTACHED;
	tree_node_down(&t->node);
	if (!d->node || t->leaves)
		return; /* it ends soon */
	if (t->parent == TREE_HEAD) {
		daemon_loses_head(d, why);
	} else if (!t->dialing) {
		t->begun_ms = d->w->ms;
		t->try_again = false;
		connect_from(t, t->refused ? behind_parent(t) : 0);
	}
}

void daemon_break_link(struct daemon *d)
{
	if (!d->tree || !d->head)
		return;
	trace(d->w, "%s: its link breaks", d->name);
	link_reset(d->head, d->end);
	daemon_tree_ended(d, "it was reset");
}

void daemon_tree_try_another(struct daemon *d, uint64_t now_ms)
{
	struct daemon_tree *t = d->tree;
	uint64_t since = d->lease.answered_ms > t->moved_ms ? d->lease.answered_ms : t->moved_ms;

	if (!d->head || t->parent == TREE_HEAD || t->dialing ||
	    now_ms < since + d->w->plan.lease_ms / 3)
		return;
	promise_answer(d->w, d);
	t->moved_ms = now_ms;
	connect_from(t, behind_parent(t));
}

void daemon_tree_says(struct daemon *d, const void *data, size_t len)
{
	struct daemon_tree *t = d->tree;

	if (!bundle_is(data, len) || tree_node_input(&t->node, RELAY_UP, data, len, no_ip))
		failed(d->w, "%s cannot read what its parent says", d->name);
	else
		take_turn(t);
}

/* ---- operations ---- */

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct daemon_tree *t = arg;
	struct child *c = link == RELAY_UP ? NULL : find_child(t, link);

	if (link == RELAY_UP && t->d->head)
		link_send(t->d->head, t->d->end, data, len);
	else if (c)
		link_send(c->link, 0, data, len);
}

static void on_input(void *arg, const void *data, size_t len)
{
	struct daemon_tree *t = arg;

	t->changed = t->d->node && daemon_takes(t->d, data, len);
}

static void on_attached(void *arg)
{
	((struct daemon_tree *)arg)->changed = true; /* output may wait */
}

static void on_parents(void *arg, const struct tree_ancestor *list, uint32_t count)
{
	struct daemon_tree *t = arg;

	for (uint32_t i = 0; i < count; i++)
		t->ancestors[i] = list[i].position;
	t->count = count;
	if (t->d->node)
		connect_from(t, 0);
}

static void on_leaving(void *arg)
{
	((struct daemon_tree *)arg)->parent_leaves = true;
}

static void on_fail(void *arg, uint32_t link)
{
	abort();
}

/* ---- life ---- */

/* Nodes without children get the addresses of those that are to have some. */
static void on_addresses(struct world *w, void *arg, uint64_t number)
{
	struct daemon_tree *t = arg;
	uint32_t at = t->position;

	if (t->d->tree != t || !t->d->node)
		return;
	if (!head_lives(t->head)) {
		daemon_loses_head(t->d, "it has sent no addresses");
		return;
	}
	if (!head_has_told(t->head)) {
		after(w, TELL_MS, on_addresses, t, 0);
		return;
	}
	while ((at = tree_parent(at, w->plan.width)) != TREE_HEAD)
		t->ancestors[t->count++] = at;
	t->begun_ms = w->ms;
	connect_from(t, 0);
}

void daemon_tree_open(struct daemon *d, const struct head_process *h, uint32_t position)
{
	static const struct tree_node_ops ops = {
		.send = on_send, .input = on_input, .attached = on_attached,
		.parents = on_parents, .leaving = on_leaving, .fail = on_fail,
	};
	struct daemon_tree *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	*t = (struct daemon_tree){
		.d = d, .head = h, .position = position, .parent = TREE_HEAD,
		.begun_ms = d->w->ms,
	};
	d->tree = d->first_tree = t;
	tree_node_init(&t->node, position, &ops, t);
	if (position < head_relays(h))
		connect_from(t, 0);
	else
		on_addresses(d->w, t, 0);
}

void daemon_tree_send(struct daemon *d, const void *data, size_t len)
{
	if (tree_node_send(&d->tree->node, data, len))
		abort();
	flush_soon(d->tree);
}

bool daemon_tree_is_attached(const struct daemon *d)
{
	return d->tree->node.state == TREE_ATTACHED;
}

void daemon_tree_close(struct daemon *d, void (*leave)(struct link *l, int end))
{
	struct daemon_tree *t = d->tree;
	struct child *c, *next;

	if (!t)
		return;
	if (leave == link_close)
		tree_node_turn(&t->node);
	d->tree = NULL;
	DL_FOREACH_SAFE(t->children, c, next) {
		if (leave)
			leave(c->link, 0);
		DL_DELETE(t->children, c);
		free(c);
	}
}

void daemon_tree_free(struct daemon *d)
{
	daemon_tree_close(d, NULL);
	if (d->first_tree)
		tree_node_free(&d->first_tree->node);
	free(d->first_tree);
}
