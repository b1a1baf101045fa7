/* SPDX-License-Identifier: BSD-3-Clause */
/* A value that was read: malloc'ed, NUL-terminated behind its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct value {
	char *data;
	size_t len;
};

/* Copy `len` bytes and a NUL; what was there is freed. 0 or -ENOMEM. */
int value_set(struct value *v, const void *data, size_t len);
void value_free(struct value *v);

/*
 * Copy text into `size` (> 0) bytes, NUL included, cut where needed. True when
 * nothing was cut.
 */
bool copy_text(char *to, size_t size, const char *from, size_t len);
