/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference-counted byte strings and lists of them. */
#include "libutil/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

struct payload *payload_virtual(size_t len)
{
	struct payload *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->refs = 1;
	p->len = len;
	return p;
}

struct payload *payload_new_in(struct budget *budget, size_t len)
{
	struct payload *p;

	if (len > SIZE_MAX - sizeof(*p) || !budget_take(budget, len))
		return NULL;
	p = malloc(sizeof(*p) + len);
	if (!p) {
		budget_give(budget, len);
		return NULL;
	}
	*p = (struct payload){ .refs = 1, .len = len, .budget = budget,
			       .data = (unsigned char *)(p + 1) };
	return p;
}

struct payload *payload_new(size_t len)
{
	return payload_new_in(NULL, len);
}

struct payload *payload_copy_in(struct budget *budget, const void *data,
				size_t len)
{
	struct payload *p = payload_new_in(budget, len);

	if (p && len)
		memcpy(p->data, data, len);
	return p;
}

struct payload *payload_copy(const void *data, size_t len)
{
	return payload_copy_in(NULL, data, len);
}

static void release_taken(struct payload *p)
{
	free(p->data);
	free(p);
}

struct payload *payload_take(struct buf *b)
{
	struct payload *p = payload_virtual(b->len);

	if (!p)
		return NULL;
	p->data = realloc(b->data, b->len); /* smaller: where it cannot, as it is */
	if (!p->data)
		p->data = (unsigned char *)b->data;
	budget_give(b->budget, b->cap - b->len);
	p->release = release_taken;
	p->budget = b->budget;
	b->data = NULL;
	b->cap = 0;
	buf_clear(b);
	return p;
}

struct payload *payload_resize(struct payload *p, size_t len)
{
	size_t more = len > p->len ? len - p->len : 0;
	struct payload *resized;

	if (len > SIZE_MAX - sizeof(*p) || !budget_take(p->budget, more))
		return NULL;
	resized = realloc(p, sizeof(*p) + len);
	if (!resized) {
		budget_give(p->budget, more);
		return NULL;
	}
	budget_give(resized->budget, resized->len + more - len);
	resized->len = len;
	resized->data = (unsigned char *)(resized + 1);
	return resized;
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

		budget_give(p->budget, p->len);
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
	if (array_grow(&v->items, v->count, &v->cap, sizeof(*v->items)))
		return -ENOMEM;
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

void payload_vec_drop(struct payload_vec *v, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		v->bytes -= v->items[i]->len;
		payload_unref(v->items[i]);
	}
	v->count -= count;
	if (v->count)
		memmove(v->items, v->items + count,
			v->count * sizeof(*v->items));
}

void payload_vec_clear(struct payload_vec *v)
{
	payload_vec_drop(v, v->count);
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

static struct budget *budget_of(const struct payload *p)
{
	while (p->parent)
		p = p->parent;
	return p->budget;
}

struct payload *payload_vec_join(const struct payload_vec *v)
{
	struct payload *p;

	if (v->count == 1)
		return payload_ref(v->items[0]);
	if (v->count && !v->items[0]->data)
		return payload_virtual(v->bytes);
	p = payload_new_in(v->count ? budget_of(v->items[0]) : NULL, v->bytes);
	if (p)
		copy_items(p->data, v);
	return p;
}
