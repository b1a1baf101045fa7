/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that ranks leave behind beside their process groups, as `setsid PROGRAM &`
 * does. A process that adopts strays is given them when their parents have ended, and
 * children of theirs when those are killed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Become the parent of all orphaned descendants. */
void strays_adopt(void);
/* Kill the children that may not go on, for their tasks have ended. They are not reaped. */
void strays_kill_ended(bool (*may_run)(void *arg, pid_t pid), void *arg);
/*
 * Kill all children and reap them, until there are none, for a few seconds at most. False:
 * some are left that cannot end, as they wait for a disk.
 */
bool strays_kill_all(void);
