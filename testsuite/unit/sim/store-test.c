/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated steps of the store: how often values and requests travel. */
#include "unit.h"

#include <stdio.h>

#include "sim.h"

static struct sim *step(struct scenario *sc, uint32_t nodes, uint32_t width, uint32_t bytes,
			uint32_t keys, const char *skew)
{
	char late[32];
	char error[SCENARIO_ERROR_MAX];
	struct sim *s;

	snprintf(late, sizeof(late), "%s", skew);
	scenario_defaults(sc);
	sc->protocol = PROTOCOL_STORE;
	sc->nodes = nodes;
	sc->ranks_per_node = 3;
	sc->tree_width = width;
	assert_true(distribution_parse(late, &sc->rank_skew));
	sc->nops = 1;
	sc->ops[0] = (struct scenario_op){ .kind = OP_SHARE, .bytes = bytes, .keys = keys };
	assert_int_equal(scenario_check(sc, error), 0);
	s = sim_new(sc, error);
	assert_non_null(s);
	assert_int_equal(sim_run(s), 0);
	assert_int_equal(s->phases[0].succeeded, nodes * sc->ranks_per_node);
	return s;
}

/*
 * Each rank gets every value, but each value leaves a node once for each child. For each key but
 * the first, which the root's own rank sets, one child may get two more: a node that a set has
 * passed keeps no answer to a fetch before it, and the fetch behind a set is not answered from a
 * copy.
 */
static void check_copies(uint32_t nodes, uint32_t width, uint32_t bytes, uint32_t keys,
			 const char *skew)
{
	static struct scenario sc;
	struct sim *s = step(&sc, nodes, width, bytes, keys, skew);

	for (uint32_t p = 0; p < s->nnodes; p++) {
		uint32_t children = s->nodes[p].children;
		uint64_t again = children ? 2 * (keys - 1) : 0;

		assert_in_range(stats_node(s, 0, p)->values, (uint64_t)keys * children,
				(uint64_t)keys * children + again);
	}
	sim_free(s);
}

TEST(a_value_of_one_key_leaves_each_node_once_a_child)
{
	for (uint32_t nodes = 1; nodes < 40; nodes += 6)
		for (uint32_t width = 2; width <= 16; width *= 2)
			check_copies(nodes, width, 64, 1, "0");
}

/* Ranks that begin later get it from a copy. */
TEST(a_value_that_late_ranks_fetch_leaves_each_node_once_a_child)
{
	check_copies(40, 4, 64, 1, "uniform 10ms");
	check_copies(40, 4, 64, 20, "uniform 10ms");
}

TEST(large_values_and_many_keys_leave_each_node_about_once_a_child)
{
	check_copies(30, 4, 100000, 1, "0");
	check_copies(30, 4, 64, 100, "0");
	check_copies(10, 2, 0, 100, "0");
}

/* A link carries each key's requests as one, and a set for each rank below that has a key. */
TEST(requests_of_one_key_are_one_on_each_link)
{
	static struct scenario sc;
	struct sim *s = step(&sc, 21, 4, 64, 1, "0");
	struct phase_stats st;

	assert_int_equal(stats_phase(s, 0, &st), 0);
	/* OPEN, the request, a release of the value's bytes. */
	assert_in_range(st.link_max.messages, 1, 3);
	sim_free(s);
}

TEST(a_store_with_more_keys_than_ranks_is_shared)
{
	check_copies(2, 2, 8, 17, "0");
}

/* A second share has other keys, and begins when the first one has ended. */
TEST(shares_follow_each_other)
{
	static struct scenario sc;
	char error[SCENARIO_ERROR_MAX];
	struct sim *s = step(&sc, 5, 2, 8, 2, "0");

	sim_free(s);
	sc.nops = 2;
	sc.ops[1] = sc.ops[0];
	s = sim_new(&sc, error);
	assert_non_null(s);
	assert_int_equal(sim_run(s), 0);
	for (uint32_t op = 0; op < 2; op++)
		assert_int_equal(s->phases[op].succeeded, s->nranks);
	sim_free(s);
}
