/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's clockwork: order of events, distances, times of messages. */
#include "unit.h"


#include "contents.h"
#include "events.h"
#include "network.h"
#include "sim.h"

TEST(events_come_in_order_of_time_then_of_adding)
{
	struct sim_random r = { 7 };
	struct events q = { .heap = NULL };
	struct event e, last = { .at = -1 };
	uint32_t n = 0;

	for (int i = 0; i < 5000; i++)
		assert_true(events_add(&q, (struct event){
			.at = random_below(&r, 100), .a = i,
		}));
	while (events_take(&q, &e)) {
		assert_true(e.at > last.at || (e.at == last.at && e.a > last.a));
		last = e;
		n++;
	}
	assert_int_equal(n, 5000);
	events_free(&q);
}

TEST(distances_follow_the_topology)
{
	struct network_params p = {
		.topology = TOPOLOGY_FAT_TREE, .leaf = 4,
		.latency = 1000, .hop_latency = 10, .global_latency = 500,
	};

	assert_int_equal(network_hops(&p, 5, 5), 0);
	assert_int_equal(network_hops(&p, 4, 7), 1);
	assert_int_equal(network_hops(&p, 3, 4), 3);
	assert_int_equal(network_hops(&p, 15, 16), 5);
	assert_int_equal(network_latency(&p, 15, 16), 1050);
	p.topology = TOPOLOGY_DRAGONFLY; /* 4 nodes a router, 2 routers a group */
	p.group = 2;
	assert_int_equal(network_hops(&p, 0, 3), 1);
	assert_int_equal(network_hops(&p, 3, 4), 2);
	assert_int_equal(network_hops(&p, 7, 8), 4);
	assert_int_equal(network_latency(&p, 7, 8), 1000 + 40 + 500);
	p.topology = TOPOLOGY_FLAT;
	assert_int_equal(network_hops(&p, 0, 9999), 1);
}

/* A node with two children, whose times can be added up by hand. */
static void prepare(struct scenario *sc, char *run)
{
	const char *allowed;

	scenario_defaults(sc);
	sc->nodes = 3;
	sc->protocol = PROTOCOL_BINARY_TREE;
	sc->finalize = false;
	sc->network = (struct network_params){
		.latency = 1000, .send = 10, .receive = 20, .gap = 7,
		.byte_gap = 2, .detect = 1,
	};
	sc->node = (struct node_params){ .enter = 3, .wake = 5 };
	assert_true(scenario_parse_run(sc, run, 0, &allowed));
}

/* The first operation; its path is gone. */
static struct phase phase_of_run(const struct scenario *sc)
{
	char error[SCENARIO_ERROR_MAX];
	struct sim *s = sim_new(sc, error);
	struct phase first;

	assert_non_null(s);
	assert_int_equal(sim_run(s), 0);
	first = s->phases[0];
	sim_free(s);
	return first;
}

static sim_time end_of(const struct scenario *sc)
{
	return phase_of_run(sc).last_exit;
}

TEST(times_are_those_of_the_model)
{
	static struct scenario sc;
	char run[] = "ring 0";
	/* 8 of the frame, 24 of the head; a ring of nothing has no body. */
	const sim_time inside = (8 + 24) * 2, leaves = 3 + 10;
	/* The second comes in behind the first, and a gap; then two go down. */
	const sim_time both = leaves + 1000 + inside + 7 + inside + 20;
	/* The first down leaves, and behind it, with a gap, the second. */
	const sim_time second = both + 10 + 7 + inside;

	prepare(&sc, run);
	assert_int_equal(end_of(&sc), second + 1000 + inside + 20 + 5);
}

/* Values of a node's ranks come to more than 4 GiB, all of it to 3 times that. */
TEST(messages_may_be_longer_than_32_bits_say)
{
	static struct scenario sc;
	char run[] = "fence 1MiB keys 1024";
	struct phase found;
	uint64_t own;

	prepare(&sc, run);
	sc.ranks_per_node = 4;
	own = 4 * 1024 * contents_unit_len(&sc, &sc.ops[0]);
	assert_true(own > UINT32_MAX);
	found = phase_of_run(&sc);
	assert_int_equal(found.bytes, 2 * own + 2 * 3 * own + 4 * (8 + 24));
	/* The root takes in two, one after another, and sends two results. */
	assert_true(found.last_exit > (sim_time)(2 * own + 2 * 3 * own) * 2);
}

