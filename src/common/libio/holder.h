/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the process at the other end of a connection over the loopback device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libio/owner.h"

/*
 * The socket to look for. Children inherit sockets: among the process `near` (0: none)
 * and its ancestors the eldest that has the socket is found. If none of those has it,
 * and `all` is set, all processes of the user are looked through.
 */
struct holder_question {
	struct owner_peer peer; /* the socket */
	uint32_t uid;           /* the user's */
	pid_t near;
	bool all;
};

/*
 * The number of the process; -ENOENT: the socket is closed; -EPERM: it is another user's;
 * -EACCES: this process may not look at `near`, or that is another user's or not dumpable;
 * -ESRCH: `near` does not have it, and no other process was found; or another negative errno. Reads /proc, in milliseconds for a
 * thousand processes: not for a thread that must not wait. Any thread.
 */
int holder_find(const struct holder_question *q);

/* A question as bytes, for a message within the machine; the user is the reader's to know. */
#define HOLDER_BYTES (OWNER_BYTES + 5)
void holder_pack(const struct holder_question *q, unsigned char bytes[HOLDER_BYTES]);
void holder_unpack(const unsigned char bytes[HOLDER_BYTES], uint32_t uid,
		   struct holder_question *out);
