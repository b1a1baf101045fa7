/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of pmi2x-dvmd (dvm_msg.h) in frames over a stream, and the descriptors that come
 * with some of them, in order: those of a message have come when it is whole.
 */
#ifndef PMI2X_DVM_ORDERS_H
#define PMI2X_DVM_ORDERS_H

#include "dvm/core/dvm_msg.h"
#include "libio/frames.h"
#include "libutil/passed_fds.h"

/* A message that is whole, and the one that is under way. */
#define ORDERS_FDS (2 * PASSED_FDS_MAX)

struct orders {
	int fd;
	struct frame_reader reader;
	int fds[ORDERS_FDS]; /* that have come, and are not taken */
	unsigned count;
};

void orders_init(struct orders *o, int fd);
/*
 * Reads what there is now, without waiting; `take` gets each message, and returns 0 or a negative
 * errno, which ends it. 0, or negative: it has an end.
 */
int orders_read(struct orders *o, int (*take)(void *arg, const struct dvm_msg *m), void *arg);
/* The next descriptor, the caller's. -1: there is none. */
int orders_fd(struct orders *o);

#endif
