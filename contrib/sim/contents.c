/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the contributions of ranks, and checks the results. */
#include "contents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshm/image.h"
#include "libshm/records.h"

/* Ranks of a result that each node checks: the next node looks at others. */
#define CHECKED_RANKS 64
#define BLOCK_MAX (SIZE_MAX / 2)
/* Bytes of results that all nodes together may hold. */
#define RESULTS_MAX ((uint64_t)16 << 30)

static const struct scenario_op *op_at(const struct sim *s, uint32_t op)
{
	return &s->scenario->ops[op];
}

/* ---- values and keys ---- */

void contents_fill(void *at, uint32_t len, uint32_t rank, uint32_t op,
		   uint32_t which)
{
	static const char letters[64] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789;=";
	struct sim_random r = {
		((uint64_t)rank << 32) ^ ((uint64_t)op << 16) ^ which,
	};
	char *to = at;
	uint64_t word = 0;

	for (uint32_t i = 0; i < len; i++, word >>= 6) {
		if (i % 8 == 0)
			word = random_next(&r);
		to[i] = letters[word % 64];
	}
}

bool contents_value_is(const struct sim *s, uint32_t op, uint32_t rank,
		       uint32_t which, const void *value, size_t len)
{
	uint32_t expected_len = op_at(s, op)->bytes;
	char *expected = malloc(expected_len + 1);
	bool same = expected && len == expected_len;

	if (same) {
		contents_fill(expected, expected_len, rank, op, which);
		same = !len || memcmp(value, expected, len) == 0;
	}
	free(expected);
	return same;
}

uint32_t contents_stride(const struct sim *s)
{
	return (s->nranks + CHECKED_RANKS - 1) / CHECKED_RANKS;
}

int contents_key(char *at, const struct scenario *sc, uint32_t keys,
		 uint32_t rank, uint32_t key)
{
	return snprintf(at, RECORD_KEY_MAX + 1, "%0*llu", (int)sc->key_bytes,
			(unsigned long long)rank * keys + key);
}

/* ---- contributions ---- */

static int add_record(struct buf *b, const struct scenario *sc,
		      const struct scenario_op *op, uint32_t rank,
		      uint32_t index, uint32_t key)
{
	char name[RECORD_KEY_MAX + 1];
	char *value = malloc(op->bytes + 1);
	int rc = -ENOMEM;

	if (value) {
		contents_fill(value, op->bytes, rank, index, key);
		rc = record_append(b, name,
				   contents_key(name, sc, op->keys, rank, key),
				   value, op->bytes);
	}
	free(value);
	return rc;
}

static struct payload *records_of(const struct scenario *sc,
				  const struct scenario_op *op, uint32_t rank,
				  uint32_t index)
{
	struct payload *p = NULL;
	struct buf b;
	int rc = 0;

	buf_init(&b, BLOCK_MAX);
	for (uint32_t key = 0; !rc && key < op->keys; key++)
		rc = add_record(&b, sc, op, rank, index, key);
	if (!rc)
		p = payload_copy(b.data, b.len);
	buf_free(&b);
	return p;
}

static struct payload *gathered_of(const struct scenario_op *op, uint32_t rank,
				   uint32_t index)
{
	char *value = malloc(op->bytes + 1);
	struct payload *p = NULL;

	if (value) {
		contents_fill(value, op->bytes, rank, index, 0);
		p = gather_contribution(NULL, value, op->bytes);
	}
	free(value);
	return p;
}

static struct payload *bytes_of(const struct scenario *sc,
				const struct scenario_op *op, uint32_t rank,
				uint32_t index)
{
	return op->kind == OP_FENCE ? records_of(sc, op, rank, index) :
				      gathered_of(op, rank, index);
}

uint64_t contents_unit_len(const struct scenario *sc,
			   const struct scenario_op *op)
{
	struct scenario_op one = *op;
	struct payload *p;
	uint64_t len;

	if (op->kind == OP_RING)
		return 2 * (uint64_t)op->bytes;
	one.keys = 1;
	p = bytes_of(sc, &one, 0, 0);
	len = p ? p->len : 0;
	payload_unref(p);
	return len;
}

struct payload *contents_of(struct sim_node *n, uint32_t op, uint32_t slot)
{
	const struct sim *s = n->sim;
	uint32_t rank = rank_number(s, n->first + slot);
	const struct scenario_op *o = op_at(s, op);
	struct payload *bytes, *p;

	if (s->scenario->payload == PAYLOAD_SIZES)
		return payload_held(n, s->unit_len[op] * o->keys, NULL);
	bytes = bytes_of(s->scenario, o, rank, op);
	p = bytes ? payload_held(n, bytes->len, bytes) : NULL;
	payload_unref(bytes);
	return p;
}

