/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of control: head and nodes exchange messages over links that break, and over
 * nodes that are killed. Each message has to arrive once and in order. The test plays
 * links and hosts.
 */
#include "unit.h"

#include "dvm/core/tree_head.h"
#include "dvm/core/tree_node.h"

#include <utlist.h>

#define NODES_MAX 64

struct bed;

struct frame {
	size_t len;
	struct frame *prev, *next;
	char data[];
};

/* A link between a node and its parent. Each end notices by itself that it has ended. */
struct wire {
	uint32_t child, parent;
	bool child_open, parent_open;
	struct frame *up, *down;
	struct wire *prev, *next;
};

struct host {
	struct bed *bed;
	uint32_t position;
	bool alive, known, lost, leaves_parent; /* known to the head */
	struct tree_node tree;
	struct wire *parent;
	uint64_t sent, got;           /* numbers in messages: of this node, of the head */
	uint64_t head_sent, head_got; /* the same at the head */
	unsigned attached;
	uint32_t parents;             /* number of ancestors that it was sent */
};

struct bed {
	struct tree_head head;
	struct host hosts[NODES_MAX];
	uint32_t nodes, width;
	struct wire *wires;
	uint64_t now_ms, random;
};

static uint32_t below(struct bed *b, uint32_t limit)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (uint32_t)(b->random >> 33) % limit;
}

/* ---- links ---- */

static void drop_frames(struct frame **list)
{
	struct frame *f, *next;

	DL_FOREACH_SAFE(*list, f, next)
		free(f);
	*list = NULL;
}

static void drop_wire(struct bed *b, struct wire *w)
{
	if (w->child_open || w->parent_open)
		return;
	drop_frames(&w->up);
	drop_frames(&w->down);
	DL_DELETE(b->wires, w);
	free(w);
}

static void add_frame(struct frame **list, const void *data, size_t len)
{
	struct frame *f = malloc(sizeof(*f) + len);

	f->len = len;
	memcpy(f->data, data, len);
	DL_APPEND(*list, f);
}

static struct wire *wire_down(struct bed *b, uint32_t parent, uint32_t child)
{
	struct wire *w;

	DL_FOREACH(b->wires, w)
		if (w->parent == parent && w->child == child && w->parent_open)
			return w;
	return NULL;
}

static void parent_notices(struct bed *b, struct wire *w)
{
	w->parent_open = false;
	if (w->parent == TREE_HEAD)
		tree_head_link_lost(&b->head, w->child, "the link has ended", b->now_ms);
	else if (b->hosts[w->parent].alive)
		tree_node_child_lost(&b->hosts[w->parent].tree, w->child, "the link has ended");
	drop_wire(b, w);
}

static void child_leaves(struct bed *b, struct host *h)
{
	struct wire *w = h->parent;

	h->parent = NULL;
	if (!w)
		return;
	w->child_open = false;
	tree_node_down(&h->tree);
	drop_wire(b, w);
}

/* A link to a process that has another one of this child replaces that. */
static void connect_to(struct bed *b, struct host *h, uint32_t parent)
{
	struct wire *w = calloc(1, sizeof(*w)), *old = wire_down(b, parent, h->position);

	if (old)
		parent_notices(b, old);
	child_leaves(b, h);
	*w = (struct wire){ .child = h->position, .parent = parent,
			   .child_open = true, .parent_open = true };
	DL_APPEND(b->wires, w);
	h->parent = w;
	if (parent == TREE_HEAD)
		assert_int_equal(tree_head_link(&b->head, h->position), 0);
	else
		assert_int_equal(tree_node_child(&b->hosts[parent].tree, h->position), 0);
	assert_int_equal(tree_node_up(&h->tree), 0);
}

/* The next living ancestor. */
static void reconnect(struct bed *b, struct host *h)
{
	uint32_t to = tree_parent(h->position, b->width);

	while (to != TREE_HEAD && !b->hosts[to].alive)
		to = tree_parent(to, b->width);
	connect_to(b, h, to);
}

/* ---- operations ---- */

static void on_node_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct host *h = arg;
	struct wire *w = link == RELAY_UP ? h->parent : wire_down(h->bed, h->position, link);

	if (w)
		add_frame(link == RELAY_UP ? &w->up : &w->down, data, len);
}

static void on_head_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct wire *w = wire_down(arg, TREE_HEAD, link);

	if (w)
		add_frame(&w->down, data, len);
}

/* A message: 'm', a number. */
static uint64_t number_in(const void *data, size_t len)
{
	uint64_t number;

	assert_int_equal(len, 1 + sizeof(number));
	assert_int_equal(*(const char *)data, 'm');
	memcpy(&number, (const char *)data + 1, sizeof(number));
	return number;
}

