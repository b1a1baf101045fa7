/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocks of a node's ranks in one piece, as they travel:
 *
 *   u32 count, u32 0, count x { u32 rank, u32 length }, the bytes in that order
 *
 * and the way from bundles into a buffer in rank order. Fields are in the byte
 * order of the host; the join refuses a ring of both kinds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bundle_entry {
	uint32_t rank;
	uint32_t len;
};

/* Bytes of a bundle. */
size_t bundle_size(const struct bundle_entry *entries, uint32_t count);

/*
 * Write all but the blocks into `out`, which has bundle_size bytes. Returns
 * where the first block goes; the others follow it.
 */
char *bundle_begin(void *out, const struct bundle_entry *entries,
		   uint32_t count);

/* The place of the blocks of all ranks. */
struct bundle_sink {
	char *buffer;     /* rank r at buffer + r * stride */
	size_t stride;    /* longer blocks are cut */
	size_t *lengths;  /* uncut, by rank; NULL: all have `stride` bytes */
	uint32_t size;    /* of the job */
	unsigned char *seen; /* a bit a rank, zeroed by the caller */
	uint32_t count;   /* ranks seen */
	uint32_t culprit; /* rank that the error is about */
};

/*
 * Copy the blocks of a bundle to where they belong. 0; -EPROTO: the bundle is
 * inconsistent, or a rank comes twice; -EMSGSIZE: with lengths NULL, the block
 * of `culprit` has another length than stride.
 */
int bundle_scatter(const void *bundle, size_t len, struct bundle_sink *sink);
