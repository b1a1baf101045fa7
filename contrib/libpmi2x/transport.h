/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_FD as a source of whole messages and a sink of whole messages.
 *
 * The descriptor is borrowed: closing the transport leaves it open, so that
 * another session may start on it. Input and output belong to one thread at a
 * time each (conn.c sees to that); any thread may wait.
 */
#ifndef PMI2X_TRANSPORT_H
#define PMI2X_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "libpmi/message.h"

struct transport;

/* 0; -EBADF, -ENOTSOCK (what `fd` is instead of a socket) or -ENOMEM. */
int transport_open(struct transport **out, int fd);
/*
 * The connection is this program's: one that it executes does not get `fd`, as far
 * as the system lets us, until transport_close makes it what it was before.
 */
void transport_keep(struct transport *t);
/* Frees the transport and descriptors nobody took; `fd` stays open. */
void transport_close(struct transport *t);

/* Send what the socket takes now: how many bytes (0: it is full) or -errno. */
long transport_send(struct transport *t, const void *data, size_t len);
/* Wait for input or an end or, with `output`, room for output. 0 or -errno. */
int transport_await(struct transport *t, bool output);

/*
 * Read what is there; with `block`, wait for it. The number of bytes, 0 (nothing
 * there, only without `block`), -ECONNRESET (the server has hung up) or -errno.
 */
long transport_fill(struct transport *t, int block);

/*
 * The next whole message of the input: its length and where it is, until
 * transport_consume. 0 when more input is needed; -EPROTO or -EMSGSIZE.
 */
long transport_frame(struct transport *t, enum pmi_protocol protocol,
		     char **data);
void transport_consume(struct transport *t, size_t len);

/*
 * The oldest descriptor that came with the input and was not taken (the caller
 * closes it), or -1.
 */
int transport_take_fd(struct transport *t);

/*
 * Has the server hung up, or is another file in the place of the descriptor?
 * There may be input left. Any thread.
 */
bool transport_hung_up(const struct transport *t);

/* Make a thread that is blocked in transport_fill return. No way back. */
void transport_shutdown(struct transport *t);

#endif
