/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DVM that batch has started ends with the last client that submits or waits. Each of these
 * asks for that end when it leaves, and the last one waits for it: the command returns when
 * nothing is left.
 */
#pragma once

#include "dvm/cli/client.h"

/*
 * This client leaves: end the DVM if it ends with its last client, and this is that client.
 * `work` says what becomes of tasks that have not ended, as in the request `down`. Events
 * until the end go to `fn`, unless it is NULL; it keeps none. Returns the number of other
 * clients; 0: the DVM has ended; -1: it does not end with its clients.
 */
long long last_client_leaves(struct conn *c, const char *work,
			     void (*fn)(void *arg, json_t *event), void *arg);
