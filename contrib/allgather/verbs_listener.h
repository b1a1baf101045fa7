/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the two ends of a connection find out that the other one is ready. A message of a
 * reliable connection to a queue pair that is not connected yet is lost, and comes again
 * only after the acknowledgement timeout, a second. So nothing is sent over it before the
 * neighbour has knocked: a datagram, repeated until the neighbour answers over the
 * connection. Whoever is later is let in at once.
 */
#ifndef PMI2X_ALLGATHER_VERBS_LISTENER_H
#define PMI2X_ALLGATHER_VERBS_LISTENER_H

#include "verbs_address.h"
#include "verbs_device.h"

struct verbs_door {
	struct ibv_ah *ah;      /* the way to the neighbour; NULL: no neighbour */
	uint32_t qpn, qkey;
	unsigned char nonce[TRANSPORT_NONCE_LEN];
	bool sending;
	int64_t due_ms;
	int interval_ms;
};

struct verbs_knock {
	struct verbs_device *device;
	struct ibv_qp *qp;
	uint32_t qkey;
	unsigned char nonce[TRANSPORT_NONCE_LEN]; /* of this element */
	struct verbs_door doors[SIDES];
};

/* Fills a zero-filled structure. 0, or negative errno and `why`; to be closed. */
int verbs_knock_open(struct verbs_knock *k, struct verbs_device *d,
		     const unsigned char nonce[TRANSPORT_NONCE_LEN], char *why);
void verbs_knock_close(struct verbs_knock *k);

/* Start to knock at a neighbour. 0, or negative errno and `why`. */
int verbs_knock_start(struct verbs_knock *k, enum ring_side side,
		      const struct verbs_address *peer,
		      const unsigned char nonce[TRANSPORT_NONCE_LEN],
		      char *why);
/* Knock if it is time to; for sides that are not up. 0 or negative errno. */
int verbs_knock_progress(struct verbs_knock *k, enum ring_side side,
			 int64_t now_ms);

/* A datagram has arrived: true when the neighbour on *side has knocked. */
bool verbs_knock_heard(struct verbs_knock *k, const struct ibv_wc *wc,
		       enum ring_side *side);

#endif
