/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A growable byte buffer with an upper limit.
 *
 * The limit is the back-pressure of every queue that is built on it: an
 * append that would pass the limit fails with -ENOBUFS and changes nothing.
 * One thread at a time; no function blocks.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "libutil/budget.h"

struct buf {
	char *data;   /* NULL while cap is 0; not NUL-terminated */
	size_t len;   /* bytes in use */
	size_t cap;   /* bytes allocated */
	size_t limit; /* bytes that may ever be in use */
	struct budget *budget; /* counts allocations; set after buf_init; or NULL */
};

/* An empty buffer that may grow to `limit` bytes. Allocates nothing. */
void buf_init(struct buf *b, size_t limit);

/*
 * A buffer in `size` bytes of the caller's, which it never leaves: appending needs no
 * memory. Not for buf_free.
 */
void buf_init_in(struct buf *b, char *room, size_t size);

/* Free the bytes; the buffer is empty and usable again. */
void buf_free(struct buf *b);

/* Make room for `n` more bytes. 0, -ENOBUFS (limit) or -ENOMEM (also: budget). */
int buf_reserve(struct buf *b, size_t n);

/* How many more bytes fit without an allocation. */
size_t buf_room(const struct buf *b);

/* Append `n` bytes. 0, -ENOBUFS or -ENOMEM; on failure nothing is appended. */
int buf_append(struct buf *b, const void *data, size_t n);

/* Append a NUL-terminated string without its NUL. Errors as buf_append. */
int buf_puts(struct buf *b, const char *s);

/* Append formatted text without a NUL. Errors as buf_append. */
int buf_printf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Remove the first `n` bytes (n <= len). Moves the rest to the front. */
void buf_consume(struct buf *b, size_t n);

/* Keep the memory, forget the content. */
void buf_clear(struct buf *b);

/*
 * NUL-terminate the content and return it; the NUL is not counted in len.
 * NULL when there is no memory for the NUL.
 */
const char *buf_cstr(struct buf *b);
