/* SPDX-License-Identifier: BSD-3-Clause */
/* Growable byte buffers with a limit. */
#include "libutil/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_ALLOCATION 256

void buf_init(struct buf *b, size_t limit)
{
	memset(b, 0, sizeof(*b));
	b->limit = limit;
}

void buf_init_in(struct buf *b, char *room, size_t size)
{
	*b = (struct buf){ .data = room, .cap = size, .limit = size };
}

void buf_free(struct buf *b)
{
	budget_give(b->budget, b->cap);
	free(b->data);
	*b = (struct buf){ .limit = b->limit, .budget = b->budget };
}

static int grow_to(struct buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST_ALLOCATION;
	char *data;

	while (cap < need)
		cap *= 2;
	if (!budget_take(b->budget, cap - b->cap))
		return -ENOMEM;
	data = realloc(b->data, cap);
	if (!data) {
		budget_give(b->budget, cap - b->cap);
		return -ENOMEM;
	}
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_reserve(struct buf *b, size_t n)
{
	if (n > b->limit || b->len > b->limit - n)
		return -ENOBUFS;
	if (b->len + n <= b->cap)
		return 0;
	return grow_to(b, b->len + n);
}

size_t buf_room(const struct buf *b)
{
	return (b->cap < b->limit ? b->cap : b->limit) - b->len;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	int rc;

	if (n == 0)
		return 0;
	rc = buf_reserve(b, n);
	if (rc)
		return rc;
	memcpy(b->data + b->len, data, n);
	b->len += n;
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	rc = buf_reserve(b, n);
	if (!rc && b->len + n + 1 > b->cap)
		rc = grow_to(b, b->len + n + 1); /* vsnprintf's NUL */
	if (rc)
		return rc;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, n + 1, fmt, ap);
	va_end(ap);
	b->len += n;
	return 0;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n < b->len)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n < b->len ? n : b->len;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
}

const char *buf_cstr(struct buf *b)
{
	if (b->len + 1 > b->cap && grow_to(b, b->len + 1))
		return NULL;
	b->data[b->len] = '\0';
	return b->data;
}
