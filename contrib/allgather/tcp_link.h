/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of the ring over TCP: messages on a connected stream, each behind its
 * length. Never blocks.
 */
#ifndef PMI2X_ALLGATHER_TCP_LINK_H
#define PMI2X_ALLGATHER_TCP_LINK_H

#include "libutil/buf.h"
#include "transport.h"

struct tcp_link {
	int fd;           /* -1: not connected, or over */
	struct buf out;   /* what the kernel has not taken yet */
	char *in;         /* bytes received, from `start` to `end` */
	size_t start, end;
	bool kept;        /* the owner could not take the first message */
	bool ended;       /* nothing more will come; `reason` says why */
	bool told;        /* the owner knows */
	char reason[TRANSPORT_REASON_MAX];
};

/* An empty link without a descriptor. 0 or -ENOMEM. */
int tcp_link_init(struct tcp_link *l);
/* Takes over a connected, non-blocking descriptor. */
void tcp_link_start(struct tcp_link *l, int fd);
/* Closes and frees. */
void tcp_link_free(struct tcp_link *l);

/* As transport_ops.send. */
int tcp_link_send(struct tcp_link *l, const struct iovec *iov, int n);

/* Nothing more will come from here; the first reason counts. */
void tcp_link_end(struct tcp_link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Send, receive and deliver what is possible; the number of things done. */
int tcp_link_progress(struct tcp_link *l, enum ring_side side,
		      const struct transport_events *events);

/* What to poll the descriptor for. */
short tcp_link_events(const struct tcp_link *l);

#endif
