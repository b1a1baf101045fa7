/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users whose connections wait at a listening TCP socket: another local user's
 * start nothing.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define ACCEPTS_AT_ONCE 64 /* connections that are looked at in one call */

/*
 * Accept what waits at the listener, which does not block, until one is of `uid`: true,
 * and its descriptor, CLOEXEC, in *client. Connections of other users, and those that
 * have been closed, are closed. True with *client -1: this process may have no more
 * descriptors. Does not block.
 */
bool accept_user(int listener, uid_t uid, int *client);
