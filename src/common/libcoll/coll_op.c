/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of collectives in flight: a ring that grows, indexed by seq. */
#include "libcoll/coll_private.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 4

static struct coll_op **place_of(const struct coll_table *t, uint32_t seq)
{
	return &t->ring[seq & (t->cap - 1)];
}

struct coll_op *coll_op_find(const struct coll *c, enum coll_kind kind,
			     uint32_t seq)
{
	const struct coll_table *t = &c->tables[kind];

	if (seq < t->first || seq - t->first >= t->count)
		return NULL;
	return *place_of(t, seq);
}

static bool grow(struct coll_table *t)
{
	struct coll_table larger = *t;

	larger.cap = t->cap ? 2 * t->cap : FIRST_CAP;
	larger.ring = calloc(larger.cap, sizeof(struct coll_op *));
	if (!larger.ring)
		return false;
	for (uint32_t i = 0; i < t->count; i++)
		*place_of(&larger, t->first + i) = *place_of(t, t->first + i);
	free(t->ring);
	*t = larger;
	return true;
}

static struct coll_op *open_next(const struct coll *c, struct coll_table *t)
{
	struct coll_op *op = NULL;

	if (t->count < t->cap || grow(t))
		op = calloc(1, sizeof(*op) + coll_nparts(c) * sizeof(op->parts[0]));
	if (!op)
		return NULL;
	op->missing = coll_nparts(c);
	*place_of(t, t->first + t->count++) = op;
	return op;
}

struct coll_op *coll_op_open(struct coll *c, enum coll_kind kind, uint32_t seq)
{
	struct coll_table *t = &c->tables[kind];
	struct coll_op *op = coll_op_find(c, kind, seq);

	while (!op && seq - t->first >= t->count && open_next(c, t))
		op = coll_op_find(c, kind, seq);
	return op;
}

void coll_edges_clear(struct coll_edges *edges)
{
	payload_unref(edges->left);
	payload_unref(edges->right);
	memset(edges, 0, sizeof(*edges));
}

/* Forgets the bytes only. */
void coll_data_clear(struct coll_data *data)
{
	payload_unref(data->first);
	if (data->rest)
		payload_vec_clear(data->rest);
	free(data->rest);
	data->first = NULL;
	data->rest = NULL;
}

static void op_free(struct coll *c, enum coll_kind kind, struct coll_op *op)
{
	for (uint32_t i = 0; i < coll_nparts(c); i++) {
		if (kind == COLL_RING)
			coll_edges_clear(&op->parts[i].edges);
		else
			coll_data_clear(&op->parts[i].data);
	}
	payload_vec_clear(&op->ready);
	payload_unref(op->result.bytes);
	payload_unref(op->result.room);
	payload_vec_clear(&op->result.pieces);
	payload_unref(op->result.reason);
	if (op->entrants)
		c->pending--;
	free(op);
}

void coll_op_close_first(struct coll *c, enum coll_kind kind)
{
	struct coll_table *t = &c->tables[kind];

	op_free(c, kind, *place_of(t, t->first));
	t->first++;
	t->count--;
}

void coll_op_cut(struct coll *c, enum coll_kind kind, uint32_t from)
{
	struct coll_table *t = &c->tables[kind];

	while (t->count && t->first + t->count > from) {
		op_free(c, kind, *place_of(t, t->first + t->count - 1));
		t->count--;
	}
}

void coll_table_free(struct coll *c, enum coll_kind kind)
{
	coll_op_cut(c, kind, 0);
	free(c->tables[kind].ring);
}

uint32_t coll_ended(const struct coll *c, enum coll_kind kind)
{
	return c->tables[kind].first;
}
