/* SPDX-License-Identifier: BSD-3-Clause */
/* One side of the ring over verbs: a reliable connection and its credits. */
#pragma once

#include "delivery.h"
#include "verbs_address.h"
#include "verbs_device.h"

struct verbs_arrival {
	unsigned buffer;
	uint32_t len;
};

/*
 * open -> can receive -> up -> ended, which is in `to_owner`; it is possible
 * from anywhere. "Can receive" begins with connect; "up" when the neighbour is
 * known to be there too.
 */
struct verbs_link {
	struct verbs_device *device;
	enum ring_side side;
	struct ibv_qp *qp;
	uint32_t first_psn;
	bool can_receive, up;
	struct delivery to_owner;
	unsigned credits;        /* messages that may be sent */
	unsigned owed;           /* credits to return */
	unsigned controls;       /* control messages under way */
	unsigned sending;        /* work requests under way, all kinds */
	unsigned free_buffers;   /* to send from, one bit each */
	struct verbs_arrival arrived[VERBS_RECEIVES]; /* a queue */
	unsigned first_arrived, arrived_count;
	int64_t heard_ms;        /* when the neighbour last gave a sign */
};

/* Fills a zero-filled link. 0, or negative errno and `why`; to be closed. */
int verbs_link_open(struct verbs_link *l, struct verbs_device *d,
		    enum ring_side side, char *why);
void verbs_link_close(struct verbs_link *l);

/* Be ready for what the neighbour sends. 0, or negative errno and `why`. */
int verbs_link_connect(struct verbs_link *l, const struct verbs_address *peer,
		       char *why);
/* The neighbour is ready: tell it the same. */
void verbs_link_peer_ready(struct verbs_link *l);

/* As transport_ops.send. */
int verbs_link_send(struct verbs_link *l, const struct iovec *iov, int n,
		    bool last);
/* Tell the neighbour that this is the end. */
void verbs_link_goodbye(struct verbs_link *l);

/* A completion of this side. */
void verbs_link_completion(struct verbs_link *l, const struct ibv_wc *wc);
/* Deliver, return credits, probe; the number of things done. */
int verbs_link_progress(struct verbs_link *l, int64_t now_ms,
			const struct transport_events *events);
/* When progress has something to do that no completion neighbours. */
int64_t verbs_link_due_ms(const struct verbs_link *l);
