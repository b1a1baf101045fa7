/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames on a link: u32 length of head and body, u8 type, a zero byte, u16
 * length of the head, head, body. Little-endian. Only FRAME_COLLECTIVE has a
 * head. The reader gets bytes from a stream and gives whole frames.
 *
 * A body that has not come with its header is large: it is read straight to
 * where it is to stay, which frame_ops.room says, or else into a payload of its
 * own, which grows as bytes come.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libutil/payload.h"

#define FRAME_HEADER_BYTES 8
#define FRAME_HEAD_MAX 1024           /* bytes */
#define FRAME_BODY_MAX (1u << 30)     /* bytes */
#define FRAME_STAGE_BYTES 16384       /* read at once while no body is large */
#define FRAME_PEEK_BYTES 64           /* read after a large body: the next one
                                         is not to come through the stage */
#define FRAME_FIRST_GROWTH (1u << 18) /* first allocation of a large body */

enum frame_type {
	FRAME_COLLECTIVE,   /* libengine to libengine of a neighbour */
	FRAME_CONTROL_UP,   /* control.h, towards srun */
	FRAME_CONTROL_DOWN, /* control.h, from srun */
	FRAME_CHOSEN,       /* of several connections this is the link */
	FRAME_TAKEN,        /* ... and the other side knows */
	FRAME_GOODBYE,      /* nothing follows: the sender leaves in order */
	FRAME_APART,        /* the sender is no neighbour of the receiver */
	FRAME_STORE,        /* libstore/store_msg.h, to and from the parent */
	FRAME_TYPES,
};

struct frame_ops {
	/*
	 * A frame without a head has come; `body` is the reader's. Non-zero
	 * stops the reader.
	 */
	int (*frame)(void *arg, enum frame_type type, struct payload *body);
	/* As above, with a head. NULL: such a frame is -EPROTO. */
	int (*message)(void *arg, const void *head, size_t head_len,
		       struct payload *body);
	/*
	 * `len` bytes of body follow this head: returns a reference to a
	 * payload of that length to read them into, or NULL: anywhere. Then
	 * comes `message` with it, or nothing, when the reader ends before.
	 * May be NULL.
	 */
	struct payload *(*room)(void *arg, const void *head, size_t head_len,
				size_t len);
};

struct frame_reader {
	struct payload *body; /* a large body under way, else NULL */
	uint32_t body_len;    /* bytes it will have */
	uint32_t filled;      /* bytes it has */
	enum frame_type type;
	uint16_t head_len;
	bool peek;
	struct budget *budget; /* of bodies but FRAME_STORE; set after frame_reader_init */
	uint32_t staged;      /* a large body's head stays in the stage, too */
	unsigned char stage[FRAME_STAGE_BYTES];
};

void frame_reader_init(struct frame_reader *r);
void frame_reader_free(struct frame_reader *r);

/* The place of the next bytes: > 0 bytes at *at. */
size_t frame_reader_room(struct frame_reader *r, void **at);
/*
 * `n` bytes have been put there: gives out each whole frame. 0, -EPROTO (no
 * frame), -EMSGSIZE, -ENOMEM, or what an operation returned; then the reader is
 * useless. After an operation has stopped it the reader is not touched: it may
 * be freed.
 */
int frame_reader_input(struct frame_reader *r, size_t n,
		       const struct frame_ops *ops, void *arg);

/*
 * Make what precedes the body of a frame: a new payload, or NULL. head_len is 0,
 * or at most FRAME_HEAD_MAX for FRAME_COLLECTIVE.
 */
struct payload *frame_header(enum frame_type type, const void *head,
			     size_t head_len, size_t body_len);
/* A frame without a head, to be sent at once: who reads it wakes up once. NULL: no memory. */
struct payload *frame_whole(enum frame_type type, const void *body, size_t len);