/* One message up and one down for each node between members and their meeting place. */
static void check_group(uint32_t nodes, char *run, uint64_t messages)
{
	static struct scenario sc;
	struct phase found;

	prepare(&sc, run);
	sc.protocol = PROTOCOL_PMI2X;
	sc.nodes = nodes;
	sc.ranks_per_node = 3;
	sc.tree_width = 2;
	found = phase_of_run(&sc);
	assert_int_equal(found.messages, messages);
	assert_int_equal(found.succeeded, nodes * sc.ranks_per_node);
}

TEST(a_group_sends_between_its_members_only)
{
	char all[] = "group 1", some[] = "group 4", one[] = "group 7";

	check_group(7, all, 2 * 6);
	check_group(7, some, 2 * 1);
	check_group(7, one, 0);
}

/* The children of each: srun's first, then those of node 0, 1, ... */
static void check_tree(uint32_t nodes, const uint32_t *children)
{
	static struct scenario sc;
	char run[] = "fence 8", error[SCENARIO_ERROR_MAX];
	struct sim *s;

	prepare(&sc, run);
	sc.nodes = nodes;
	sc.tree_width = 3;
	sc.protocol = PROTOCOL_MPI_PMI2;
	s = sim_new(&sc, error);
	assert_non_null(s);
	assert_int_equal(s->nodes[nodes].parent, TREE_NONE);
	assert_int_equal(s->nodes[nodes].children, children[0]);
	for (uint32_t p = 0; p < nodes; p++) {
		const struct sim_node *n = &s->nodes[p];

		assert_int_equal(n->children, children[1 + p]);
		for (uint32_t i = 0; i < n->children; i++)
			assert_int_equal(s->nodes[shape_child(n, i)].parent, p);
	}
	assert_int_equal(sim_run(s), 0);
	assert_int_equal(s->phases[0].messages, 2 * nodes);
	sim_free(s);
}

/* Slurm's trees of width 3: one subtree is whole before the next one begins. */
TEST(mpi_pmi2_has_slurms_tree)
{
	static const uint32_t two[] = { 2, 0, 0 };
	static const uint32_t five[] = { 2, 3, 0, 0, 0, 0 };
	static const uint32_t nine[] = { 3, 3, 0, 0, 0, 3, 0, 0, 0, 0 };
	static const uint32_t more[] = { 2, 3, 3, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0,
					 0, 0 };

	check_tree(2, two);
	check_tree(5, five);
	check_tree(9, nine);
	check_tree(14, more);
}

TEST(slowness_is_where_it_was_put)
{
	static struct scenario sc;
	char run[] = "ring 0";
	sim_time usual;

	prepare(&sc, run);
	usual = end_of(&sc);
	sc.nslow = 1;
	sc.slow[0] = (struct scenario_slow){ .a = 0, .factor = 3 };
	/* The root: 20 to receive, twice, and 10 to send, and the second one */
	assert_true(end_of(&sc) > usual);
	sc.slow[0] = (struct scenario_slow){
		.link = true, .a = 0, .b = 2, .factor = 2,
	};
	/* Both ways: once more the latency and the bytes, less the queue. */
	assert_true(end_of(&sc) >= usual + 2000);
	assert_true(end_of(&sc) <= usual + 2000 + 4 * 64);
	sc.slow[0] = (struct scenario_slow){
		.link = true, .a = 1, .b = 2, .factor = 2,
	};
	assert_int_equal(end_of(&sc), usual); /* no message goes there */
}

TEST(a_slow_node_computes_slowly_beside_a_collective)
{
	static struct scenario sc;
	char run[] = "ifence 0 compute 1ms";

	prepare(&sc, run);
	assert_int_equal(end_of(&sc), SIM_MS);
	sc.nslow = 1;
	sc.slow[0] = (struct scenario_slow){ .a = 2, .factor = 3 };
	assert_int_equal(end_of(&sc), 3 * SIM_MS);
}

TEST(nodes_can_share_cores)
{
	static struct scenario sc;
	char run[] = "ring 0";
	sim_time apart;

	prepare(&sc, run);
	sc.nodes = 64;
	apart = end_of(&sc);
	sc.node.cores = 1;
	/* Everything that costs time, once for each node and message. */
	assert_true(end_of(&sc) >= 64 * (3 + 5) + 2 * 63 * (10 + 20));
	assert_true(end_of(&sc) > apart);
}
