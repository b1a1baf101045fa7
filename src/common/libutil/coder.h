/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One list of fields for both directions: a coder writes the fields it is given to a struct
 * buf, or reads them from bytes. Fields are as in pack.h. The first error stays; what is
 * read after it is 0 or NULL. Writing does not change the fields. To read one of several
 * messages, use a copy of their cursor, which coder_leave gives back.
 */
#pragma once

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
/* As above, but something may be left: the cursor goes on there. */
int coder_leave(const struct coder *c, struct cursor *in);
/* Writing has come to its end. After an error what follows `start` is taken back. */
int coder_wrote(const struct coder *c, size_t start);

void code_u8(struct coder *c, uint8_t *v);
void code_u16(struct coder *c, uint16_t *v);
void code_u32(struct coder *c, uint32_t *v);
void code_u64(struct coder *c, uint64_t *v);
void code_i32(struct coder *c, int32_t *v);
void code_i64(struct coder *c, int64_t *v);
/* A byte. */
void code_flag(struct coder *c, bool *v);
/* Four bytes. */
void code_bool(struct coder *c, bool *v);
void code_port(struct coder *c, uint16_t *v);
/* Reading fails unless it is true; not evaluated for writing. */
#define CODE_CHECK(c, is_sound)                                                       \
	do {                                                                          \
		if (!(c)->out && !(is_sound))                                         \
			(c)->in.failed = true;                                        \
	} while (0)
/* An enum, as a byte. Reading fails from `bound` on. */
#define CODE_ENUM(c, v, bound)                                                        \
	do {                                                                          \
		uint8_t number_ = (uint8_t)*(v);                                      \
		code_u8(c, &number_);                                                 \
		CODE_CHECK(c, number_ < (bound));                                     \
		if (!(c)->out)                                                        \
			*(v) = number_;                                               \
	} while (0)
/* `len` bytes without a length; 0 after an error. */
void code_raw(struct coder *c, void *at, size_t len);
/* Reading fails over `max`. Bytes that are read point into the input. */
void code_limited(struct coder *c, const void **at, size_t *len, size_t max);
/*
 * Text without its NUL in an array of `size` bytes. It may reach a terminal, which it must
 * not steer: of what is read, bytes that are not printable ASCII become '?'.
 */
void code_clean(struct coder *c, char *text, size_t size);
/* Bytes that are read point into the input; NULL when there are none. */
void code_bytes(struct coder *c, const void **at, size_t *len);
/* As above, with its NUL; NULL is no byte. */
void code_text(struct coder *c, const char **text);
/*
 * How many things follow. Reading fails over `max`, and where there are fewer than `bytes`
 * bytes for each; 0 then.
 */
void code_count(struct coder *c, uint32_t *count, uint32_t max, size_t bytes);
/* An array of as many numbers as both sides know. */
void code_u32s(struct coder *c, uint32_t *numbers, uint32_t count);
/* `count` is read before. An array that is made for it is the caller's. */
void code_numbers(struct coder *c, uint32_t **numbers, uint32_t count);
/* As above, where the array may not be there. */
void code_numbers_if(struct coder *c, uint32_t **numbers, uint32_t count);
/* As above; none is NULL. */
void code_names(struct coder *c, const char ***names, uint32_t count);
