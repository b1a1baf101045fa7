/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between neighbours: a header of fixed-width little-endian fields, then a
 * piece of a block, or the text of a failure.
 *
 *   0  u16  FRAME_MAGIC     2  u8  kind      3  u8   0
 *   4  u32  operation       8  u32 step     12  u32  0
 *  16  u64  total          24  u64 offset   32  bytes
 */
#pragma once

#include "flow.h"

#define FRAME_MAGIC 0x4147 /* differs between versions of the protocol */
#define FRAME_HEADER_LEN 32
#define FRAME_CHUNK_MAX (TRANSPORT_MESSAGE_MAX - FRAME_HEADER_LEN)

enum frame_kind {
	FRAME_CHUNK = 1, /* a piece of a block of an operation */
	FRAME_ABORT = 2, /* the ring has failed; the bytes say why, as text */
};

struct frame {
	enum frame_kind kind;
	uint32_t operation;      /* counts from 0, modulo 2^32 */
	struct flow_chunk chunk; /* of FRAME_CHUNK, without the block */
	const void *bytes;       /* points into the message */
	size_t len;
};

/* The header of a frame; its bytes follow on the wire. */
void frame_pack(const struct frame *f, unsigned char out[FRAME_HEADER_LEN]);

/* Read a message. 0, or -EPROTO when it is no frame. */
int frame_parse(struct frame *f, const void *message, size_t len);
