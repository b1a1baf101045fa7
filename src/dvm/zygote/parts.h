/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of tasks that run here: which processes their ranks are, and what of a task
 * may run. A part is gone when all its ranks have ended, or will not be started.
 */
#ifndef PMI2X_DVM_PARTS_H
#define PMI2X_DVM_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct parts;

/* NULL: no memory. */
struct parts *parts_create(void);
/* `count` ranks of it are to be started, unless it is known. 0 or -ENOMEM. */
int parts_open(struct parts *p, uint32_t number, uint64_t task, uint32_t instance,
	       uint32_t count);
/* Its `slot`th rank is this process. */
void parts_started(struct parts *p, uint32_t number, uint32_t slot, pid_t pid);
/* Ranks that have not been started will not be. */
void parts_give_up(struct parts *p, uint32_t number);
/* False: it is none of them. */
bool parts_find(const struct parts *p, pid_t pid, uint32_t *number, uint32_t *slot);
/* One of them has been reaped. */
void parts_ended(struct parts *p, pid_t pid);
/* To the process groups of a part's ranks, which is gone perhaps. */
void parts_signal(struct parts *p, uint32_t number, int signal);
/*
 * May the process, a child of this one, go on? Its environment tells its task; without that
 * it may as long as a rank is left that may have started it. For strays.h.
 */
bool parts_may_run(void *parts, pid_t pid);

#endif