static void on_node_input(void *arg, const void *data, size_t len)
{
	struct host *h = arg;

	if (*(const char *)data == DVM_STOP)
		h->alive = false;
	else
		assert_int_equal(number_in(data, len), ++h->got);
}

static void on_head_input(void *arg, uint32_t position, const void *data, size_t len)
{
	struct host *h = &((struct bed *)arg)->hosts[position];

	assert_false(h->lost);
	if (*(const char *)data != DVM_GONE)
		assert_int_equal(number_in(data, len), ++h->head_got);
}

static void on_attached(void *arg)
{
	((struct host *)arg)->attached++;
}

static void on_first(void *arg, uint32_t position, const uint8_t ip[16])
{
	assert_int_equal(ip[15], position + 1);
	((struct bed *)arg)->hosts[position].known = true;
}

static void on_parents(void *arg, const struct tree_ancestor *list, uint32_t count)
{
	struct host *h = arg;

	h->parents = count;
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(list[i].where.port, list[i].position + 1);
}

static void on_leaving(void *arg)
{
	((struct host *)arg)->leaves_parent = true;
}

static void on_lost(void *arg, uint32_t position, const char *why)
{
	struct host *h = &((struct bed *)arg)->hosts[position];

	assert_false(h->lost);
	assert_true(*why);
	h->lost = true;
}

static void on_fail(void *arg, uint32_t link)
{
	fail();
}

/* ---- steps ---- */

static void deliver_up(struct bed *b, struct wire *w)
{
	struct frame *f = w->up;
	uint8_t ip[16] = { [15] = (uint8_t)(w->child + 1) };

	DL_DELETE(w->up, f);
	if (!w->parent_open)
		;
	else if (w->parent == TREE_HEAD)
		assert_int_equal(tree_head_input(&b->head, w->child, f->data, f->len, ip,
						 b->now_ms), 0);
	else
		assert_int_equal(tree_node_input(&b->hosts[w->parent].tree, w->child, f->data,
						 f->len, ip), 0);
	free(f);
}

static void deliver_down(struct bed *b, struct wire *w)
{
	struct frame *f = w->down;
	static const uint8_t ip[16];

	DL_DELETE(w->down, f);
	if (w->child_open && b->hosts[w->child].alive)
		assert_int_equal(tree_node_input(&b->hosts[w->child].tree, RELAY_UP, f->data,
						 f->len, ip), 0);
	free(f);
}

static void turns(struct bed *b)
{
	tree_head_turn(&b->head, b->now_ms);
	tree_head_flush(&b->head);
	for (uint32_t i = 0; i < b->nodes; i++)
		if (b->hosts[i].alive)
			tree_node_turn(&b->hosts[i].tree);
}

static bool deliver_one(struct bed *b, struct wire *w)
{
	if (w->up && (!w->down || below(b, 2)))
		deliver_up(b, w);
	else if (w->down)
		deliver_down(b, w);
	else
		return false;
	return true;
}

/* Frames come; ends of links are noticed behind them. */
static bool step_wire(struct bed *b, struct wire *w)
{
	if (deliver_one(b, w))
		return true;
	if (!w->child_open && w->parent_open)
		parent_notices(b, w);
	else if (!w->parent_open)
		reconnect(b, &b->hosts[w->child]);
	else
		return false;
	return true;
}

static void settle(struct bed *b)
{
	struct wire *w;
	bool any = true;

	while (any) {
		any = false;
		turns(b);
		DL_FOREACH(b->wires, w)
			if (step_wire(b, w)) {
				any = true;
				break; /* the list may have changed */
			}
	}
}

static void step_any_wire(struct bed *b)
{
	struct wire *w;
	int count;
	uint32_t n;

	DL_COUNT(b->wires, w, count);
	n = count ? below(b, (uint32_t)count) : 0;
	DL_FOREACH(b->wires, w)
		if (!n--) {
			(void)step_wire(b, w);
			return;
		}
}

static void send_up(struct host *h)
{
	char m[1 + sizeof(uint64_t)] = "m";

	h->sent++;
	memcpy(m + 1, &h->sent, sizeof(h->sent));
	assert_int_equal(tree_node_send(&h->tree, m, sizeof(m)), 0);
}

static void send_down(struct bed *b, struct host *h)
{
	char m[1 + sizeof(uint64_t)] = "m";

	h->head_sent++;
	memcpy(m + 1, &h->head_sent, sizeof(h->head_sent));
	assert_int_equal(tree_head_send(&b->head, h->position, m, sizeof(m)), 0);
}

