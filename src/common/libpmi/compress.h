/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results in a shorter form for slow links: one LZ4 block, without a header, for
 * its length and that of the result travel beside it. Pure functions.
 */
#ifndef PMI2X_COMPRESS_H
#define PMI2X_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "libshm/image.h"
#include "libutil/payload.h"

#define COMPRESS_MIN 65536 /* bytes: what is less goes as it is */
/* It must save at least one part in so many. */
#define COMPRESS_SAVE 8
/* LZ4 cannot make more of a byte: larger claims are lies. */
#define COMPRESS_RATIO_MAX 255

/* Whether this build has LZ4. */
bool compress_available(void);

/*
 * A shorter form of `raw`, one reference; or NULL: it is too little, does not
 * shrink enough, there is no memory for it, or no LZ4.
 */
struct payload *compress_pack(const struct payload *raw);

/*
 * The `len` bytes that `packed` stands for, in memory of the caller's choice.
 * One reference, or NULL with *error: -EPROTO (they are not exactly so many, or
 * it is damaged), -ENOMEM or -ENOTSUP (no LZ4). Nothing is allocated for a
 * length that is not theirs.
 */
struct payload *compress_unpack(const struct payload *packed, uint64_t len,
				const struct image_memory *memory, int *error);

#endif
