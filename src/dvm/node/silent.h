/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a task that does not use PMI (yet). Their connections are held, and no agent
 * is made, until a rank has sent a message. src/supervisor/dormant.c does the same for a
 * step. All calls and callbacks are in the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libio/epoll_set.h"
#include "libio/registration.h"
#include "libutil/log.h"

struct silent;

struct silent_ops {
	/*
	 * A rank has sent a message, or (a negative errno) its connection could not be
	 * taken. silent_end may be called.
	 */
	void (*spoken)(void *arg, int error);
	/*
	 * A rank that ends without PMI counts as one that used it: another process may wait
	 * for it.
	 */
	bool ends_count;
	void *arg;
};

/*
 * `ranks` register over `registration`, which stays the caller's, as `epoll` does.
 * 0 or a negative errno.
 */
int silent_open(struct silent **out, struct epoll_set *epoll, int registration,
		uint32_t ranks, const struct silent_ops *ops, const struct log_hook *log);
/* All ranks have been reaped: look at their last messages. May call spoken. */
void silent_reaped(struct silent *s);
/*
 * Stop watching. `take` (NULL: close them) gets the connection of each registered rank, by
 * slot, and closes it. NULL is allowed.
 */
void silent_end(struct silent *s, void (*take)(void *arg, struct registration *reg));
/* Free it, in a later turn of the loop. NULL is allowed. */
void silent_destroy(struct silent *s);
