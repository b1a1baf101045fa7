/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of pmi2x-dvmd (dvm_msg.h) in frames over a stream, and the descriptors that come
 * with some messages, in their order. The descriptors of a message have arrived when the
 * message is whole.
 */
#pragma once

#include "dvm/core/dvm_msg.h"
#include "libio/frames.h"
#include "libutil/passed_fds.h"

/* A whole message, and the next one, of which a part has arrived. */
#define ORDERS_FDS (2 * PASSED_FDS_MAX)

struct orders {
	int fd;
	struct frame_reader reader;
	int fds[ORDERS_FDS]; /* arrived, and not taken */
	unsigned count;
};

void orders_init(struct orders *o, int fd);
/*
 * Read what has arrived, without waiting; `take` gets each message, and returns 0 or a
 * negative errno, which ends the call. 0, or negative: the stream has ended.
 */
int orders_read(struct orders *o, int (*take)(void *arg, const struct dvm_msg *m), void *arg);
/* The next descriptor, which the caller owns. -1: there is none. */
int orders_fd(struct orders *o);
