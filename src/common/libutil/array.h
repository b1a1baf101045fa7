/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow by one item at a time. */
#pragma once

#include <stddef.h>

/*
 * Room for one more behind `count` items of `size` bytes. `array` is the address of
 * the pointer to them, which is NULL while *cap, the room there is, is 0; who owns it
 * frees it. 0, or -ENOMEM and nothing has changed.
 */
int array_grow(void *array, size_t count, size_t *cap, size_t size);
