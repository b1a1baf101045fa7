/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts of a step: any list is refused or laid out in full, and what the
 * process mapping says is what the client library reads out of it.
 */
#include "fuzz.h"

#include "clique.h"
#include "libcoll/layout.h"
#include "libcoll/tree.h"
#include "libpmi/mapping.h"

#define NODES_MAX 16
#define RANKS_MAX 64

struct lists {
	uint32_t counts[NODES_MAX];
	uint32_t ranks[NODES_MAX][RANKS_MAX];
	const uint32_t *at[NODES_MAX];
};

/* Each rank on the node that the input says; every node has some. */
static void distribute(struct lists *l, uint32_t nodes, uint32_t ranks,
		       struct fuzz_input *in)
{
	for (uint32_t r = 0; r < ranks; r++) {
		uint32_t node = (r < nodes ? r : fuzz_u8(in)) % nodes;

		l->ranks[node][l->counts[node]++] = r;
	}
}

static void anything(struct lists *l, uint32_t nodes, struct fuzz_input *in)
{
	for (uint32_t node = 0; node < nodes; node++) {
		l->counts[node] = fuzz_u8(in) % 8;
		for (uint32_t i = 0; i < l->counts[node]; i++)
			l->ranks[node][i] = fuzz_u8(in);
	}
}

static void check_mapping(const struct layout *l, uint32_t ranks)
{
	char *text = mapping_create(l);
	int same[RANKS_MAX];

	if (!text)
		return;
	FUZZ_CHECK(strlen(text) < MAPPING_MAX);
	for (uint32_t r = 0; r < ranks; r++) {
		int n = clique_find(text, r, ranks, same, RANKS_MAX);
		uint32_t p = layout_rank_position(l, r), count;
		const uint32_t *here = layout_ranks_at(l, p, &count);

		FUZZ_CHECK(n == (int)count);
		for (uint32_t i = 0; i < count; i++)
			FUZZ_CHECK(same[i] == (int)here[i]);
	}
	free(text);
}

static void check_tree(uint32_t nodes, uint32_t width)
{
	for (uint32_t p = 0; p < nodes; p++) {
		struct tree_place place = tree_place(nodes, width, p);

		FUZZ_CHECK(place.range.first == p && place.range.end <= nodes);
		for (uint32_t to = 0; to < nodes; to++)
			FUZZ_CHECK(tree_next_hop(&place, to) < nodes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t what = fuzz_u8(&in);
	uint32_t nodes = fuzz_u8(&in) % NODES_MAX + 1;
	uint32_t ranks = fuzz_u8(&in) % RANKS_MAX + 1;
	struct lists *lists = fuzz_copy(NULL, 0, sizeof(*lists));
	struct layout *l;
	int rc;

	for (uint32_t i = 0; i < nodes; i++)
		lists->at[i] = lists->ranks[i];
	if (what % 2)
		distribute(lists, nodes, ranks, &in);
	else
		anything(lists, nodes, &in);
	rc = layout_create(&l, nodes, ranks, lists->counts, lists->at);
	FUZZ_CHECK(rc || ranks >= nodes);
	FUZZ_CHECK(!rc || !(what % 2) || ranks < nodes);
	if (!rc) {
		check_mapping(l, ranks);
		check_tree(nodes, TREE_WIDTH_MIN + what / 2 % 4);
		layout_destroy(l);
	}
	free(lists);
	return 0;
}
