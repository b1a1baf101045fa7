/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control between a node and one neighbour.
 *
 * A node sends a neighbour at most STORE_WINDOW bytes that the neighbour has not released, and
 * one message beyond them. Later messages wait here, in order. The neighbour releases the bytes
 * of a message when it has carried the message out or passed it on. So a slow node slows down
 * the nodes that send to it, and no link has to keep more than that for the store.
 *
 * A message that waits keeps a debt: the bytes of the message that it continues. Requests that
 * wait for the parent delay the release of the child's bytes, and answers that wait for a child
 * delay the release of the parent's. Requests never wait for answers, so nodes cannot block
 * each other.
 */
#pragma once

#include "libstore/store.h"

struct parcel;

struct window {
	const struct store_ops *ops;
	uint32_t position;   /* of the neighbour */
	uint64_t sent;       /* bytes that the neighbour has not released */
	uint64_t due;        /* released bytes of the neighbour's, which it does not know yet */
	struct parcel *queue;
	bool closed;
};

/* Bytes of a neighbour's message that are not released. */
struct debt {
	struct window *to;
	uint64_t bytes;
	uint32_t refs;
};

void window_init(struct window *w, const struct store_ops *ops, uint32_t position);
/* The neighbour has gone: drop messages that wait, and all that follow. Idempotent. */
void window_close(struct window *w);

/* Send or queue a message. `debt` (NULL: none) is referenced while the message waits. */
void window_send(struct window *w, const struct payload_vec *message, struct debt *debt);
/* The neighbour has released bytes. 0; -EPROTO: it has not had them. */
int window_credit(struct window *w, uint64_t bytes);

/* A message of the neighbour's has come. NULL: no memory; its bytes are released then. */
struct debt *debt_begin(struct window *w, uint64_t bytes);
/* The last reference releases the bytes. NULL is allowed. */
void debt_unref(struct debt *d);
