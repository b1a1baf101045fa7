/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test whose memory comes to an end: for programs that are linked with
 * --wrap=malloc, calloc and realloc.
 */
#ifndef PMI2X_SCARCE_MEMORY_H
#define PMI2X_SCARCE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static int allowed = -1; /* allocations until one fails; -1: none does */

static bool is_refused(void)
{
	return allowed >= 0 && allowed-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return is_refused() ? NULL : __real_realloc(p, size);
}

#endif
