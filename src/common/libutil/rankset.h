/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of ranks as people read them: "17, 1024-1025". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Write `count` ascending ranks to `out` as comma-separated numbers and ranges.
 * Text that does not fit in `size` bytes is replaced by ", ..."; the result is always
 * NUL-terminated when size > 0. Returns `out`.
 */
const char *rankset_format(const uint32_t *ranks, size_t count, char *out,
			   size_t size);
