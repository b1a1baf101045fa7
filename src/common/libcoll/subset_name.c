/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of subsets, and what follows from one at a node. Packed, a name is
 *
 *   u8 op, u32 series, tag, and the ranks in runs: how many, the distance from the rank
 *   before (the first: from -1), and for two and more their distance
 *
 * with the numbers of runs in groups of seven bits, the lowest first, all but the
 * last with 128 added. The key is the hash of that.
 */
#include "libcoll/subset_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/hash.h"

/* ---- packing ---- */

static int pack_number(struct buf *b, uint32_t v)
{
	int rc = 0;

	for (; !rc && v >= 128; v >>= 7)
		rc = pack_u8(b, v | 128);
	return rc ? rc : pack_u8(b, v);
}

/* How many of ranks[0..n) have one distance. */
static uint32_t run_of(const uint32_t *ranks, uint32_t n)
{
	uint32_t len = n < 2 ? n : 2;

	while (len < n && ranks[len] - ranks[len - 1] == ranks[1] - ranks[0])
		len++;
	return len;
}

static int pack_ranks(struct buf *b, const uint32_t *ranks, uint32_t count)
{
	uint32_t before = UINT32_MAX, len;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < count; i += len) {
		len = run_of(ranks + i, count - i);
		rc = pack_number(b, len);
		if (!rc)
			rc = pack_number(b, ranks[i] - before);
		if (!rc && len > 1)
			rc = pack_number(b, ranks[i + 1] - ranks[i]);
		before = ranks[i + len - 1];
	}
	return rc;
}

static bool ranks_are_right(const struct coll *c,
			    const struct coll_subset_name *name)
{
	if (!name->count || name->ranks[name->count - 1] >=
				    layout_ranks(c->layout))
		return false;
	for (uint32_t i = 1; i < name->count; i++)
		if (name->ranks[i] <= name->ranks[i - 1])
			return false;
	return true;
}

int subset_name_pack(const struct coll *c, struct buf *b,
		     const struct coll_subset_name *name)
{
	int rc;

	if (name->tag_len > COLL_SUBSET_TAG_MAX || !ranks_are_right(c, name))
		return -EINVAL;
	rc = pack_u8(b, name->op);
	if (!rc)
		rc = pack_u32(b, name->series);
	if (!rc)
		rc = pack_bytes(b, name->tag, name->tag_len);
	return rc ? rc : pack_ranks(b, name->ranks, name->count);
}

/* ---- reading ---- */

/* Through the members of a packed name. */
struct reader {
	struct cursor at;
	uint32_t limit;  /* ranks of the step */
	uint64_t rank;   /* the one before; starts one before the first */
	uint32_t left;   /* of a run, */
	uint32_t stride;
};

static uint32_t unpack_number(struct cursor *at)
{
	uint32_t v = 0, byte = 128;

	for (int shift = 0; byte & 128; shift += 7) {
		byte = unpack_u8(at);
		if (shift == 28 && byte > 15)
			at->failed = true;
		if (at->failed)
			return 0;
		v |= (byte & 127) << shift;
	}
	return v;
}

static void read_begin(struct reader *r, const struct coll *c,
		       const struct payload *name)
{
	size_t len;

	*r = (struct reader){ .limit = layout_ranks(c->layout),
			      .rank = UINT64_MAX };
	cursor_init(&r->at, name->data, name->len);
	unpack_u8(&r->at);
	unpack_u32(&r->at);
	unpack_bytes(&r->at, COLL_SUBSET_TAG_MAX, &len);
}

enum coll_side subset_side(const struct subset *s)
{
	return coll_side_of_op(s->name->data[0], COLL_OP_PMIX);
}

uint32_t subset_series(const struct subset *s)
{
	struct cursor at;

	cursor_init(&at, s->name->data, s->name->len);
	unpack_u8(&at);
	return unpack_u32(&at);
}

/* The next member; false: there is none, or what comes is no list of ranks. */
static bool read_next(struct reader *r, uint32_t *rank)
{
	uint32_t step = r->stride;

	if (!r->left) {
		if (!cursor_left(&r->at) || r->at.failed)
			return false;
		r->left = unpack_number(&r->at);
		step = unpack_number(&r->at);
		r->stride = r->left > 1 ? unpack_number(&r->at) : 1;
	}
	if (r->at.failed || !r->left || !step ||
	    r->rank + step >= r->limit) {
		r->at.failed = true;
		return false;
	}
	r->left--;
	r->rank += step;
	*rank = r->rank;
	return true;
}

void subset_name_describe(const struct payload *name,
			  struct coll_subset_state *out)
{
	struct cursor at;

	cursor_init(&at, name->data, name->len);
	out->op = unpack_u8(&at);
	unpack_u32(&at);
	out->tag = unpack_bytes(&at, COLL_SUBSET_TAG_MAX, &out->tag_len);
	out->members = 0;
	while (cursor_left(&at) && !at.failed) {
		uint32_t len = unpack_number(&at);

		unpack_number(&at);
		if (len > 1)
			unpack_number(&at);
		out->members += len;
	}
}

