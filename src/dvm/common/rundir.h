/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory of a DVM, which lives as long as its head. The holder of its lock may use
 * it; pmi2x-dvm up takes it for a head, which leaves it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DVM_BASE_VARIABLE "PMI2X_DVM_DIR" /* where the directories of DVMs are, and
					    the files for clients on other nodes */
#define HEADD_SOCKET "head.sock" /* in the directory */
#define HEADD_LOG "log"          /* in the directory */

/*
 * Make it when it is not there. A descriptor that has the lock until the last copy is
 * closed, or a negative errno; -EWOULDBLOCK: another head has it; -ENOENT: what it would
 * be in is not there.
 */
int place_take(const char *dir);
/* True: a head has the lock, whether it starts, is up or ends. */
bool place_is_taken(const char *dir);
/* The Slurm job in which its head was started; "" without one. */
void place_job(const char *dir, char *out, size_t size);
/*
 * Remove it, also its parent when that is empty and not of PMI2X_DVM_DIR. keep: not the
 * log. The caller has the lock.
 */
void place_leave(const char *dir, bool keep);
