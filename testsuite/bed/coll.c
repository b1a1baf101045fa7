/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the step in the bed, and events of its ranks and nodes. */
#include "coll.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcoll/coll_private.h"

void bed_must(const struct bed *b, bool promise, const char *what)
{
	if (!promise)
		b->o.broken(what);
}

void bed_inside(const struct bed *b, bool yes)
{
	if (b->inside)
		b->inside(yes);
}

uint32_t bed_random(struct bed *b, uint32_t below)
{
	uint64_t *seed = &b->record->seed;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (*seed >> 33) % below;
}

/* ---- life ---- */

static void shuffle(struct bed *b, uint32_t *array, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = bed_random(b, i), swap = array[j];

		array[j] = array[i - 1];
		array[i - 1] = swap;
	}
}

/* The node of each rank; none is empty. */
static void choose_nodes(struct bed *b, uint32_t *node_of)
{
	bool any = b->o.seed != 0;

	for (uint32_t r = 0; r < b->nranks; r++)
		node_of[r] = !any ? r * b->nnodes / b->nranks :
			     r < b->nnodes ? r : bed_random(b, b->nnodes);
	if (any)
		shuffle(b, node_of, b->nranks);
}

static void make_layout(struct bed *b)
{
	uint32_t *node_of = calloc(b->nranks, sizeof(*node_of));
	uint32_t *counts = calloc(b->nnodes, sizeof(*counts));
	uint32_t **ranks = calloc(b->nnodes, sizeof(*ranks));

	choose_nodes(b, node_of);
	for (uint32_t i = 0; i < b->nnodes; i++)
		ranks[i] = calloc(b->nranks, sizeof(uint32_t));
	for (uint32_t r = 0; r < b->nranks; r++)
		ranks[node_of[r]][counts[node_of[r]]++] = r;
	bed_must(b, !layout_create(&b->layout, b->nnodes, b->nranks, counts,
				   (const uint32_t *const *)ranks),
		 "a layout could not be made");
	for (uint32_t i = 0; i < b->nnodes; i++)
		free(ranks[i]);
	free(ranks);
	free(counts);
	free(node_of);
}

static void make_nodes(struct bed *b)
{
	const struct coll_options options = {
		.tree_width = b->o.width, .piece = b->o.piece,
	};

	b->nodes = calloc(b->nnodes, sizeof(*b->nodes));
	for (uint32_t p = 0; p < b->nnodes; p++) {
		struct bed_node *n = &b->nodes[p];

		n->bed = b;
		n->position = p;
		if (!b->o.alone || b->o.position == p)
			bed_must(b, !coll_create(&n->coll, b->layout, p, &options,
						 &bed_ops, n),
				 "a node could not be made");
	}
}

static void make_links(struct bed *b)
{
	b->nlinks = 2 * b->nnodes;
	b->links = calloc(b->nlinks, sizeof(*b->links));
	for (uint32_t p = 0; p < b->nnodes; p++) {
		uint32_t parent = tree_place(b->nnodes, b->o.width, p).parent;
		const struct coll *c = b->nodes[p].coll;

		bed_must(b, !c || coll_place(c)->parent == parent,
			 "a node has another parent");
		b->links[2 * p] = (struct bed_link){ .from = p, .to = parent };
		b->links[2 * p + 1] = (struct bed_link){ .from = parent, .to = p };
	}
}

struct bed *bed_new(const struct bed_options *options)
{
	struct bed *b = calloc(1, sizeof(*b));

	b->o = *options;
	b->record = options->record ? options->record : calloc(1, sizeof(*b->record));
	b->record->seed = options->seed;
	b->nnodes = options->nodes;
	b->nranks = options->ranks;
	b->combine_fails = COLL_NEVER;
	make_layout(b);
	b->gone = calloc(b->nranks, sizeof(*b->gone));
	b->outcomes = calloc(b->nranks * COLL_KINDS, options->seq_max);
	b->groups = calloc(options->groups_max, sizeof(*b->groups));
	b->fetches = calloc(options->fetches_max, sizeof(*b->fetches));
	b->asked = calloc(options->fetches_max, sizeof(*b->asked));
	make_nodes(b);
	make_links(b);
	b->ready = true;
	return b;
}

void bed_free(struct bed *b)
{
	b->ready = false;
	for (uint32_t i = 0; i < b->nlinks; i++)
		bed_link_empty(&b->links[i]);
	for (uint32_t p = 0; p < b->nnodes; p++)
		coll_destroy(b->nodes[p].coll);
	bed_groups_free(b);
	layout_destroy(b->layout);
	if (b->record != b->o.record)
		free(b->record);
	free(b->asked);
	free(b->fetches);
	free(b->outcomes);
	free(b->gone);
	free(b->links);
	free(b->nodes);
	free(b);
}

/* ---- ranks ---- */

struct coll *bed_coll_of(const struct bed *b, uint32_t rank, uint32_t *slot)
{
	uint32_t position = layout_rank_position(b->layout, rank), count;
	const uint32_t *ranks = layout_ranks_at(b->layout, position, &count);

	for (*slot = 0; ranks[*slot] != rank;)
		++*slot;
	return b->nodes[position].coll;
}

uint32_t bed_entered(const struct bed *b, enum coll_kind kind, uint32_t rank)
{
	uint32_t slot;
	const struct coll *c = bed_coll_of(b, rank, &slot);

	return coll_entered(c, kind, slot);
}

