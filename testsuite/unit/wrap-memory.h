/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocations that a test refuses: for programs that are linked with --wrap=malloc,
 * calloc and realloc. A program that includes this defines is_refused, which is asked
 * each time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool is_refused(void);

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
