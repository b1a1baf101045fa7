/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that have come over a listening socket and have not proved themselves. When
 * there are too many, the oldest is dropped: a stranger who holds many shuts out nobody,
 * for a connection of a friend proves itself before a stranger can make that many. The
 * loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "libio/link.h"
#include "libio/refusals.h"

/* In each connection, which owns it. */
struct stranger {
	struct link *const *link; /* of the connection; NULL: it is no stranger */
	void *owner;
	struct stranger *prev, *next;
};

struct strangers {
	struct stranger *oldest;
	unsigned count, max;
	struct refusals refused;
	void (*drop)(void *owner); /* close it, with strangers_leave */
};

void strangers_init(struct strangers *s, unsigned max, void (*drop)(void *owner),
		    const struct log_hook *log);
/* Before its link is made: one too many drops the oldest. */
void strangers_join(struct strangers *s, struct stranger *one, void *owner,
		    struct link *const *link);
/* The peer has proved itself, or is dropped. A second call does nothing. */
void strangers_leave(struct strangers *s, struct stranger *one);
/* The link of one has ended before it was proved: it counts as refused. */
void strangers_ended(struct strangers *s, const struct stranger *one, int error);
/* False: there is none. */
bool strangers_drop_oldest(struct strangers *s);
/* Drop all, and log how many were refused. */
void strangers_close(struct strangers *s);
