/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listening socket in a loop. When the process runs out of descriptors it
 * waits LISTENER_RETRY_MS instead of spinning.
 */
#ifndef PMI2X_LISTENER_H
#define PMI2X_LISTENER_H

#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#define LISTENER_RETRY_MS 100
#define LISTENER_ACCEPTS_PER_TURN 64

struct listener;

/* A connection has come: non-blocking, CLOEXEC, the callee's. */
typedef void (*listener_fn)(void *arg, int fd);

/*
 * A listening TCP socket on `bind_to` (AF_UNSPEC: every address, both
 * families) and `port` (0: any). The descriptor or a negative errno
 * (-EADDRINUSE). Writes the port.
 */
int listener_socket(const struct sockaddr_storage *bind_to, uint16_t port,
		    uint16_t *bound);

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

#endif
