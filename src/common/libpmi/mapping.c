/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_process_mapping out of a layout.
 *
 * Ranks in order form runs: consecutive ranks of one node. A block starts with
 * what is left of a run, of length ppn, and goes on over the next nodes as long
 * as their runs have that length. The last run of a block may be longer; it is
 * then worth a try to cut it, since its rest may begin the next block (nodes
 * with 1, 1, 1, 2, 1, 1, 2 ranks need half the blocks). So after k blocks
 * there are two ends to go on from: as far as k blocks can reach, and the run
 * boundary before it. No end before that boundary leads further. (An end between
 * the two could; it saves 1 block in 50 where runs differ a lot.)
 */
#include "libpmi/mapping.h"

#include <stdlib.h>

#include "libutil/buf.h"

#define BLOCKS_MAX (MAPPING_MAX / (sizeof(",(0,1,1)") - 1)) /* at most */

struct block {
	uint32_t first; /* node */
	uint32_t n;
	uint32_t ppn;
	uint32_t end;   /* one past its last rank */
	unsigned from;  /* which end of the level before it starts at */
};

enum { BOUNDARY, FARTHEST, ENDS };

/* How many ranks from `rank` on, below `end`, are on the node of `rank`. */
static uint32_t run_length(const struct layout *l, uint32_t rank, uint32_t end)
{
	uint32_t node = layout_rank_position(l, rank);
	uint32_t at = rank + 1;

	while (at < end && layout_rank_position(l, at) == node)
		at++;
	return at - rank;
}

/* The two blocks from `start` that are worth a look. */
static void extend(const struct layout *l, uint32_t start, uint32_t end,
		   struct block blocks[ENDS])
{
	struct block b = {
		.first = layout_rank_position(l, start),
		.n = 1,
		.ppn = run_length(l, start, end),
	};
	uint32_t next = 0;

	b.end = start + b.ppn;
	while (b.end < end && layout_rank_position(l, b.end) == b.first + b.n) {
		next = run_length(l, b.end, end);
		if (next != b.ppn)
			break;
		b.n++;
		b.end += b.ppn;
		next = 0;
	}
	blocks[BOUNDARY] = blocks[FARTHEST] = b;
	if (next > b.ppn) {
		blocks[FARTHEST].n++;
		blocks[FARTHEST].end += b.ppn;
	}
}

/* The best two ends of one block more than `before`. */
static void next_level(const struct layout *l, uint32_t end,
		       const struct block before[ENDS], struct block best[ENDS])
{
	struct block other[ENDS];

	extend(l, before[BOUNDARY].end, end, best);
	best[BOUNDARY].from = best[FARTHEST].from = BOUNDARY;
	extend(l, before[FARTHEST].end, end, other);
	if (other[FARTHEST].end <= best[FARTHEST].end)
		return;
	for (unsigned i = 0; i < ENDS; i++) {
		best[i] = other[i];
		best[i].from = FARTHEST;
	}
}

static char *format_blocks(const struct block *blocks, size_t count)
{
	struct buf text;
	int rc;

	buf_init(&text, MAPPING_MAX);
	rc = buf_puts(&text, "(vector");
	for (size_t i = 0; !rc && i < count; i++)
		rc = buf_printf(&text, ",(%u,%u,%u)", blocks[i].first,
				blocks[i].n, blocks[i].ppn);
	if (!rc)
		rc = buf_append(&text, ")", sizeof(")"));
	if (rc)
		buf_free(&text);
	return text.data;
}

/* Blocks for exactly the ranks below `end`, or NULL. */
static char *cover(const struct layout *l, uint32_t end)
{
	struct block levels[BLOCKS_MAX + 1][ENDS] = { 0 };
	struct block path[BLOCKS_MAX];
	size_t count = 0;
	unsigned side = FARTHEST;

	while (levels[count][FARTHEST].end < end) {
		if (count == BLOCKS_MAX)
			return NULL;
		next_level(l, end, levels[count], levels[count + 1]);
		count++;
	}
	for (size_t i = count; i > 0; i--) {
		path[i - 1] = levels[i][side];
		side = path[i - 1].from;
	}
	return format_blocks(path, count);
}

/*
 * The smallest p such that every rank r >= p is on the node of r - p (the
 * failure function of string matching); the number of ranks when there is none.
 */
static uint32_t layout_period(const struct layout *l)
{
	uint32_t n = layout_ranks(l), matched = 0;
	uint32_t *border = calloc(n, sizeof(*border));

	if (!border)
		return n;
	for (uint32_t r = 1; r < n; r++) {
		uint32_t node = layout_rank_position(l, r);

		while (matched && layout_rank_position(l, matched) != node)
			matched = border[matched - 1];
		if (layout_rank_position(l, matched) == node)
			matched++;
		border[r] = matched;
	}
	free(border);
	return n - matched;
}

char *mapping_create(const struct layout *l)
{
	uint32_t period;
	char *text = cover(l, layout_ranks(l));

	if (text)
		return text;
	period = layout_period(l);
	return period < layout_ranks(l) ? cover(l, period) : NULL;
}
