/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that ranks leave behind beside their process groups, as `setsid PROGRAM &`
 * does. A process that adopts strays is given them when their parents have ended, and
 * children of theirs when those are killed.
 */
#ifndef PMI2X_DVM_STRAYS_H
#define PMI2X_DVM_STRAYS_H

#include "dvm/core/node.h"

/* This process adopts what descends from it. */
void strays_adopt(void);
/*
 * Kill those whose task runs here no more. They tell it by their environment; one
 * that does not, when no rank is left that may have started it. They are not reaped.
 */
void strays_kill_ended(const struct dvm_node *node);
/*
 * Kill all children and reap them, until there are none, for a few seconds at most. False:
 * some are left that cannot end, as they wait for a disk.
 */
bool strays_kill_all(void);

#endif
