/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions number the messages between the head and one node, whatever the way between them.
 * Each end has a session, and keeps a message until the other end has received it. When the
 * way changes, each end learns what the other one has received, and sends the rest again. A
 * message that comes twice is dropped. So each message has its effect once, and in order.
 * Calls no system function.
 */
#pragma once

#include <stdbool.h>

#include "dvm/core/bundle.h"

struct session_message;

struct session {
	uint64_t sent;      /* number of the last message of this end */
	uint64_t received;  /* of the last one of the other end */
	uint32_t unacked;   /* messages received since this end last sent an ack, */
	size_t unacked_bytes;
	size_t kept_bytes;
	struct session_message *kept; /* not received by the other end, in order */
};

/* Zeros are a new session. */
void session_free(struct session *s);
/* Number and keep a message. Its number, or 0: no memory. */
uint64_t session_keep(struct session *s, const void *data, size_t len);
/* False: a message that has come before, or one that is early and comes again. */
bool session_take(struct session *s, const struct bundle_item *i);
/* The other end has received all messages up to this number. */
void session_acked(struct session *s, uint64_t number);
/* The number to send as an ack. */
uint64_t session_ack(struct session *s);
/* True: the other end keeps much that this end has received. */
bool session_owes_ack(const struct session *s);
/* Call fn for all kept messages. */
void session_each(const struct session *s,
		  void (*fn)(void *arg, uint64_t number, const struct dvm_bytes *data), void *arg);
