/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One list of fields for both directions: a coder writes what it is shown to a struct
 * buf, or reads it back from bytes. Fields are as in pack.h. The first error stays, and
 * what is read after it is 0 or NULL.
 */
#ifndef PMI2X_CODER_H
#define PMI2X_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/pack.h"

#define CODER_BYTES_MAX ((size_t)16 << 20) /* of a text or of bytes */

/* Writes to `out`, or, without it, reads from `in`. */
struct coder {
	struct buf *out;
	struct cursor in;
	int rc; /* writing: of buf_append; reading: -ENOMEM; see coder_end, too */
};

/* Reading has come to its end: 0, -EPROTO (also: something is left) or -ENOMEM. */
int coder_end(const struct coder *c);

void code_u16(struct coder *c, uint16_t *v);
void code_u32(struct coder *c, uint32_t *v);
void code_u64(struct coder *c, uint64_t *v);
void code_i64(struct coder *c, int64_t *v);
void code_bool(struct coder *c, bool *v);
/* Bytes that are read point into the input; NULL when there are none. */
void code_bytes(struct coder *c, const void **at, size_t *len);
/* As above, with its NUL; NULL is no byte. */
void code_text(struct coder *c, const char **text);
/* `count` is read before. An array that is made for it is the caller's. */
void code_numbers(struct coder *c, uint32_t **numbers, uint32_t count);
/* As above, where the array may not be there. */
void code_numbers_if(struct coder *c, uint32_t **numbers, uint32_t count);
/* As above; none is NULL. */
void code_names(struct coder *c, const char ***names, uint32_t count);

#endif
