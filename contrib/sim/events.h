/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events to come, the earliest first; those of one time in the order in
 * which they were added.
 */
#ifndef PMI2X_SIM_EVENTS_H
#define PMI2X_SIM_EVENTS_H

#include <stddef.h>

#include "units.h"

enum event_type {
	EVENT_ENTER,   /* a: index of a rank, which goes on with its program */
	EVENT_MESSAGE, /* message */
	EVENT_FAULT,   /* a: index of a fault of the scenario */
	EVENT_LOST,    /* a: a node, which learns that its link to b is gone */
};

struct sim_message;

struct event {
	sim_time at;
	uint64_t order;
	enum event_type type;
	union {
		struct {
			uint32_t a, b;
		};
		struct sim_message *message;
	};
};

/* Starts zeroed. */
struct events {
	struct event *heap;
	size_t count, cap;
	uint64_t added;
};

/* False: no memory. */
bool events_add(struct events *q, struct event e);
/* Take the earliest out. False: there is none. */
bool events_take(struct events *q, struct event *out);
void events_free(struct events *q);

#endif
