/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that every fuzz target includes. A target is a file with
 * LLVMFuzzerTestOneInput; libFuzzer drives it, or replay.c with any compiler. The first
 * bytes of an input choose what is done, the rest is fed to it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise of the code under test; a broken one ends the program. */
#define FUZZ_CHECK(promise)                                             \
	do {                                                            \
		if (!(promise)) {                                       \
			fprintf(stderr, "%s:%d: broken: %s\n",          \
				__FILE__, __LINE__, #promise);          \
			abort();                                        \
		}                                                       \
	} while (0)

/* The rest of an input. Behind its end there are zeros. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static inline uint32_t fuzz_u16(struct fuzz_input *in)
{
	uint32_t low = fuzz_u8(in);

	return low | (uint32_t)fuzz_u8(in) << 8;
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t low = fuzz_u16(in);

	return low | fuzz_u16(in) << 16;
}

/* Up to `max` bytes of what is left: how many, and where. */
static inline size_t fuzz_bytes(struct fuzz_input *in, size_t max,
				const uint8_t **at)
{
	size_t n = in->left < max ? in->left : max;

	*at = in->at;
	in->at += n;
	in->left -= n;
	return n;
}

/*
 * A copy of its own, so that a read outside is seen; with `room` zeros behind.
 * The caller frees it.
 */
static inline void *fuzz_copy(const void *data, size_t len, size_t room)
{
	char *copy = calloc(1, len + room ? len + room : 1);

	FUZZ_CHECK(copy);
	if (len)
		memcpy(copy, data, len);
	return copy;
}
