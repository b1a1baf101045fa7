/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of the ring over TCP: messages on a connected stream, each behind its
 * length. Never blocks.
 */
#pragma once

#include "delivery.h"
#include "libutil/buf.h"

struct tcp_link {
	int fd;           /* -1: not connected, or over */
	struct buf out;   /* not yet taken by the kernel */
	char *in;         /* bytes received, from `start` to `end` */
	size_t start, end;
	bool last;        /* has been sent */
	struct delivery to_owner;
};

/* An empty link without a descriptor. 0 or -ENOMEM. */
int tcp_link_init(struct tcp_link *l);
/* Takes over a connected, non-blocking descriptor. */
void tcp_link_start(struct tcp_link *l, int fd);
/* Closes and frees. */
void tcp_link_free(struct tcp_link *l);

/* As transport_ops.send. */
int tcp_link_send(struct tcp_link *l, const struct iovec *iov, int n,
		  bool last);

/* As transport_ops.flushed, of this side. */
bool tcp_link_flushed(const struct tcp_link *l);

/* Send, receive and deliver what is possible; the number of things done. */
int tcp_link_progress(struct tcp_link *l, enum ring_side side,
		      const struct transport_events *events);

/* Events to poll the descriptor for. */
short tcp_link_events(const struct tcp_link *l);
