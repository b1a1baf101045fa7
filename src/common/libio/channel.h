/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages (libpmi/control.h) as frames over a socket pair: between an
 * srun and one that it has started. No proof: the descriptor was inherited.
 *
 * All calls and callbacks are in the loop's thread. channel_send never calls
 * back.
 */
#pragma once

#include <stddef.h>
#include <uv.h>

#include "libutil/passed_fds.h"

#define CHANNEL_QUEUE_MAX ((size_t)64 << 20) /* bytes of output */

struct channel;

struct channel_ops {
	/*
	 * A message has come. Non-zero ends the channel with that error. Must
	 * not close the channel.
	 */
	int (*message)(void *arg, const void *data, size_t len);
	/*
	 * Over: 0 for the other side's end, else a negative errno. At most once;
	 * the owner then calls channel_close.
	 */
	void (*end)(void *arg, int error);
};

/* Takes over `fd`, also on failure. 0 or a negative errno. */
int channel_open(struct channel **out, uv_loop_t *loop, int fd,
		 const struct channel_ops *ops, void *arg);
/* 0, -ENOMEM, or the errors of stream_write. */
int channel_send(struct channel *c, const void *data, size_t len);
/* As above, with descriptors (NULL: none), which stay the caller's: see stream_write. */
int channel_send_fds(struct channel *c, const void *data, size_t len,
		     const struct passed_fds *fds);
int channel_fd(const struct channel *c);
/* The other side sees an end behind what has been sent. */
void channel_shutdown(struct channel *c);
/* Deliver what has come already, without waiting for the loop. Calls back. */
void channel_read_now(struct channel *c);
/* Close at once; no callback comes any more. NULL is allowed. */
void channel_close(struct channel *c);
