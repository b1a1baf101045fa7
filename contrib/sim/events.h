/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events to come, the earliest first; those of one time in the order in
 * which they were added.
 */
#pragma once

#include <stddef.h>

#include "units.h"

enum event_type {
	EVENT_ENTER,   /* a: index of a rank, which goes on with its program */
	EVENT_MESSAGE, /* message */
	EVENT_FAULT,   /* a: index of a fault of the scenario */
	EVENT_LOST,    /* a: a node, which learns that its link to b is gone */
	EVENT_DVM_TO_HEAD,   /* frame, and so the next three */
	EVENT_DVM_TO_NODE,
	EVENT_DVM_TO_CLIENT,
	EVENT_DVM_STARTED,
	EVENT_DVM_HEAD,      /* a: a head, which can take up what has come */
	EVENT_DVM_DUE,       /* a: a head, which has something to do at this time */
	EVENT_DVM_READY,     /* a: a head, of which all nodes have registered */
	EVENT_DVM_FAULT,     /* a: index of a fault of the scenario */
	EVENT_DVM_FOLLOWS,   /* a: a head, which goes on with the journal */
	EVENT_DVM_FLUSH,     /* a: a node in a tree, which sends what has come up */
	EVENT_DVM_TURN,      /* a: a node, which has something to do at this time */
	EVENT_DVM_EXIT,      /* a: a process of a node, which ends */
};

struct sim_message;
struct dvm_frame;

struct event {
	sim_time at;
	uint64_t order;
	enum event_type type;
	union {
		struct {
			uint32_t a, b;
		};
		struct sim_message *message;
		struct dvm_frame *frame;
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
