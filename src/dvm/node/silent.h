/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a task that does not use PMI (yet): their connections are held, and
 * nothing else is made, until one has said something. src/supervisor/dormant.c does the
 * same for a step.
 *
 * All calls and callbacks are in the loop's thread.
 */
#ifndef PMI2X_DVM_SILENT_H
#define PMI2X_DVM_SILENT_H

#include <stdbool.h>
#include <stdint.h>

#include "libio/epoll_set.h"
#include "libio/registration.h"
#include "libutil/log.h"

struct silent;

struct silent_ops {
	/*
	 * A rank has spoken, or (a negative errno) its connection could not be taken.
	 * silent_end may be called.
	 */
	void (*spoken)(void *arg, int error);
	/* One that ends without a word counts as if it had: somebody may wait for it. */
	bool ends_count;
	void *arg;
};

/*
 * `ranks` register over `registration`, which stays the caller's, as `epoll` does.
 * 0 or a negative errno.
 */
int silent_open(struct silent **out, struct epoll_set *epoll, int registration,
		uint32_t ranks, const struct silent_ops *ops, const struct log_hook *log);
/* They have been reaped: what they have said last is there. May call spoken. */
void silent_reaped(struct silent *s);
/*
 * Look at them no more. `take` (NULL: close them) gets each that has registered, by
 * slot, and closes it. NULL is allowed.
 */
void silent_end(struct silent *s, void (*take)(void *arg, struct registration *reg));
/* After that, in a later turn of the loop. NULL is allowed. */
void silent_destroy(struct silent *s);

#endif
