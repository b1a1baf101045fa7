/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts: every partition is taken, nothing else is; the order is the tree's. */
#include "unit.h"

#include <errno.h>

#include "libcoll/layout.h"

#define SMALL_NODES 3
#define SMALL_RANKS 5

/* Create from the node of every rank. */
static int create(struct layout **l, uint32_t nnodes, uint32_t nranks,
		  const uint32_t *node_of)
{
	uint32_t *counts = calloc(nnodes, sizeof(*counts));
	uint32_t **ranks = calloc(nnodes, sizeof(*ranks));
	int rc;

	for (uint32_t r = nranks; r-- > 0;) { /* descending: any order is fine */
		uint32_t node = node_of[r];

		ranks[node] = realloc(ranks[node],
				      (counts[node] + 1) * sizeof(uint32_t));
		ranks[node][counts[node]++] = r;
	}
	rc = layout_create(l, nnodes, nranks, counts,
			   (const uint32_t *const *)ranks);
	for (uint32_t i = 0; i < nnodes; i++)
		free(ranks[i]);
	free(ranks);
	free(counts);
	return rc;
}

static uint32_t lowest_rank(uint32_t node, const uint32_t *node_of)
{
	uint32_t r = 0;

	while (node_of[r] != node)
		r++;
	return r;
}

static void check_positions(const struct layout *l, const uint32_t *node_of)
{
	for (uint32_t p = 0; p < layout_nodes(l); p++) {
		uint32_t node = layout_node_id(l, p);

		assert_int_equal(layout_position(l, node), p);
		if (p > 0)
			assert_true(lowest_rank(layout_node_id(l, p - 1),
						node_of) <
				    lowest_rank(node, node_of));
	}
}

static void check_ranks(const struct layout *l, const uint32_t *node_of)
{
	const uint32_t *order = layout_order(l);
	uint32_t at = 0;

	for (uint32_t p = 0; p < layout_nodes(l); p++) {
		uint32_t count;
		const uint32_t *ranks = layout_ranks_at(l, p, &count);

		assert_true(count > 0);
		assert_ptr_equal(ranks, order + at);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(node_of[ranks[i]],
					 layout_node_id(l, p));
			assert_int_equal(layout_rank_position(l, ranks[i]), p);
			assert_true(i == 0 || ranks[i - 1] < ranks[i]);
		}
		at += count;
	}
	assert_int_equal(at, layout_ranks(l));
}

/* Every assignment of five ranks to three nodes. */
TEST(takes_exactly_the_partitions)
{
	for (uint32_t code = 0; code < 3 * 3 * 3 * 3 * 3; code++) {
		uint32_t node_of[SMALL_RANKS], used = 0, rest = code;
		struct layout *l = NULL;
		int rc;

		for (uint32_t r = 0; r < SMALL_RANKS; r++, rest /= 3) {
			node_of[r] = rest % 3;
			used |= 1u << node_of[r];
		}
		rc = create(&l, SMALL_NODES, SMALL_RANKS, node_of);
		assert_int_equal(rc, used == 7 ? 0 : -EINVAL);
		if (rc)
			continue;
		check_positions(l, node_of);
		check_ranks(l, node_of);
		layout_destroy(l);
	}
}

TEST(refuses_what_is_no_partition)
{
	const uint32_t a[] = { 0, 1 }, twice[] = { 1, 2 }, high[] = { 2, 9 };
	const uint32_t *with_twice[] = { a, twice }, *with_high[] = { a, high };
	const uint32_t two[] = { 2, 2 }, short_one[] = { 2, 1 };
	const uint32_t huge[] = { UINT32_MAX, 5 };
	struct layout *l;

	assert_int_equal(layout_create(&l, 2, 4, two, with_twice), -EINVAL);
	assert_int_equal(layout_create(&l, 2, 4, two, with_high), -EINVAL);
	assert_int_equal(layout_create(&l, 2, 4, short_one, with_high), -EINVAL);
	assert_int_equal(layout_create(&l, 2, 3, two, with_high), -EINVAL);
	assert_int_equal(layout_create(&l, 2, 4, huge, with_high), -EINVAL);
	assert_int_equal(layout_create(&l, 0, 0, two, with_high), -EINVAL);
	assert_int_equal(layout_create(&l, 2, 1, two, with_high), -EINVAL);
	assert_int_equal(layout_create(&l, LAYOUT_NODES_MAX + 1,
				       LAYOUT_RANKS_MAX, two, with_high),
			 -EINVAL);
	assert_int_equal(layout_create(&l, 2, LAYOUT_RANKS_MAX + 1, two,
				       with_high), -EINVAL);
	layout_destroy(NULL);
}

/* `size` ranks in a row on each of n nodes in turn: 1 is cyclic. */
static void check_plane(uint32_t n, uint32_t nranks, uint32_t size)
{
	uint32_t *node_of = calloc(nranks, sizeof(*node_of));
	struct layout *l;

	for (uint32_t r = 0; r < nranks; r++)
		node_of[r] = (n - 1) - r / size % n;
	assert_int_equal(create(&l, n, nranks, node_of), 0);
	check_positions(l, node_of);
	check_ranks(l, node_of);
	assert_int_equal(layout_position(l, n - 1), 0);
	layout_destroy(l);
	free(node_of);
}

TEST(orders_block_cyclic_and_plane)
{
	check_plane(6, 23, 4);
	check_plane(6, 23, 1);
	check_plane(6, 23, 2);
	check_plane(1, 300, 1);
	check_plane(64, 64, 1);
}

TEST(a_million_ranks_are_no_trouble)
{
	const uint32_t n = 65536, nranks = 1u << 20;
	uint32_t *node_of = calloc(nranks, sizeof(*node_of));
	struct layout *l;

	for (uint32_t r = 0; r < nranks; r++)
		node_of[r] = (uint32_t)(r * 40503u) % n;
	assert_int_equal(create(&l, n, nranks, node_of), 0);
	check_ranks(l, node_of);
	layout_destroy(l);
	free(node_of);
}
