/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes that a stream has to write: references to payloads, some with descriptors
 * that travel with their first byte. The stream limits them. One thread at a time;
 * nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "libutil/passed_fds.h"
#include "libutil/payload.h"

struct chunk;

/* All zero: empty. */
struct out_queue {
	struct chunk *chunks; /* [head, head + count) are queued */
	size_t head;
	size_t count;
	size_t cap;
	size_t bytes; /* bytes in the queue */
};

/* Append a reference; `fds` is copied, or NULL. 0 or -ENOMEM. */
int out_queue_add(struct out_queue *q, struct payload *p,
		  const struct passed_fds *fds);
/* Forget what is queued. */
void out_queue_clear(struct out_queue *q);
void out_queue_free(struct out_queue *q);

/*
 * Write `n` pieces past the queue, which is empty. Bytes written (perhaps 0 when the
 * kernel is full) or a negative errno.
 */
ssize_t out_queue_put(int fd, bool is_socket, struct iovec *iov, int n,
		      const struct passed_fds *fds);
/* Write what the kernel takes. 0 or a negative errno. */
int out_queue_flush(struct out_queue *q, int fd, bool is_socket);
