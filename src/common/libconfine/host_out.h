/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of libconfine/host_msg.h on their way: what the socket has no room for is kept, in
 * order, until it has. One thread.
 */
#pragma once

#include <stdbool.h>

#include "libconfine/host_msg.h"

#define HOST_OUT_MAX 16384 /* messages that are kept at most */

struct host_kept;

struct host_out {
	struct host_kept *first, *last;
	unsigned int count; /* kept */
};

/*
 * Send it, or keep it behind those that are kept. 0; -ENOBUFS: HOST_OUT_MAX are kept,
 * the peer does not read; -ENOMEM; another negative errno: the connection has ended.
 */
int host_out_send(struct host_out *o, int fd, const struct host_msg *m);
/*
 * Send what is kept; poll for POLLOUT while o->count is not 0. 0, also when some are
 * still kept, or a negative errno: the connection has ended.
 */
int host_out_flush(struct host_out *o, int fd);
/* Sends, and waits until all is sent or the connection has ended. */
int host_out_drain(struct host_out *o, int fd);
void host_out_free(struct host_out *o);