struct payload *contents_edge(struct sim_node *n, uint32_t op, uint32_t slot,
			      bool left)
{
	uint32_t len = op_at(n->sim, op)->bytes;
	struct payload *bytes, *p;

	if (!len)
		return NULL;
	if (n->sim->scenario->payload == PAYLOAD_SIZES)
		return payload_held(n, len, NULL);
	bytes = payload_new(len);
	if (!bytes)
		return NULL;
	contents_fill(bytes->data, len, rank_number(n->sim, n->first + slot),
		      op, !left);
	p = payload_held(n, len, bytes);
	payload_unref(bytes);
	return p;
}

/* ---- results ---- */

struct payload *contents_image(const struct sim *s, enum coll_kind kind,
			       const struct payload_vec *parts, int *error)
{
	if (kind == COLL_FENCE)
		return image_build_fence(parts, error);
	return image_build_gather(parts, s->nranks, layout_order(s->layout),
				  error);
}

uint64_t contents_image_len(const struct sim *s, const struct scenario_op *op,
			    uint64_t bytes, int *error)
{
	uint64_t unit = s->unit_len[op - s->scenario->ops], len;

	if (bytes != unit * s->nranks * op->keys) {
		*error = -EPROTO; /* something is missing, or there twice */
		return 0;
	}
	if (op->kind == OP_FENCE)
		len = image_fence_len(bytes / unit, bytes);
	else
		len = image_gather_len(s->nranks,
				       (uint64_t)op->bytes * s->nranks);
	*error = -EFBIG;
	return len;
}

uint64_t contents_result_len(const struct sim *s, uint32_t op)
{
	const struct scenario_op *o = op_at(s, op);
	int error;

	if (o->kind != OP_FENCE && o->kind != OP_ALLGATHER)
		return 0;
	return contents_image_len(s, o, s->unit_len[op] * o->keys * s->nranks,
				  &error);
}

int contents_check_memory(struct sim *s, uint64_t each, const char *key,
			  const char *instead)
{
	char need[UNITS_TEXT], most[UNITS_TEXT];

	if (each <= RESULTS_MAX / s->nnodes)
		return 0;
	sim_fail(s, "%s: %u nodes would hold %s each of results; allowed is %s in all, or %s",
		 key, s->nnodes, units_show_bytes(need, each),
		 units_show_bytes(most, RESULTS_MAX), instead);
	return -1;
}

/* ---- looking at it ---- */

static bool fence_has(const struct sim *s, const struct image *img,
		      uint32_t op, uint32_t rank)
{
	const struct scenario_op *o = op_at(s, op);
	char name[RECORD_KEY_MAX + 1];

	for (uint32_t key = 0; key < o->keys; key++) {
		int n = contents_key(name, s->scenario, o->keys, rank, key);
		const char *value;
		size_t len;

		if (!image_find(img, image_hash(name, n), name, n, &value,
				&len) ||
		    !contents_value_is(s, op, rank, key, value, len))
			return false;
	}
	return true;
}

static bool gather_has(const struct sim *s, const struct image *img,
		       uint32_t op, uint32_t rank)
{
	size_t len;
	const void *value = image_gather_value(img, rank, &len);

	return contents_value_is(s, op, rank, 0, value, len);
}

void contents_check_result(struct sim_node *n, uint32_t op,
			   const struct payload *result)
{
	struct sim *s = n->sim;
	bool fence = op_at(s, op)->kind == OP_FENCE;
	uint32_t step = contents_stride(s);
	struct image img;

	if (image_open(&img, result->data, result->len)) {
		sim_fail(s, "node %u got no image from operation %u", n->id,
			 op + 1);
		return;
	}
	for (uint32_t rank = n->position % step; rank < s->nranks; rank += step)
		if (!(fence ? fence_has : gather_has)(s, &img, op, rank)) {
			sim_fail(s, "node %u got a wrong value of rank %u from operation %u",
				 n->id, rank, op + 1);
			return;
		}
}

static bool edge_is(const struct sim *s, struct ring_value v, uint32_t op,
		    uint32_t index, uint32_t which)
{
	return contents_value_is(s, op, rank_number(s, index), which, v.data,
				 v.len);
}

void contents_check_ring(struct sim_node *n, uint32_t op, uint32_t slot,
			 uint64_t rank, uint64_t size, struct ring_value left,
			 struct ring_value right)
{
	struct sim *s = n->sim;
	uint32_t index = n->first + slot, last = s->nranks - 1;

	if (rank != index || size != s->nranks ||
	    !edge_is(s, left, op, index ? index - 1 : last, 1) ||
	    !edge_is(s, right, op, index < last ? index + 1 : 0, 0))
		sim_fail(s, "rank %u got wrong neighbours from operation %u",
			 rank_number(s, index), op + 1);
}
