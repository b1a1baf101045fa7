/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference-counted byte strings and lists of them. */
#include "libutil/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct payload *payload_virtual(size_t len)
{
	struct payload *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->refs = 1;
	p->len = len;
	return p;
}

struct payload *payload_new(size_t len)
{
	struct payload *p;

	if (len > SIZE_MAX - sizeof(*p))
		return NULL;
	p = malloc(sizeof(*p) + len);
	if (!p)
		return NULL;
	p->refs = 1;
	p->len = len;
	p->data = (unsigned char *)(p + 1);
	p->parent = NULL;
	p->release = NULL;
	return p;
}

struct payload *payload_copy(const void *data, size_t len)
{
	struct payload *p = payload_new(len);

	if (p && len)
		memcpy(p->data, data, len);
	return p;
}

struct payload *payload_resize(struct payload *p, size_t len)
{
	if (len > SIZE_MAX - sizeof(*p))
		return NULL;
	p = realloc(p, sizeof(*p) + len);
	if (!p)
		return NULL;
	p->len = len;
	p->data = (unsigned char *)(p + 1);
	return p;
}

struct payload *payload_slice(struct payload *p, size_t offset, size_t len)
{
	struct payload *slice;

	if (offset == 0 && len == p->len)
		return payload_ref(p);
	slice = payload_virtual(len);
	if (!slice)
		return NULL;
	slice->data = p->data ? p->data + offset : NULL;
	slice->parent = payload_ref(p);
	return slice;
}

struct payload *payload_ref(struct payload *p)
{
	if (p)
		p->refs++;
	return p;
}

void payload_unref(struct payload *p)
{
	while (p && --p->refs == 0) {
		struct payload *parent = p->parent;

		if (p->release)
			p->release(p);
		else
			free(p);
		p = parent;
	}
}

void payload_vec_init(struct payload_vec *v)
{
	memset(v, 0, sizeof(*v));
}

int payload_vec_add(struct payload_vec *v, struct payload *p)
{
	if (!p || p->len == 0)
		return 0;
	if (v->count == v->cap) {
		size_t cap = v->cap ? 2 * v->cap : 8;
		struct payload **items =
			realloc(v->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		v->items = items;
		v->cap = cap;
	}
	v->items[v->count++] = payload_ref(p);
	v->bytes += p->len;
	return 0;
}

int payload_vec_add_all(struct payload_vec *v, const struct payload_vec *from)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < from->count; i++)
		rc = payload_vec_add(v, from->items[i]);
	return rc;
}

void payload_vec_clear(struct payload_vec *v)
{
	for (size_t i = 0; i < v->count; i++)
		payload_unref(v->items[i]);
	free(v->items);
	payload_vec_init(v);
}

static void copy_items(unsigned char *to, const struct payload_vec *v)
{
	for (size_t i = 0; i < v->count; i++) {
		memcpy(to, v->items[i]->data, v->items[i]->len);
		to += v->items[i]->len;
	}
}

struct payload *payload_vec_join(const struct payload_vec *v)
{
	struct payload *p;

	if (v->count == 1)
		return payload_ref(v->items[0]);
	if (v->count && !v->items[0]->data)
		return payload_virtual(v->bytes);
	p = payload_new(v->bytes);
	if (p)
		copy_items(p->data, v);
	return p;
}
