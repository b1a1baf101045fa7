/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of subsets that are in flight: by name, and in order within one. */
#include "libcoll/subset_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names ---- */

static unsigned hash_of(const unsigned char key[COLL_KEY_SIZE])
{
	unsigned hash;

	memcpy(&hash, key, sizeof(hash));
	return hash;
}

struct subset *subset_find(const struct coll *c,
			   const unsigned char key[COLL_KEY_SIZE])
{
	struct subset *s;

	HASH_FIND_BYHASHVALUE(hh, c->subsets, key, COLL_KEY_SIZE, hash_of(key),
			      s);
	return s;
}

struct subset *subset_new(struct coll *c,
			  const unsigned char key[COLL_KEY_SIZE])
{
	struct subset *s = calloc(1, sizeof(*s) + c->place.children *
							  sizeof(s->children[0]));

	if (!s)
		return NULL;
	memcpy(s->key, key, COLL_KEY_SIZE);
	HASH_ADD_BYHASHVALUE(hh, c->subsets, key, COLL_KEY_SIZE, hash_of(key),
			     s);
	if (s->hh.tbl)
		return s;
	free(s);
	return NULL;
}

void subset_free(struct coll *c, struct subset *s)
{
	HASH_DELETE(hh, c->subsets, s);
	payload_unref(s->name);
	free(s->own);
	free(s);
}

/* ---- in flight ---- */

struct subset_op *subset_op_at(const struct subset *s, uint32_t i)
{
	struct subset_op *op = s->first;

	while (i--)
		op = op->next;
	return op;
}

static struct subset_op **end_of(struct subset *s, uint32_t from)
{
	struct subset_op **at = &s->first;

	while (from--)
		at = &(*at)->next;
	return at;
}

int subset_grow(struct coll *c, struct subset *s, uint32_t count)
{
	while (s->count < count) {
		struct subset_op *op =
			calloc(1, sizeof(*op) + c->place.children *
							sizeof(op->data[0]));

		if (!op)
			return -ENOMEM;
		*end_of(s, s->count++) = op;
	}
	return 0;
}

static void limit(uint32_t *value, uint32_t most)
{
	if (*value > most)
		*value = most;
}

static void set_ups(struct coll *c, struct subset *s, uint32_t i, uint32_t ups)
{
	c->peers[i].subset_ups -= s->children[i].ups - ups;
	s->children[i].ups = ups;
}

struct subset_op *subset_cut(struct coll *c, struct subset *s, uint32_t from)
{
	struct subset_op **at = end_of(s, from), *list = *at;

	*at = NULL;
	s->count = from;
	limit(&s->sent, from);
	limit(&s->asked, from);
	for (uint32_t i = 0; i < s->nown; i++)
		limit(&s->own[i].entered, from);
	for (uint32_t i = 0; i < c->place.children; i++) {
		limit(&s->children[i].asked, from);
		if (s->children[i].ups > from)
			set_ups(c, s, i, from);
	}
	return list;
}

static void less_one(uint32_t *value)
{
	if (*value)
		--*value;
}

struct subset_op *subset_take_first(struct coll *c, struct subset *s)
{
	struct subset_op *op = s->first;

	s->first = op->next;
	op->next = NULL;
	s->count--;
	less_one(&s->sent);
	less_one(&s->asked);
	for (uint32_t i = 0; i < s->nown; i++)
		less_one(&s->own[i].entered);
	for (uint32_t i = 0; i < c->place.children; i++) {
		less_one(&s->children[i].asked);
		if (s->children[i].ups)
			set_ups(c, s, i, s->children[i].ups - 1);
	}
	return op;
}

/* ---- the end ---- */

static void end_entry(struct coll *c, struct subset_entry *e,
		      struct payload *result, const char *why)
{
	c->slots[e->slot].subsets--;
	c->subset_entries--;
	c->subset_ended++;
	c->ops->complete_subset(c->arg, e->slot, e->id, result, why);
	payload_unref(e->data);
	free(e);
}

static void free_op(struct coll *c, struct subset_op *op)
{
	subset_op_clear(c, op);
	payload_unref(op->reason);
	free(op);
}

void subset_end(struct coll *c, struct subset_op *list, struct payload *result,
		const char *why)
{
	while (list) {
		struct subset_op *next = list->next;

		while (list->entries) {
			struct subset_entry *e = list->entries;

			list->entries = e->next;
			end_entry(c, e, result, why);
		}
		free_op(c, list);
		c->subset_ended++;
		list = next;
	}
}

void coll_subsets_free(struct coll *c)
{
	struct subset *s, *tmp;

	HASH_ITER(hh, c->subsets, s, tmp) {
		while (s->first) {
			struct subset_op *op = subset_take_first(c, s);

			while (op->entries) {
				struct subset_entry *e = op->entries;

				op->entries = e->next;
				payload_unref(e->data);
				free(e);
			}
			free_op(c, op);
		}
		subset_free(c, s);
	}
	payload_unref(c->subset_why);
}

/* ---- contributions ---- */

void subset_op_clear(struct coll *c, struct subset_op *op)
{
	for (struct subset_entry *e = op->entries; e; e = e->next) {
		payload_unref(e->data);
		e->data = NULL;
	}
	for (uint32_t i = 0; i < c->place.children; i++) {
		payload_unref(op->data[i]);
		op->data[i] = NULL;
	}
}

void subset_op_spoil(struct coll *c, struct subset_op *op, const char *why)
{
	subset_op_clear(c, op);
	if (op->failed)
		return;
	op->failed = true;
	op->reason = why ? coll_reason_new(why) : NULL;
}

void subset_op_add(struct coll *c, struct subset_op *op,
		   struct payload **place, struct payload *data)
{
	char why[COLL_REASON_MAX];

	if (!data || !data->len || op->failed)
		return;
	op->bytes += data->len;
	*place = payload_ref(data);
	if (op->bytes <= COLL_SUBSET_BYTES_MAX)
		return;
	snprintf(why, sizeof(why),
		 "the contributions of a group are over %llu MiB",
		 (unsigned long long)(COLL_SUBSET_BYTES_MAX >> 20));
	subset_op_spoil(c, op, why);
}

int subset_op_parts(const struct coll *c, const struct subset_op *op,
		    struct payload_vec *out)
{
	int rc = 0;

	payload_vec_init(out);
	for (const struct subset_entry *e = op->entries; !rc && e; e = e->next)
		rc = e->data ? payload_vec_add(out, e->data) : 0;
	for (uint32_t i = 0; !rc && i < c->place.children; i++)
		rc = op->data[i] ? payload_vec_add(out, op->data[i]) : 0;
	if (rc)
		payload_vec_clear(out);
	return rc;
}
