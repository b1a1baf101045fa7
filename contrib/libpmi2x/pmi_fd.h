/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_FD as a source of whole messages and a sink of whole messages.
 *
 * The descriptor is borrowed: closing it here leaves it open, so that
 * another session may start on it. Input and output belong to one thread at a
 * time each (conn.c sees to that); any thread may wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "libpmi/message.h"

struct pmi_fd;

/* 0; -EBADF, -ENOTSOCK (what `fd` is instead of a socket) or -ENOMEM. */
int pmi_fd_open(struct pmi_fd **out, int fd);
/*
 * The connection is this program's: one that it executes does not get `fd`, as far
 * as the system lets us, until pmi_fd_close makes it what it was before.
 */
void pmi_fd_keep(struct pmi_fd *t);
/* Frees it and descriptors nobody took; `fd` stays open. */
void pmi_fd_close(struct pmi_fd *t);

/* Send what the socket takes now: how many bytes (0: it is full) or -errno. */
long pmi_fd_send(struct pmi_fd *t, const void *data, size_t len);
/* Wait for input or an end or, with `output`, room for output. 0 or -errno. */
int pmi_fd_await(struct pmi_fd *t, bool output);

/*
 * Read what is there; with `block`, wait for it. The number of bytes, 0 (nothing
 * there, only without `block`), -ECONNRESET (the server has hung up) or -errno.
 */
long pmi_fd_fill(struct pmi_fd *t, int block);

/* The form of a message: an answer to init is a line of text ("cmd=") in PMI-2, too. */
enum pmi_protocol pmi_fd_form(enum pmi_protocol protocol, const char *data);

/*
 * The next whole message of the input: its length and where it is, until
 * pmi_fd_consume. 0 when more input is needed; -EPROTO or -EMSGSIZE.
 */
long pmi_fd_frame(struct pmi_fd *t, enum pmi_protocol protocol,
		  char **data);
void pmi_fd_consume(struct pmi_fd *t, size_t len);

/*
 * The oldest descriptor that came with the input and was not taken (the caller
 * closes it), or -1.
 */
int pmi_fd_take_fd(struct pmi_fd *t);

/*
 * True: the server has hung up, or the descriptor is another file by now. Input may be
 * left. Any thread.
 */
bool pmi_fd_hung_up(const struct pmi_fd *t);

/* Make a thread that is blocked in pmi_fd_fill return. No way back. */
void pmi_fd_shutdown(struct pmi_fd *t);
