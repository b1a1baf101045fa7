/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_process_mapping, checked by a reader of its own against the layout: block,
 * cyclic, plane, uneven and arbitrary layouts.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "libpmi/mapping.h"

#define RANDOM_LAYOUTS 3000

/* nodes[r] is the node id of rank r. */
static struct layout *make_layout(const uint32_t *nodes, uint32_t nranks,
				  uint32_t nnodes)
{
	uint32_t *counts = calloc(nnodes, sizeof(*counts));
	uint32_t **ranks = calloc(nnodes, sizeof(*ranks));
	struct layout *l;

	for (uint32_t r = 0; r < nranks; r++)
		counts[nodes[r]]++;
	for (uint32_t n = 0; n < nnodes; n++) {
		ranks[n] = calloc(counts[n], sizeof(**ranks));
		counts[n] = 0;
	}
	for (uint32_t r = 0; r < nranks; r++)
		ranks[nodes[r]][counts[nodes[r]]++] = r;
	assert_int_equal(layout_create(&l, nnodes, nranks, counts,
				       (const uint32_t *const *)ranks), 0);
	for (uint32_t n = 0; n < nnodes; n++)
		free(ranks[n]);
	free(ranks);
	free(counts);
	return l;
}

/*
 * Read a mapping as clients do: block after block, again from the first one
 * while ranks are left.
 */
static void assert_reads_as(const char *text, const struct layout *l)
{
	uint32_t nranks = layout_ranks(l), rank = 0;
	const char *head = "(vector", *at = text;

	assert_true(strlen(text) < MAPPING_MAX);
	assert_memory_equal(text, head, strlen(head));
	while (rank < nranks) {
		uint32_t first, n, ppn;
		int used;

		if (at == text || *at == ')')
			at = text + strlen(head);
		assert_int_equal(sscanf(at, ",(%u,%u,%u)%n", &first, &n, &ppn,
					&used), 3);
		assert_true(n > 0 && ppn > 0);
		for (uint64_t i = 0; i < (uint64_t)n * ppn && rank < nranks; i++)
			assert_int_equal(layout_rank_position(l, rank++),
					 first + i / ppn);
		at += used;
	}
	assert_string_equal(text + strlen(text) - 2, "))");
}

static void assert_mapping(const uint32_t *nodes, uint32_t nranks,
			   uint32_t nnodes, const char *expected)
{
	struct layout *l = make_layout(nodes, nranks, nnodes);
	char *text = mapping_create(l);

	assert_non_null(text);
	assert_reads_as(text, l);
	if (expected)
		assert_string_equal(text, expected);
	free(text);
	layout_destroy(l);
}

TEST(block_is_one_block)
{
	uint32_t nodes[4 * 16];

	for (uint32_t r = 0; r < 64; r++)
		nodes[r] = r / 16;
	assert_mapping(nodes, 64, 4, "(vector,(0,4,16))");
	assert_mapping(nodes, 1, 1, "(vector,(0,1,1))");
	assert_mapping(nodes, 53, 4, "(vector,(0,3,16),(3,1,5))");
}

TEST(nodes_are_numbered_by_their_lowest_rank)
{
	const uint32_t nodes[] = { 2, 2, 0, 0, 1, 1 };

	assert_mapping(nodes, 6, 3, "(vector,(0,3,2))");
}

TEST(few_rounds_are_written_out)
{
	uint32_t nodes[12];

	for (uint32_t r = 0; r < 12; r++)
		nodes[r] = r % 4;
	assert_mapping(nodes, 12, 4, "(vector,(0,4,1),(0,4,1),(0,4,1))");
	assert_mapping(nodes, 6, 4, "(vector,(0,4,1),(0,2,1))");
}

TEST(many_rounds_are_written_once)
{
	const uint32_t nnodes = 300, nranks = 300 * 1024 + 7;
	uint32_t *nodes = calloc(nranks, sizeof(*nodes));

	for (uint32_t r = 0; r < nranks; r++)
		nodes[r] = r % nnodes;
	assert_mapping(nodes, nranks, nnodes, "(vector,(0,300,1))");
	for (uint32_t r = 0; r < nranks; r++)
		nodes[r] = r / 4 % nnodes;
	assert_mapping(nodes, nranks, nnodes, "(vector,(0,300,4))");
	for (uint32_t r = 0; r < nranks; r++)
		nodes[r] = r % 10 < 7 ? 0 : 1;
	assert_mapping(nodes, nranks, 2, "(vector,(0,1,7),(1,1,3))");
	free(nodes);
}

/* Counts 1, 1, 2, 1, 1, 2, ...: half of a node's ranks may join a block. */
TEST(a_run_is_cut_where_that_saves_blocks)
{
	const uint32_t nnodes = 240;
	uint32_t nodes[2 * 240], nranks = 0;

	for (uint32_t n = 0; n < nnodes; n++) {
		nodes[nranks++] = n;
		if (n % 3 == 2)
			nodes[nranks++] = n;
	}
	assert_mapping(nodes, 9, 7,
		       "(vector,(0,3,1),(2,4,1),(5,2,1))");
	assert_mapping(nodes, nranks, nnodes, NULL);
}

