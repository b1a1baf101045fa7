/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ready datagrams: how the two ends of a reliable connection learn that the other end is
 * ready. A message to a queue pair that is not connected yet is lost, and is sent again
 * only after the acknowledgement timeout, a second. So an element sends nothing over the
 * connection before its neighbour's ready datagram has come. It repeats its own datagram
 * until the neighbour answers over the connection.
 */
#pragma once

#include "verbs_address.h"
#include "verbs_device.h"

struct verbs_neighbour {
	struct ibv_ah *ah;      /* the way to the neighbour; NULL: no neighbour */
	uint32_t qpn, qkey;
	unsigned char nonce[TRANSPORT_NONCE_LEN];
	bool sending;
	int64_t due_ms;
	int interval_ms;
};

struct verbs_listener {
	struct verbs_device *device;
	struct ibv_qp *qp;
	uint32_t qkey;
	unsigned char nonce[TRANSPORT_NONCE_LEN]; /* of this element */
	struct verbs_neighbour neighbours[SIDES];
};

/* Fills a zero-filled structure. 0, or negative errno and `why`; to be closed. */
int verbs_listener_open(struct verbs_listener *l, struct verbs_device *d,
			const unsigned char nonce[TRANSPORT_NONCE_LEN], char *why);
void verbs_listener_close(struct verbs_listener *l);

/* Set the address to which ready datagrams go. 0, or negative errno and `why`. */
int verbs_listener_start(struct verbs_listener *l, enum ring_side side,
			 const struct verbs_address *peer,
			 const unsigned char nonce[TRANSPORT_NONCE_LEN], char *why);
/* Send a ready datagram if one is due; for sides that are not up. 0 or negative errno. */
int verbs_listener_progress(struct verbs_listener *l, enum ring_side side,
			    int64_t now_ms);

/* A datagram has arrived. True: it is the ready datagram of the neighbour on *side. */
bool verbs_listener_received(struct verbs_listener *l, const struct ibv_wc *wc,
			     enum ring_side *side);