/* `gone`: its fork server tells that to its parent, last. */
static void kill_node(struct bed *b, struct host *h, bool gone)
{
	struct wire *w, *next;

	h->alive = false;
	DL_FOREACH_SAFE(b->wires, w, next) {
		if (w->parent == h->position) {
			if (w->parent_open)
				parent_notices(b, w); /* which may free it */
			continue;
		}
		if (w->child != h->position || !w->child_open)
			continue;
		while (w->up && w->parent_open)
			deliver_up(b, w);
		if (gone && w == h->parent && w->parent == TREE_HEAD)
			tree_head_gone(&b->head, h->position);
		else if (gone && w == h->parent && w->parent_open)
			tree_node_child_gone(&b->hosts[w->parent].tree, h->position);
	}
	child_leaves(b, h);
}

/* ---- life ---- */

static void open_host(struct bed *b, uint32_t position)
{
	static const struct tree_node_ops ops = {
		.send = on_node_send, .input = on_node_input, .attached = on_attached,
		.parents = on_parents, .leaving = on_leaving, .fail = on_fail,
	};
	struct host *h = &b->hosts[position];

	*h = (struct host){ .bed = b, .position = position, .alive = true };
	tree_node_init(&h->tree, position, &ops, h);
}

static struct bed *open_bed(uint32_t nodes, uint32_t width)
{
	static const struct tree_head_ops ops = {
		.send = on_head_send, .attached = on_first, .input = on_head_input,
		.lost = on_lost, .fail = on_fail,
	};
	struct bed *b = calloc(1, sizeof(*b));

	b->nodes = nodes;
	b->width = width;
	tree_head_init(&b->head, &ops, b);
	for (uint32_t i = 0; i < nodes; i++)
		open_host(b, i);
	for (uint32_t i = 0; i < nodes; i++)
		reconnect(b, &b->hosts[i]);
	return b;
}

static void close_bed(struct bed *b)
{
	struct wire *w, *next;

	DL_FOREACH_SAFE(b->wires, w, next) {
		w->child_open = w->parent_open = false;
		drop_wire(b, w);
	}
	for (uint32_t i = 0; i < b->nodes; i++)
		tree_node_free(&b->hosts[i].tree);
	tree_head_free(&b->head);
	free(b);
}

static void assert_all_came(struct bed *b)
{
	for (uint32_t i = 0; i < b->nodes; i++) {
		const struct host *h = &b->hosts[i];

		assert_int_equal(h->lost, h->known && !h->alive);
		if (!h->alive)
			continue;
		assert_true(h->attached);
		assert_int_equal(h->head_got, h->sent);
		assert_int_equal(h->got, h->head_sent);
	}
}

/* ---- tests ---- */

TEST(each_node_but_the_last_level_has_width_children)
{
	for (uint32_t width = 1; width < 6; width++)
		for (uint32_t nodes = 1; nodes < 200; nodes++) {
			uint32_t children[200] = { 0 }, relays = 0;

			for (uint32_t i = 0; i < nodes; i++)
				if (tree_parent(i, width) != TREE_HEAD)
					children[tree_parent(i, width)]++;
			for (uint32_t i = 0; i < nodes; i++) {
				assert_true(children[i] <= width);
				assert_true(!i || children[i] <= children[i - 1]);
				relays += children[i] > 0;
			}
			assert_int_equal(relays, tree_relays(nodes, width));
		}
}

TEST(default_tree_has_two_levels)
{
	assert_int_equal(tree_default_width(1), 0);
	assert_int_equal(tree_default_width(TREE_STAR_MAX), 0);
	assert_int_equal(tree_default_width(2048), 46);
	for (uint32_t nodes = TREE_STAR_MAX + 1; nodes < 20000; nodes += 7) {
		uint32_t width = tree_default_width(nodes);

		assert_true(tree_relays(nodes, width) <= width);
	}
}

TEST(messages_cross_all_levels)
{
	struct bed *b = open_bed(30, 2);

	for (uint32_t i = 0; i < 30; i++) {
		send_up(&b->hosts[i]);
		send_down(b, &b->hosts[i]);
	}
	settle(b);
	assert_all_came(b);
	assert_int_equal(dvm_relay_children(&b->head.relay), 2);
	close_bed(b);
}

static void lose_relay(bool gone)
{
	struct bed *b = open_bed(30, 2);

	settle(b);
	send_up(&b->hosts[14]); /* below 0, 2 and 6 */
	send_down(b, &b->hosts[14]);
	turns(b);
	kill_node(b, &b->hosts[2], gone);
	settle(b);
	assert_int_equal(b->hosts[2].lost, gone);
	b->now_ms += TREE_REATTACH_MS;
	assert_true(gone || tree_head_deadline(&b->head) <= b->now_ms);
	settle(b);
	assert_true(b->hosts[2].lost);
	assert_all_came(b);
	close_bed(b);
}

