/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a task on several nodes is, from the head to the PMI of each node: ranks, names of
 * nodes, and addresses of neighbours, in few bytes.
 */
#include "idle.h"
#include "requests.h"
#include "unit.h"

#include <errno.h>

#include "dvm/core/dvm_places.h"
#include "dvm/node/task_nodes.h"
#include "libcoll/tree.h"

#define CLIENT 1
#define CORES 4

struct bed;

struct host {
	struct bed *bed;
	uint32_t position;
	struct dvm_node *node;
	size_t launch_bytes, names_bytes; /* that it was sent */
	unsigned launches;
	unsigned pmis; /* parts whose nodes were read and are right */
};

/* A head, and nodes that it sends messages. */
struct bed {
	struct dvm_head *head;
	struct dvm_time now;
	struct host *hosts;
	uint32_t nodes;
	char (*names)[32];
};

/* ---- operations ---- */

static uint8_t ip_byte(uint32_t node)
{
	return (uint8_t)(node * 7 + 1);
}

static bool is_name_of(void *arg, uint32_t node, char out[DVM_TEXT_MAX])
{
	return dvm_node_name(((struct host *)arg)->node, node, out);
}

static void check_nodes(const struct host *h, const struct task_nodes *t,
			const struct dvm_launch *l)
{
	assert_int_equal(t->count, l->nodes);
	if (l->nodes == 1) {
		assert_string_equal(t->names[0], "own");
		return;
	}
	assert_int_equal(task_nodes_node(t, l->node), h->position);
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t node = task_nodes_node(t, i);

		assert_int_equal(task_nodes_index(t, node), i);
		assert_string_equal(t->names[i], h->bed->names[node]);
	}
}

static void check_neighbour(const struct task_nodes *t, uint32_t index)
{
	const struct dvm_address *a = task_nodes_address(t, index);

	assert_non_null(a);
	assert_int_equal(a->ip[15], ip_byte(task_nodes_node(t, index)));
}

static void check_neighbours(const struct task_nodes *t, const struct dvm_launch *l)
{
	struct tree_place place = tree_place(l->nodes, tree_width(l->ranks), l->node);

	assert_int_equal(t->nneighbours, place.children + (place.parent != TREE_NONE));
	if (place.parent != TREE_NONE)
		check_neighbour(t, place.parent);
	for (uint32_t i = 0; i < place.children; i++)
		check_neighbour(t, tree_child(&place, i).first);
}

static int open_pmi(void *arg, uint32_t part, const struct dvm_launch *l)
{
	struct host *h = arg;
	struct task_nodes t = { 0 };
	uint32_t ranks;

	assert_int_equal(task_nodes_read(&t, l, "own", is_name_of, h), 0);
	check_nodes(h, &t, l);
	check_neighbours(&t, l);
	assert_int_equal(*layout_ranks_at(t.layout, l->node, &ranks), l->first_rank);
	assert_int_equal(ranks, l->ranks_here);
	task_nodes_free(&t);
	h->pmis++;
	return 0;
}

static void to_head(void *arg, const void *data, size_t len)
{
	struct host *h = arg;

	dvm_head_node_input(h->bed->head, h->position, data, len, h->bed->now);
}

static void start(void *arg, const struct node_start *what)
{
}

static void signal_part(void *arg, uint32_t part, int number)
{
}

static void count_bytes(struct host *h, const void *data, size_t len)
{
	struct cursor c;
	struct dvm_msg m;
	size_t left;

	cursor_init(&c, data, len);
	while ((left = cursor_left(&c))) {
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		left -= cursor_left(&c);
		if (m.type == DVM_LAUNCH) {
			h->launches++;
			h->launch_bytes += left;
		} else if (m.type == DVM_NODES) {
			h->names_bytes += left;
		}
	}
}

static void to_node(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;
	struct host *h = &b->hosts[node];

	count_bytes(h, data, len);
	assert_int_equal(dvm_node_input(h->node, data, len, b->now), 0);
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void to_client(void *arg, uint32_t client, const char *line, size_t len)
{
}

static int grow(void *arg, uint32_t nodes, uint64_t job, const char *names)
{
	return 0;
}

/* ---- the bed ---- */

/* A daemon has registered. */
static void come(struct bed *b, uint32_t position)
{
	static const struct dvm_node_ops ops = {
		.send = to_head, .open_output = idle_open_output, .close_output = idle_part,
		.open_pmi = open_pmi, .pmi_rank_ended = idle_rank_ended,
		.close_pmi = idle_part, .profile = idle_profile, .forget = idle_part,
		.all_started = idle_part, .give_up = idle_part, .start = start,
		.signal = signal_part, .leave = idle,
	};
	struct host *h = &b->hosts[position];
	const struct dvm_register r = {
		.version = DVM_VERSION, .has = { CORES, 0, 1000 },
		.name = { b->names[position], strlen(b->names[position]) },
	};
	uint8_t ip[16] = { 0 };

	ip[15] = ip_byte(position);
	*h = (struct host){ .bed = b, .position = position };
	assert_int_equal(dvm_node_create(&h->node, &ops, h), 0);
	dvm_head_node_address(b->head, position, ip);
	dvm_node_register(h->node, &r);
	dvm_node_turn(h->node, b->now);
}

/* `more`: nodes that come later. */
static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	dvm_head_destroy(b->head);
	for (uint32_t i = 0; i < b->nodes; i++)
		dvm_node_destroy(b->hosts[i].node);
	free(b->hosts);
	free(b->names);
	free(b);
}

