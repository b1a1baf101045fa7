/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames on a link: u32 length of the body, u8 type, three zero bytes, body.
 * Little-endian. The reader gets bytes from a stream and gives whole frames;
 * a large body is read straight into its payload, which grows as bytes come.
 */
#ifndef PMI2X_FRAMES_H
#define PMI2X_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "libutil/payload.h"

#define FRAME_HEADER_BYTES 8
#define FRAME_BODY_MAX (1u << 30)     /* bytes */
#define FRAME_STAGE_BYTES 16384       /* read at once while no body is large */
#define FRAME_FIRST_GROWTH (1u << 18) /* first allocation of a large body */

enum frame_type {
	FRAME_COLLECTIVE,   /* libpmi to libpmi of a neighbour */
	FRAME_CONTROL_UP,   /* control.h, towards srun */
	FRAME_CONTROL_DOWN, /* control.h, from srun */
	FRAME_CHOSEN,       /* of several connections this is the link */
	FRAME_TAKEN,        /* ... and the other side knows */
	FRAME_GOODBYE,      /* nothing follows: the sender leaves in order */
	FRAME_TYPES,
};

/* A frame has come; `body` is the reader's. Non-zero stops the reader. */
typedef int (*frame_fn)(void *arg, enum frame_type type, struct payload *body);

struct frame_reader {
	struct payload *body; /* a large body under way, else NULL */
	uint32_t body_len;    /* bytes it will have */
	uint32_t filled;      /* bytes it has */
	enum frame_type type;
	uint32_t staged;
	unsigned char stage[FRAME_STAGE_BYTES];
};

void frame_reader_init(struct frame_reader *r);
void frame_reader_free(struct frame_reader *r);

/* Where the next bytes go: > 0 bytes at *at. */
size_t frame_reader_room(struct frame_reader *r, void **at);
/*
 * `n` bytes have been put there: calls fn for each whole frame. 0, -EPROTO (no
 * frame), -EMSGSIZE, -ENOMEM, or what fn returned; then the reader is useless.
 * After fn has stopped it the reader is not touched: fn may free it.
 */
int frame_reader_input(struct frame_reader *r, size_t n, frame_fn fn,
		       void *arg);

/* Make the header of a frame: a new payload, or NULL. */
struct payload *frame_header(enum frame_type type, size_t body_len);

#endif
