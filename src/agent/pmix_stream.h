/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream to who serves a node's PMIx clients: messages of libpmi/pmix_msg.h, each
 * whole and in memory of its own.
 *
 * All calls and callbacks are in the loop's thread. pmix_stream_send never calls back.
 */
#pragma once

#include <stddef.h>
#include <uv.h>

#include "libutil/budget.h"
#include "libutil/payload.h"

struct pmix_stream;

struct pmix_stream_ops {
	/*
	 * Called for each message. A non-zero return: the message is invalid, and nothing
	 * more is read.
	 */
	int (*message)(void *arg, struct payload *message);
	/* Nothing more comes: how, for people, behind the server's name. Once. */
	void (*lost)(void *arg, const char *how);
};

/*
 * `fd` is taken over, also on failure; what comes is held in `budget`. 0 or a negative
 * errno.
 */
int pmix_stream_open(struct pmix_stream **out, uv_loop_t *loop, int fd,
		     struct budget *budget, const struct pmix_stream_ops *ops, void *arg);
/*
 * A message without its data, and these, or NULL. A message that cannot be sent ends
 * the stream.
 */
void pmix_stream_send(struct pmix_stream *s, const void *head, size_t len,
		      struct payload *data);
/* At once; no callback comes any more. NULL is allowed. */
void pmix_stream_close(struct pmix_stream *s);
/* After that, not from a callback. NULL is allowed. */
void pmix_stream_destroy(struct pmix_stream *s);