static struct bed *bed_create(uint32_t nodes, uint32_t more,
			      void (*name)(uint32_t node, char out[32]))
{
	static const struct dvm_head_ops ops = {
		.format = &dvm_json, .node_send = to_node, .node_break = node_break,
		.client_send = to_client, .grow = grow, .end = idle,
	};
	const struct dvm_head_options options = usual_options(nodes);
	struct bed *b = calloc(1, sizeof(*b));

	b->now = (struct dvm_time){ 1000000000, 1000 };
	b->nodes = nodes + more;
	b->hosts = calloc(b->nodes, sizeof(*b->hosts));
	b->names = calloc(b->nodes, sizeof(*b->names));
	for (uint32_t i = 0; i < b->nodes; i++)
		name(i, b->names[i]);
	assert_int_equal(dvm_head_create(&b->head, &options, &ops, b, NULL), 0);
	for (uint32_t i = 0; i < nodes; i++)
		come(b, i);
	dvm_head_client_opened(b->head, CLIENT);
	dvm_head_turn(b->head, b->now);
	return unit_at_end(bed_destroy, b);
}

static void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < b->nodes; i++)
		if (b->hosts[i].node)
			dvm_node_turn(b->hosts[i].node, b->now);
}

static void submit(struct bed *b, uint32_t ranks, uint32_t nodes)
{
	ask(b, "{'op':'submit','profile':{'id':'p','cwd':'/','env':{}},'tasks':[{'argv':['x'],'ranks':%u,'nodes':%u,'cores':0}]}",
	    ranks, nodes);
}

static void assert_pmis(const struct bed *b, uint32_t nodes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->nodes; i++)
		n += b->hosts[i].pmis;
	assert_int_equal(n, nodes);
}

/* ---- names ---- */

static void numbered(uint32_t node, char out[32])
{
	snprintf(out, 32, "n%u", node);
}

static void in_racks(uint32_t node, char out[32])
{
	snprintf(out, 32, "r%02un%02u", node / 40, node % 40);
}

static void padded(uint32_t node, char out[32])
{
	snprintf(out, 32, "nid%06u", node + 990);
}

/* Runs of one, repeated names, long numbers, and names that others begin with. */
static void odd(uint32_t node, char out[32])
{
	static const char *const texts[] = {
		"login", "login", "a1", "a01", "a02", "a2", "9", "10", "x-9999999999", "x-10000000000",
		"b09", "b10", "b10", "b9", "b", "c99", "c100", "1c", "2c", "",
	};

	snprintf(out, 32, "%s", texts[node % (sizeof(texts) / sizeof(texts[0]))]);
}

TEST(nodes_know_the_names_of_a_task)
{
	void (*const ways[])(uint32_t node, char out[32]) = { numbered, in_racks, padded, odd };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct bed *b = bed_create(300, 0, ways[i]);

		submit(b, 300, 300);
		assert_pmis(b, 300);
		unit_end(b);
	}
}

TEST(names_are_sent_to_nodes_of_tasks_on_several_nodes_once)
{
	struct bed *b = bed_create(10, 0, numbered);
	size_t bytes;

	submit(b, 2, 1);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(b->hosts[i].names_bytes, 0);
	submit(b, 3, 3);
	bytes = b->hosts[0].names_bytes;
	assert_true(bytes > 0);
	assert_int_equal(b->hosts[3].names_bytes, 0);
	submit(b, 8, 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(b->hosts[i].names_bytes, bytes);
}

TEST(names_of_nodes_that_join_are_sent_before_the_next_task)
{
	struct bed *b = bed_create(4, 3, numbered);

	submit(b, 4, 4);
	ask(b, "{'op':'grow','nodes':3}");
	for (uint32_t i = 4; i < 7; i++)
		come(b, i);
	dvm_head_turn(b->head, b->now);
	submit(b, 7, 7);
	assert_pmis(b, 4 + 7);
}

static void tell(struct dvm_node *n, const struct dvm_msg *m, int expected)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	assert_int_equal(dvm_msg_pack(&b, m), 0);
	assert_int_equal(dvm_node_input(n, b.data, b.len, (struct dvm_time){ 1, 1 }), expected);
	buf_free(&b);
}

