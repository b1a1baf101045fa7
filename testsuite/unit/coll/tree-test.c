/* SPDX-License-Identifier: BSD-3-Clause */
/* Tree arithmetic: properties that hold for every size and width. */
#include "unit.h"


#include "libcoll/tree.h"

#define NODES_MAX 130
#define WIDTH_MAX 20

typedef void check_fn(uint32_t n, uint32_t k);

static void for_all(check_fn *check)
{
	for (uint32_t n = 1; n <= NODES_MAX; n++)
		for (uint32_t k = 1; k <= WIDTH_MAX; k++)
			check(n, k);
}

/* The children's ranges follow each other and fill the node's own, evenly. */
static void check_ranges(uint32_t n, uint32_t k)
{
	for (uint32_t p = 0; p < n; p++) {
		struct tree_place place = tree_place(n, k, p);
		uint32_t at = p + 1, least = n, most = 0;

		assert_int_equal(place.range.first, p);
		assert_true(place.range.end <= n && place.children <= k);
		for (uint32_t i = 0; i < place.children; i++) {
			struct tree_range child = tree_child(&place, i);
			uint32_t size = child.end - child.first;

			assert_int_equal(child.first, at);
			assert_true(size > 0);
			for (; at < child.end; at++)
				assert_int_equal(
					tree_child_index(&place, at), i);
			least = size < least ? size : least;
			most = size > most ? size : most;
		}
		assert_int_equal(at, place.range.end);
		assert_true(place.children == 0 || most - least <= 1);
	}
}

TEST(ranges_are_contiguous_and_even)
{
	for_all(check_ranges);
}

static void check_parents(uint32_t n, uint32_t k)
{
	for (uint32_t p = 0; p < n; p++) {
		struct tree_place place = tree_place(n, k, p);

		if (p == 0)
			assert_true(place.parent == TREE_NONE && !place.depth);
		for (uint32_t i = 0; i < place.children; i++) {
			struct tree_range range = tree_child(&place, i);
			struct tree_place child = tree_place(n, k, range.first);

			assert_int_equal(child.parent, p);
			assert_int_equal(child.depth, place.depth + 1);
			assert_int_equal(child.range.end, range.end);
		}
	}
}

TEST(parents_and_children_agree)
{
	for_all(check_parents);
}

/* A full tree of depth d holds 1 + k + ... + k^d nodes. */
static void check_depth(uint32_t n, uint32_t k)
{
	uint64_t held = 1, level = 1;
	uint32_t bound = 0;

	for (; held < n; held += level) {
		level *= k;
		bound++;
	}
	for (uint32_t p = 0; p < n; p++)
		assert_true(tree_place(n, k, p).depth <= bound);
}

TEST(is_as_flat_as_its_width_allows)
{
	for_all(check_depth);
	for (uint32_t p = 0; p < 1u << 20; p += 977)
		assert_true(tree_place(1u << 20, 16, p).depth <= 5);
}

static void check_hops(uint32_t n, uint32_t k)
{
	for (uint32_t from = 0; from < n; from += 1 + n / 8) {
		for (uint32_t to = 0; to < n; to++) {
			uint32_t at = from, hops = 0;

			while (at != to) {
				struct tree_place place = tree_place(n, k, at);

				at = tree_next_hop(&place, to);
				assert_true(at < n && ++hops <= 2 * n);
			}
		}
	}
}

TEST(hops_lead_to_the_target)
{
	for (uint32_t n = 1; n <= 40; n++)
		for (uint32_t k = 1; k <= 6; k++)
			check_hops(n, k);
}

TEST(knows_whom_a_position_is_not_below)
{
	struct tree_place place = tree_place(100, 3, 1);

	assert_int_equal(tree_child_index(&place, 0), TREE_NONE);
	assert_int_equal(tree_child_index(&place, 1), TREE_NONE);
	assert_int_equal(tree_child_index(&place, place.range.end),
			 TREE_NONE);
	assert_int_equal(tree_child_index(&place, TREE_NONE), TREE_NONE);
	assert_int_equal(tree_next_hop(&place, 1), 1);
	assert_int_equal(tree_next_hop(&place, 99), 0);
}
