/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Promises of the links of all transports to their owner: messages in order, each until
 * it is taken, then the end, once. See transport.h.
 */
#pragma once

#include "transport.h"

/* Zero-filled at first. */
struct delivery {
	bool kept;  /* the owner could not take the first message */
	bool ended; /* nothing more will come; `reason` says why */
	bool told;  /* the owner knows, or wants to hear no more */
	char reason[TRANSPORT_REASON_MAX];
};

/* Offer the first message. True when the link is done with it. */
bool delivery_offer(struct delivery *d, enum ring_side side,
		    const struct transport_events *events, const void *data,
		    size_t len);

/* Nothing more will come from here; the first reason counts. */
void delivery_end(struct delivery *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Tell the owner of the end, unless it knows. Returns the upcalls made. */
int delivery_tell_end(struct delivery *d, enum ring_side side,
		      const struct transport_events *events);
