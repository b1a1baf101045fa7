/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of tasks on this node: the processes of their ranks, and other processes that
 * may run. A part is removed when all its ranks have ended, or will not be started.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct parts;

/* Create an empty table. NULL: no memory. */
struct parts *parts_create(void);
/* A part with `count` ranks to start; a known part is left as it is. 0 or -ENOMEM. */
int parts_open(struct parts *p, uint32_t number, uint64_t task, uint32_t instance,
	       uint32_t count);
/* This process is the part's rank at `slot`. 0 or -ENOMEM. */
int parts_started(struct parts *p, uint32_t number, uint32_t slot, pid_t pid);
/* Ranks that have not been started will not be. */
void parts_give_up(struct parts *p, uint32_t number);
/* Find the rank of a process. False: the process is no rank. */
bool parts_find(const struct parts *p, pid_t pid, uint32_t *number, uint32_t *slot);
/* Any rank whose process is no more. 0: there is none. */
pid_t parts_vanished(const struct parts *p);
/* The process of a rank has been reaped. */
void parts_ended(struct parts *p, pid_t pid);
/* Signal the process groups of a part's ranks. The part may be over. */
void parts_signal(struct parts *p, uint32_t number, int signal);
/*
 * True: this child of the zygote may go on. Its environment names its task. A process
 * without that may go on as long as a rank is left that may have started it. For strays.h.
 */
bool parts_may_run(void *parts, pid_t pid);