TEST(children_of_a_killed_relay_lose_no_message)
{
	lose_relay(false);
}

TEST(daemon_whose_fork_server_reports_its_end_is_lost_at_once)
{
	lose_relay(true);
}

TEST(idle_head_gives_a_node_all_the_time_to_attach_again)
{
	struct bed *b = open_bed(2, 1);

	settle(b);
	b->now_ms += 3600000;
	parent_notices(b, b->hosts[0].parent);
	assert_int_equal(tree_head_deadline(&b->head), b->now_ms + TREE_REATTACH_MS);
	close_bed(b);
}

TEST(node_that_was_given_up_is_told_to_end_when_it_comes_back)
{
	struct bed *b = open_bed(6, 2);

	settle(b);
	child_leaves(b, &b->hosts[5]);
	settle(b);
	b->now_ms += TREE_REATTACH_MS;
	settle(b);
	assert_true(b->hosts[5].lost);
	reconnect(b, &b->hosts[5]);
	settle(b);
	assert_false(b->hosts[5].alive);
	close_bed(b);
}

TEST(position_of_a_lost_daemon_can_have_another)
{
	struct bed *b = open_bed(6, 2);
	struct host *h = &b->hosts[5];

	settle(b);
	tree_head_end(&b->head, 5, "it cannot join");
	settle(b);
	assert_true(h->lost);
	assert_false(h->alive);
	kill_node(b, h, true);
	settle(b);
	tree_head_forget(&b->head, 5);
	tree_node_free(&h->tree);
	open_host(b, 5);
	reconnect(b, h);
	send_up(h);
	send_down(b, h);
	settle(b);
	assert_true(h->known && h->alive);
	assert_all_came(b);
	close_bed(b);
}

TEST(relay_that_moves_below_its_parent_takes_its_children_along)
{
	const struct tree_ancestor list[] = {
		{ .position = 0, .where.port = 1 }, { .position = 3, .where.port = 4 },
	};
	struct bed *b = open_bed(30, 2);

	connect_to(b, &b->hosts[2], TREE_HEAD);
	settle(b);
	tree_head_parents(&b->head, 2, list, 2);
	settle(b);
	assert_int_equal(b->hosts[2].parents, 2);
	for (uint32_t i = 0; i < 30; i++) {
		send_up(&b->hosts[i]);
		send_down(b, &b->hosts[i]);
	}
	turns(b);
	connect_to(b, &b->hosts[2], 0);
	settle(b);
	assert_all_came(b);
	assert_int_equal(dvm_relay_children(&b->head.relay), 2);
	assert_true(tree_head_leads_nowhere(&b->head, 5));
	assert_false(tree_head_leads_nowhere(&b->head, 0));
	close_bed(b);
}

TEST(children_hear_that_their_parent_leaves)
{
	struct bed *b = open_bed(6, 2);

	settle(b);
	tree_node_leave(&b->hosts[0].tree);
	settle(b);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(b->hosts[i].leaves_parent, i == 2 || i == 3);
	close_bed(b);
}

TEST(received_messages_are_not_kept)
{
	struct bed *b = open_bed(3, 1);

	settle(b);
	for (int i = 0; i < 1000; i++) {
		send_up(&b->hosts[2]);
		send_down(b, &b->hosts[1]);
		settle(b);
	}
	assert_true(b->hosts[2].tree.session.kept_bytes < 40 * 9);
	assert_all_came(b);
	close_bed(b);
}

static void disturb(struct bed *b)
{
	struct host *h = &b->hosts[below(b, b->nodes)];

	if (!h->alive)
		return;
	switch (below(b, 40)) {
	case 0: kill_node(b, h, below(b, 2)); break;
	case 1:
	case 2: connect_to(b, h, TREE_HEAD); break;
	case 3:
	case 4:
		child_leaves(b, h);
		reconnect(b, h);
		break;
	case 5:
	case 6:
	case 7:
	case 8: send_up(h); break;
	case 9:
	case 10:
	case 11:
	case 12: send_down(b, h); break;
	case 13: turns(b); break;
	default: step_any_wire(b);
	}
}

static void random_run(uint64_t seed)
{
	uint32_t nodes, width;
	struct bed *b;

	nodes = 2 + (uint32_t)(seed * 7 % (NODES_MAX - 2));
	width = 1 + (uint32_t)(seed % 5);
	b = open_bed(nodes, width);
	b->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 600; i++)
		disturb(b);
	settle(b);
	b->now_ms += TREE_REATTACH_MS;
	settle(b);
	assert_all_came(b);
	close_bed(b);
}

TEST(random_kills_and_breaks_lose_and_repeat_no_message)
{
	for (uint64_t seed = 0; seed < 1000; seed++)
		random_run(seed);
}