static void tell_names(struct dvm_node *n, uint32_t first, uint32_t count, const char *name,
		       int expected)
{
	const struct dvm_name_run r = { count, { name, strlen(name) } };
	struct buf b;

	buf_init(&b, 1 << 10);
	assert_int_equal(dvm_name_run_pack(&b, &r), 0);
	tell(n, &(struct dvm_msg){ .type = DVM_NODES, .nodes = { first, { b.data, b.len } } },
	     expected);
	buf_free(&b);
}

TEST(another_head_names_the_nodes_again)
{
	static const struct dvm_node_ops ops = { 0 };
	char name[DVM_TEXT_MAX];
	struct dvm_node *n;

	assert_int_equal(dvm_node_create(&n, &ops, NULL), 0);
	tell_names(n, 0, 8, "a3", 0);
	assert_true(dvm_node_name(n, 7, name));
	assert_string_equal(name, "a10");
	tell_names(n, 0, 2, "a3", 0);
	tell_names(n, 2, 1, "b", 0);
	assert_true(dvm_node_name(n, 2, name));
	assert_string_equal(name, "b");
	assert_false(dvm_node_name(n, 3, name));
	dvm_node_destroy(n);
}

TEST(names_with_a_gap_or_without_a_number_are_rejected)
{
	static const struct dvm_node_ops ops = { 0 };
	struct dvm_node *n;

	assert_int_equal(dvm_node_create(&n, &ops, NULL), 0);
	tell_names(n, 0, 2, "n1", 0);
	tell_names(n, 3, 1, "n4", -EPROTO);
	tell_names(n, 2, 2, "login", -EPROTO);
	tell_names(n, 2, 0, "n3", -EPROTO);
	dvm_node_destroy(n);
}

/* ---- tasks ---- */

TEST(each_node_gets_its_neighbours_and_ranks)
{
	static const uint32_t sizes[] = { 2, 3, 9, 10, 11, 74, 100 };
	struct bed *b = bed_create(100, 0, numbered);
	uint32_t all = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		submit(b, sizes[i], sizes[i]);
		submit(b, 3 * sizes[i] + 1, sizes[i]);
		submit(b, 100 * sizes[i], sizes[i]); /* the tree is less wide */
		all += 3 * sizes[i];
	}
	assert_pmis(b, all);
}

/* A task on `nodes` nodes. Returns the most bytes that a node got for it. */
static size_t most_bytes(uint32_t nodes, size_t *names)
{
	struct bed *b = bed_create(nodes, 0, in_racks);
	size_t most = 0;

	submit(b, 2 * nodes, nodes);
	for (uint32_t i = 0; i < nodes; i++) {
		assert_int_equal(b->hosts[i].launches, 1);
		assert_int_equal(b->hosts[i].pmis, 1);
		if (b->hosts[i].launch_bytes > most)
			most = b->hosts[i].launch_bytes;
	}
	*names = b->hosts[0].names_bytes;
	unit_end(b);
	return most;
}

TEST(launch_needs_no_more_bytes_on_more_nodes)
{
	static const uint32_t sizes[] = { 100, 1000, 4000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t names, launch = most_bytes(sizes[i], &names);

		print_message("task on %u nodes: at most %zu bytes of LAUNCH a node, and %zu of names once\n",
			      sizes[i], launch, names);
		assert_true(launch <= 400);
		assert_true(names <= 20 + sizes[i] / 2);
	}
}

TEST(runs_that_do_not_fit_the_task_are_rejected)
{
	static const struct dvm_node_ops ops = { .profile = idle_profile };
	static const uint32_t runs[][3] = { { 0, 2, 3 }, { 0, 3, 2 }, { 0, 2, 2 }, { 0, 1, 4 } };
	struct dvm_msg m = {
		.type = DVM_LAUNCH,
		.launch = { .task = 1, .ranks = 5, .nodes = 2, .ranks_here = 1,
			    .output = DVM_OUTPUT_NONE, .argv = { "x", 2 }, .path = { "", 1 } },
	};
	struct dvm_node *n;

	assert_int_equal(dvm_node_create(&n, &ops, NULL), 0);
	tell(n, &m, -EPROTO);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		m.launch.runs = (struct dvm_bytes){ runs[i], sizeof(runs[i]) };
		tell(n, &m, -EPROTO);
	}
	dvm_node_destroy(n);
}
