/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the store between neighbours in the tree, and between pmi2x-sync and the agent
 * of its node. There, each has its length before it (u32, little-endian), and the client sends
 * STORE_MSG_HELLO first.
 *
 * All fields are little-endian; a text or byte string has a u32 length before it:
 *
 *   ASK      u8 1, u64 number, u8 space, u8 op, u8 flags (1 local, 2 gather), u32 rank,
 *            u64 a number, u32 how many keys, the keys, expected, value
 *   ANSWER   u8 2, u64 number, u8 status, u64 a number, text, u32 how many values, and for
 *            each u8 1 and its bytes, or u8 0: the key does not exist
 *   CANCEL   u8 3, u64 number: the request is withdrawn
 *   GONE     u8 4, u32 rank, text: how it has ended; to the parent
 *   OPEN     u8 5: the store is used
 *   HELLO    u8 6, u32 STORE_CLIENT_VERSION, u32 rank; of a client
 *   CREDIT   u8 7, u64 bytes: of messages that the sender has dealt with (window.h)
 *   BEHIND   u8 9, and the rest of ASK: the client has asked others that have no answer
 *   COPY     u8 10, and the rest of ANSWER: the node may keep the value (copies.h)
 *   RECALL   u8 11, u64 number, u8 space, key: drop the copy of this key; to a child (recall.h)
 *   RECALLED u8 12, u64 number: that is done; to the parent
 *   ANSWERS  u8 8, u32 how many numbers, the numbers, and the rest of ANSWER: to all of these
 */
#ifndef PMI2X_STORE_MSG_H
#define PMI2X_STORE_MSG_H

#include "libstore/store.h"
#include "libutil/buf.h"

enum store_msg_type {
	STORE_MSG_ASK = 1,
	STORE_MSG_ANSWER,
	STORE_MSG_CANCEL,
	STORE_MSG_GONE,
	STORE_MSG_OPEN,
	STORE_MSG_HELLO,
	STORE_MSG_CREDIT,
	STORE_MSG_ANSWERS,
	STORE_MSG_BEHIND, /* unpacked: ASK, with rq.behind */
	STORE_MSG_COPY,   /* unpacked: ANSWER, with answer.copy */
	STORE_MSG_RECALL, /* rq has the key */
	STORE_MSG_RECALLED,
	STORE_MSG_TYPES,
};

#define STORE_CLIENT_VERSION 1 /* of HELLO, ASK and ANSWER to and from clients */
#define STORE_MSG_LENGTH 4     /* bytes of the length before a client's message */
#define STORE_MSG_NUMBERED 9   /* bytes before the rest of ASK, ANSWER and CANCEL */
#define STORE_MSG_MAX (STORE_ANSWER_MAX + ((size_t)1 << 20)) /* bytes */

struct store_msg {
	enum store_msg_type type;
	/* ASK, ANSWER, CANCEL: chosen by who asks; CREDIT: bytes; RECALL, RECALLED: of the recall */
	uint64_t number;
	enum store_space space;     /* ASK, RECALL */
	struct store_request rq;    /* ASK, RECALL; keys of an unpacked one are its own */
	struct store_answer answer; /* ANSWER, ANSWERS; values and text of an unpacked one are its own */
	const uint64_t *numbers;    /* ANSWERS; of an unpacked one its own */
	uint32_t nnumbers;
	uint32_t version;           /* HELLO */
	uint32_t rank;              /* GONE, HELLO */
	char text[STORE_TEXT_MAX];  /* GONE; unpacked: of ANSWER, too */
};

/* Append it. 0, -ENOBUFS or -ENOMEM. */
int store_msg_pack(struct buf *b, const struct store_msg *m);
/* Pack it for the stream of a client: its length, and then the message, into an empty buffer. */
int store_msg_pack_client(struct buf *b, const struct store_msg *m);
/* The length that came before a client's message. */
uint32_t store_msg_length(const void *bytes);
/*
 * Read a message that consists of all bytes of a payload; keys and values point into it. 0, and
 * store_msg_free is due; -EPROTO or -ENOMEM.
 */
int store_msg_unpack(struct store_msg *m, struct payload *bytes);
void store_msg_free(struct store_msg *m);
/* One message as a payload, counted in a budget (NULL: none). NULL: no memory. */
struct payload *store_msg_make(const struct store_msg *m, struct budget *budget);
/*
 * An ANSWER, or ANSWERS to several numbers, in pieces, appended to an empty list. Large values are
 * referenced, the rest is copied and counted in a budget. 0, -ENOBUFS or -ENOMEM.
 */
int store_msg_make_answer(struct payload_vec *out, const uint64_t *numbers, uint32_t n,
			  const struct store_answer *a, struct budget *budget);
/* An ANSWER for the stream of a client, with its length before it; the same. */
int store_msg_make_client_answer(struct payload_vec *out, uint64_t number,
				 const struct store_answer *a, struct budget *budget);

#endif
