/* SPDX-License-Identifier: BSD-3-Clause */
/* The unix socket at which slurmd delivers connect-back messages of other nodes. */
#pragma once

#include "agent/node.h"
#include "libio/refusals.h"

struct connect_back_listener;

/* Called with the bytes of a message, none of which has been checked. */
typedef void (*connect_back_fn)(void *arg, const void *data, size_t len);

/* Takes over the listening unix socket `fd`, also on failure. 0 or a negative errno. */
int connect_back_listener_open(struct connect_back_listener **out, const struct node *node,
			       int fd, struct refusals *refused, connect_back_fn message,
			       void *arg);
/* Close at once; NULL is allowed. */
void connect_back_listener_close(struct connect_back_listener *l);
