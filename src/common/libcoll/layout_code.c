/* SPDX-License-Identifier: BSD-3-Clause */
/* A layout as bytes: the ranks of each node as runs of equal steps. */
#include "libcoll/layout_code.h"

#include <errno.h>
#include <stdlib.h>

struct run {
	uint32_t first, count, stride;
};

/* The longest run at the beginning of `ranks`. */
static struct run next_run(const uint32_t *ranks, uint32_t count)
{
	struct run r = { ranks[0], 1, count > 1 ? ranks[1] - ranks[0] : 1 };

	while (r.count < count &&
	       ranks[r.count] == ranks[r.count - 1] + r.stride)
		r.count++;
	return r;
}

static int pack_ranks(struct buf *b, const uint32_t *ranks, uint32_t count)
{
	int rc = pack_u32(b, count);

	while (count && !rc) {
		struct run r = next_run(ranks, count);

		rc = pack_u32(b, r.first);
		rc = rc ? rc : pack_u32(b, r.count);
		rc = rc ? rc : pack_u32(b, r.stride);
		ranks += r.count;
		count -= r.count;
	}
	return rc;
}

static int pack_layout(struct buf *b, const struct layout *l)
{
	uint32_t count, nodes = layout_nodes(l);
	int rc = pack_u32(b, nodes);

	rc = rc ? rc : pack_u32(b, layout_ranks(l));
	for (uint32_t id = 0; id < nodes && !rc; id++) {
		const uint32_t *ranks =
			layout_ranks_at(l, layout_position(l, id), &count);

		rc = pack_ranks(b, ranks, count);
	}
	return rc;
}

/* Into *room, of which `left` are free. */
static int unpack_ranks(struct cursor *c, uint32_t *room, uint32_t left,
			uint32_t *count)
{
	uint32_t have = 0;

	*count = unpack_u32(c);
	if (*count > left)
		return -EPROTO;
	while (have < *count && cursor_ok(c)) {
		uint32_t first = unpack_u32(c), n = unpack_u32(c);
		uint32_t stride = unpack_u32(c);

		if (n == 0 || n > *count - have)
			return -EPROTO;
		for (uint32_t i = 0; i < n; i++)
			room[have++] = first + i * stride;
	}
	return cursor_ok(c) ? 0 : -EPROTO;
}

static int unpack_nodes(struct cursor *c, struct layout **out, uint32_t nodes,
			uint32_t nranks, uint32_t *counts, uint32_t *all,
			const uint32_t **ranks)
{
	uint32_t used = 0;
	int rc = 0;

	for (uint32_t id = 0; id < nodes && !rc; id++) {
		ranks[id] = all + used;
		rc = unpack_ranks(c, all + used, nranks - used, &counts[id]);
		used += rc ? 0 : counts[id];
	}
	rc = rc ? rc : layout_create(out, nodes, nranks, counts, ranks);
	return rc == -EINVAL ? -EPROTO : rc;
}

static int unpack_layout(struct cursor *c, struct layout **out)
{
	uint32_t nodes = unpack_u32(c), nranks = unpack_u32(c);
	uint32_t *counts, *all;
	const uint32_t **ranks;
	int rc = -ENOMEM;

	if (!cursor_ok(c) || nodes > LAYOUT_NODES_MAX ||
	    nranks > LAYOUT_RANKS_MAX ||
	    nodes > cursor_left(c) / (4 * sizeof(uint32_t)))
		return -EPROTO;
	counts = calloc(nodes + 1, sizeof(*counts));
	all = calloc((size_t)nranks + 1, sizeof(*all));
	ranks = calloc(nodes + 1, sizeof(*ranks));
	if (counts && all && ranks)
		rc = unpack_nodes(c, out, nodes, nranks, counts, all, ranks);
	free(counts);
	free(all);
	free(ranks);
	return rc;
}

void code_layout(struct coder *c, struct layout **l)
{
	if (!c->out && !c->rc)
		c->rc = unpack_layout(&c->in, l);
	else if (!c->rc)
		c->rc = pack_layout(c->out, *l);
}