/* ---- what follows from it ---- */

/* The members of a subset, by their place in the tree relative to a node. */
struct spread {
	uint32_t first, last; /* positions */
	uint32_t inside;      /* members in the node's subtree, */
	uint32_t here;        /* on this node */
};

/* False: it is no name. */
static bool look_around(const struct coll *c, const struct payload *name,
			const struct tree_place *place, struct spread *out)
{
	struct reader r;
	uint32_t rank;

	*out = (struct spread){ .first = UINT32_MAX };
	read_begin(&r, c, name);
	while (read_next(&r, &rank)) {
		uint32_t p = layout_rank_position(c->layout, rank);

		out->first = p < out->first ? p : out->first;
		out->last = p > out->last ? p : out->last;
		out->here += p == place->range.first;
		out->inside += p >= place->range.first && p < place->range.end;
	}
	return cursor_done(&r.at) && out->first != UINT32_MAX;
}

/* The nodes above without members, up to where all meet. */
static void look_above(const struct coll *c, struct subset *s,
		       const struct payload *name, uint32_t top)
{
	struct tree_place place = c->place;
	struct spread spread;

	while (place.range.first != top) {
		place = tree_place(layout_nodes(c->layout), place.width,
				   place.parent);
		look_around(c, name, &place, &spread);
		if (spread.here)
			return;
		s->above[s->nabove++] = spread.inside;
		s->last = place.range.first == top;
	}
}

uint32_t subset_find_rank(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
	uint32_t low = 0, high = count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (ranks[middle] <= rank)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Own members to s->own, and those of each child to `members`. */
static void sort_members(const struct coll *c, struct subset *s,
			 const struct payload *name, uint32_t *members)
{
	struct reader r;
	uint32_t rank;

	read_begin(&r, c, name);
	while (read_next(&r, &rank)) {
		uint32_t p = layout_rank_position(c->layout, rank);
		uint32_t i = tree_child_index(&c->place, p);

		if (p == c->place.range.first)
			s->own[s->nown++].slot =
				subset_find_rank(c->ranks, c->nslots, rank);
		else if (i != TREE_NONE)
			members[i]++;
	}
}

/* False: what the messages of children have said is not so. */
static bool children_agree(const struct coll *c, const struct subset *s,
			   const uint32_t *members)
{
	for (uint32_t i = 0; i < c->place.children; i++)
		if (s->children[i].ups && s->children[i].members != members[i])
			return false;
	return true;
}

static int learn(struct coll *c, struct subset *s, struct payload *name,
		 const struct spread *spread, uint32_t top)
{
	uint32_t *members = calloc(c->place.children + 1, sizeof(*members));
	struct subset_own *own = calloc(spread->here + 1, sizeof(*own));
	int rc = members && own ? 0 : -ENOMEM;

	s->own = own;
	if (!rc)
		sort_members(c, s, name, members);
	if (!rc && !children_agree(c, s, members))
		rc = -EPROTO;
	if (rc) {
		free(own);
		s->own = NULL;
		s->nown = 0;
	} else {
		for (uint32_t i = 0; i < c->place.children; i++)
			s->children[i].members = members[i];
		s->members = spread->inside;
		s->meets = top == c->place.range.first;
		s->nabove = 0;
		s->last = false;
		s->name = payload_ref(name);
		look_above(c, s, name, top);
	}
	free(members);
	return rc;
}

static bool is_key_of(const struct subset *s, const struct payload *name)
{
	unsigned char key[HASH_NAME_SIZE];

	hash_name(key, name->data, name->len);
	return !memcmp(key, s->key, COLL_KEY_SIZE);
}

int subset_learn(struct coll *c, struct subset *s, struct payload *name)
{
	struct spread spread;
	struct tree_place place;
	uint32_t top;

	if (s->name)
		return 0;
	if (!name || !name->data || !is_key_of(s, name) ||
	    !look_around(c, name, &c->place, &spread) || !spread.inside)
		return -EPROTO;
	top = tree_meet(layout_nodes(c->layout), c->place.width, spread.first,
			spread.last);
	place = tree_place(layout_nodes(c->layout), c->place.width, top);
	if (c->place.range.first < top || c->place.range.first >= place.range.end)
		return -EPROTO;
	/* By what its ups said this node has no members. */
	if (s->members && (spread.here || s->members != spread.inside ||
			   s->meets != (top == c->place.range.first)))
		return -EPROTO;
	return learn(c, s, name, &spread, top);
}

struct subset_own *subset_own(const struct subset *s, uint32_t slot)
{
	for (uint32_t i = 0; i < s->nown; i++)
		if (s->own[i].slot == slot)
			return &s->own[i];
	return NULL;
}