TEST(blocks_that_do_not_fit_are_left_out)
{
	const uint32_t nranks = 2000;
	uint32_t nodes[2000];
	struct layout *l;

	srand(1);
	for (uint32_t r = 0; r < nranks; r++)
		nodes[r] = r < 50 ? r : (uint32_t)rand() % 50;
	l = make_layout(nodes, nranks, 50);
	assert_null(mapping_create(l));
	layout_destroy(l);
}

/* ---- random layouts ---- */

static uint32_t pick(uint32_t low, uint32_t high)
{
	return low + (uint32_t)rand() % (high - low + 1);
}

/*
 * Deal ranks out in rounds of up to `plane` for every node that still has room.
 * A plane over all counts is a block layout, a plane of 1 a cyclic one.
 */
static uint32_t deal(uint32_t *nodes, uint32_t *counts, uint32_t nnodes,
		     uint32_t plane)
{
	uint32_t nranks = 0;
	bool dealt = true;

	while (dealt) {
		dealt = false;
		for (uint32_t n = 0; n < nnodes; n++) {
			for (uint32_t i = 0; i < plane && counts[n]; i++) {
				nodes[nranks++] = n;
				counts[n]--;
				dealt = true;
			}
		}
	}
	return nranks;
}

static uint32_t random_layout(uint32_t *nodes, uint32_t *nnodes)
{
	const uint32_t planes[] = { 1, 2, 3, 64 };
	uint32_t counts[60], most = pick(1, 20);
	uint32_t least = rand() % 2 ? most : 1, nranks;

	*nnodes = pick(1, 60);
	for (uint32_t n = 0; n < *nnodes; n++)
		counts[n] = pick(least, most);
	nranks = deal(nodes, counts, *nnodes, planes[rand() % 4]);
	for (int swaps = rand() % 4 ? 0 : rand() % 6; swaps > 0; swaps--) {
		uint32_t a = rand() % nranks, b = rand() % nranks;
		uint32_t node = nodes[a];

		nodes[a] = nodes[b];
		nodes[b] = node;
	}
	return nranks;
}

/* Bytes of a mapping with a block for each run of ranks. */
static size_t plain_length(const struct layout *l)
{
	size_t len = strlen("(vector)");

	for (uint32_t r = 0, next; r < layout_ranks(l); r = next) {
		uint32_t node = layout_rank_position(l, r);

		for (next = r; next < layout_ranks(l) &&
			       layout_rank_position(l, next) == node; next++)
			;
		len += snprintf(NULL, 0, ",(%u,1,%u)", node, next - r);
	}
	return len;
}

TEST(random_layouts_read_back)
{
	uint32_t nodes[60 * 20], nnodes, nranks;
	unsigned left_out = 0;

	srand(20240501);
	for (int i = 0; i < RANDOM_LAYOUTS; i++) {
		struct layout *l;
		char *text;

		nranks = random_layout(nodes, &nnodes);
		l = make_layout(nodes, nranks, nnodes);
		text = mapping_create(l);
		if (text)
			assert_reads_as(text, l);
		else
			assert_true(plain_length(l) >= MAPPING_MAX);
		left_out += !text;
		free(text);
		layout_destroy(l);
	}
	assert_true(left_out < RANDOM_LAYOUTS / 4);
}

/*
 * The fewest blocks for the ranks from `rank` on, by trying every block that
 * is right for them.
 */
static uint32_t fewest_blocks(const struct layout *l, uint32_t rank)
{
	uint32_t nranks = layout_ranks(l), best = nranks - rank;
	uint32_t first = layout_rank_position(l, rank % nranks);

	for (uint32_t ppn = 1; ppn <= nranks - rank; ppn++) {
		uint32_t end = rank;

		while (end < nranks && layout_rank_position(l, end) ==
					       first + (end - rank) / ppn) {
			end++;
			if ((end - rank) % ppn == 0) {
				uint32_t rest = fewest_blocks(l, end);

				best = rest + 1 < best ? rest + 1 : best;
			}
		}
	}
	return best;
}

TEST(hardly_a_mapping_has_fewer_blocks)
{
	unsigned shortest = 0;

	srand(7);
	for (int i = 0; i < RANDOM_LAYOUTS; i++) {
		uint32_t nodes[12], nnodes = 0, nranks = pick(1, 12);
		uint32_t blocks = 0;
		struct layout *l;
		char *text;

		for (uint32_t r = 0; r < nranks; r++) {
			uint32_t before = r ? nodes[r - 1] : 0;

			nodes[r] = rand() % 3 ? before : before + 1;
			if (rand() % 8 == 0)
				nodes[r] = pick(0, nnodes);
			if (nodes[r] >= nnodes)
				nodes[r] = nnodes++;
		}
		l = make_layout(nodes, nranks, nnodes);
		text = mapping_create(l);
		for (const char *at = text; (at = strstr(at, ",(")); at++)
			blocks++;
		assert_true(blocks <= fewest_blocks(l, 0) + 1);
		shortest += blocks == fewest_blocks(l, 0);
		free(text);
		layout_destroy(l);
	}
	assert_true(shortest > RANDOM_LAYOUTS * 99 / 100);
}