uint8_t *bed_outcome_of(const struct bed *b, enum coll_kind kind, uint32_t rank,
			uint32_t seq)
{
	bed_must(b, seq < b->o.seq_max, "too many collectives for the bed");
	return &b->outcomes[(rank * COLL_KINDS + kind) * b->o.seq_max + seq];
}

enum bed_outcome bed_outcome(const struct bed *b, enum coll_kind kind, uint32_t rank,
			     uint32_t seq)
{
	return *bed_outcome_of(b, kind, rank, seq);
}

int bed_enter_with(struct bed *b, enum coll_kind kind, uint32_t rank,
		   uint64_t count, struct payload *left, struct payload *right)
{
	uint32_t seq = bed_entered(b, kind, rank), got = 0, slot;
	uint8_t *outcome = bed_outcome_of(b, kind, rank, seq);
	struct coll *c = bed_coll_of(b, rank, &slot);
	uint8_t old = *outcome;
	int rc;

	*outcome = BED_WAITING;
	bed_inside(b, true);
	rc = kind == COLL_RING ? coll_enter_ring(c, slot, count, left, right, &got) :
				 coll_enter(c, kind, slot, left, &got);
	bed_inside(b, false);
	if (rc)
		*outcome = old;
	bed_must(b, rc || got == seq, "a rank entered another collective");
	bed_must(b, bed_entered(b, kind, rank) == seq + !rc,
		 "collectives of a rank are not counted");
	return rc;
}

int bed_enter(struct bed *b, enum coll_kind kind, uint32_t rank)
{
	uint32_t seq = bed_entered(b, kind, rank);
	const char *what = kind == COLL_RING ? "left" : coll_kind_name(kind);
	char text[BED_VALUE_MAX];
	struct payload *left = bed_payload(bed_value(b, text, what, rank, seq)), *right;
	int rc;

	right = bed_payload(bed_value(b, text, "right", rank, seq));
	rc = bed_enter_with(b, kind, rank, bed_ring_count(b, rank, seq), left, right);
	payload_unref(left);
	payload_unref(right);
	return rc;
}

void bed_rank_gone(struct bed *b, uint32_t rank)
{
	uint32_t slot;
	struct coll *c = bed_coll_of(b, rank, &slot);
	char why[COLL_REASON_MAX] = "it is gone";

	b->gone[rank] = true;
	if (b->o.varied)
		snprintf(why, sizeof(why), "rank %u is gone", rank);
	bed_inside(b, true);
	coll_rank_gone(c, slot, COLL_OF_ALL, why);
	bed_inside(b, false);
}

void bed_kill(struct bed *b, uint32_t position)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(b->layout, position, &count);

	coll_destroy(b->nodes[position].coll);
	b->nodes[position].coll = NULL;
	for (uint32_t i = 0; i < count; i++)
		b->gone[ranks[i]] = true;
	for (uint32_t i = 0; i < b->nlinks; i++) {
		struct bed_link *link = &b->links[i];

		if (link->to == position)
			bed_link_empty(link);
		link->dead |= link->to == position || link->from == position;
	}
}

/* ---- at the end ---- */

static void check_node(const struct bed *b, const struct coll *c)
{
	uint32_t *ranks = calloc(b->nranks, sizeof(*ranks));
	uint32_t *children = calloc(b->nnodes, sizeof(*children));
	uint32_t seq = 0, nranks, nchildren;
	enum coll_kind kind = 0;
	bool up;

	bed_must(b, !coll_pending(c), "a node believes that something is pending");
	bed_must(b, !coll_next_pending(c, &kind, &seq, ranks, &nranks, children,
				       &nchildren, &up),
		 "a node says that something is pending");
	bed_must(b, !coll_subsets_pending(c) && !c->subsets, "a node remembers a group");
	bed_must(b, !coll_fetches_pending(c) && !c->fetches, "a node remembers a fetch");
	for (uint32_t i = 0; i <= c->place.children; i++)
		bed_must(b, !c->peers[i].subset_ups && !c->peers[i].fetches,
			 "a node counts what a neighbour has under way");
	free(ranks);
	free(children);
}

static bool lives(const struct bed *b, uint32_t rank)
{
	return b->nodes[layout_rank_position(b->layout, rank)].coll != NULL;
}

static void check_rank(const struct bed *b, uint32_t rank)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		for (uint32_t s = 0; s < bed_entered(b, kind, rank); s++)
			bed_must(b, bed_outcome(b, kind, rank, s) >= BED_DONE,
				 "a rank waits and nothing is under way");
}

static void check_group(const struct bed *b, const struct bed_group *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t s = 0; lives(b, g->ranks[i]) && s < g->entered[i]; s++)
			bed_must(b, g->outcome[i][s] >= BED_DONE,
				 "a member waits and nothing is under way");
}

void bed_check_settled(const struct bed *b)
{
	for (uint32_t p = 0; p < b->nnodes; p++)
		if (b->nodes[p].coll)
			check_node(b, b->nodes[p].coll);
	for (uint32_t r = 0; r < b->nranks; r++)
		if (lives(b, r))
			check_rank(b, r);
	for (uint32_t g = 0; g < b->ngroups; g++)
		check_group(b, &b->groups[g]);
	for (uint32_t i = 0; i < b->o.fetches_max; i++)
		bed_must(b, b->fetches[i].outcome != BED_WAITING ||
				 !b->nodes[b->fetches[i].position].coll,
			 "a node waits for a fetch and nothing is under way");
}
