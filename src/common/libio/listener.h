/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listening socket in a loop. When the process runs out of descriptors it
 * waits LISTENER_RETRY_MS instead of spinning.
 */
#pragma once

#include <uv.h>

#include "libio/listener_socket.h"

#define LISTENER_RETRY_MS 100
#define LISTENER_ACCEPTS_PER_TURN 64

struct listener;

/* A connection has come: non-blocking, CLOEXEC, the callee's. */
typedef void (*listener_fn)(void *arg, int fd);

/* Takes over the listening `fd`, also on failure. 0 or a negative errno. */
int listener_open(struct listener **out, uv_loop_t *loop, int fd,
		  listener_fn accepted, void *arg);
/*
 * Call this, with the listener's `arg`, whenever a connection cannot be accepted
 * because the process has run out of something: -EMFILE, -ENFILE and the like.
 */
void listener_on_starved(struct listener *l, void (*fn)(void *arg, int error));
/* Close at once; freed in a later turn. NULL is allowed. */
void listener_close(struct listener *l);
