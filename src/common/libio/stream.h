/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A non-blocking byte stream over a connected descriptor (or one whose
 * connect() is in progress). Output is written at once when nothing is queued;
 * what the kernel does not take is queued up to a limit.
 *
 * All calls and callbacks are in the loop's thread. stream_write* and
 * stream_finish never call back: what they find broken is told later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "libio/epoll_set.h"
#include "libutil/passed_fds.h"
#include "libutil/payload.h"

#define STREAM_IOV_MAX 64       /* slices handed to the kernel at once */
#define STREAM_READS_PER_TURN 8 /* then other streams are read */
#define STREAM_HOLD_MAX 4096    /* bytes, and */
#define STREAM_HOLD_PIECES 16   /* reads; see stream_open_held */

struct stream;

struct stream_ops {
	/* The place of the next input: > 0 bytes at *at. */
	size_t (*room)(void *arg, void **at);
	/* `len` bytes have been put there. May close the stream. */
	void (*input)(void *arg, size_t len);
	/*
	 * Nothing more comes: 0 for the peer's end of file or after
	 * stream_finish, else a negative errno. At most once; the owner then
	 * calls stream_close.
	 */
	void (*end)(void *arg, int error);
	/* The queued bytes have been written. May be NULL. */
	void (*drained)(void *arg);
};

struct stream_limits {
	size_t queue; /* bytes of output; more is -ENOBUFS and the end */
	size_t pause; /* read nothing while more output than this is queued */
};

/*
 * Takes over `fd`, also on failure, and makes it non-blocking. 0 or a
 * negative errno.
 */
int stream_open(struct stream **out, uv_loop_t *loop, int fd,
		const struct stream_limits *limits,
		const struct stream_ops *ops, void *arg);

/*
 * As above, for a peer that sends a request and sleeps until the answer comes. Taking
 * the request out of a unix socket would wake it, for there is room to write again, and
 * it would find no answer. So input is looked at where it is, and that of several
 * requests is taken out together, after a stream_write: after each one, the peer may
 * sleep again, for the answer to its next request.
 *
 * Data written while input of a burst is delivered is sent when all streams of the set
 * have been told of theirs: a peer that is woken may take the processor from who has more
 * requests to read. With descriptors it goes at once.
 */
int stream_open_held(struct stream **out, uv_loop_t *loop,
		     struct epoll_set *epoll, int fd, const struct stream_limits *limits,
		     const struct stream_ops *ops, void *arg);

/*
 * Send bytes (copied as far as needed) or payloads (referenced), `front` before
 * those of `v`; either may be NULL. `fds` (NULL: none) travel
 * with the first byte over a unix socket and must stay open until
 * then; they remain the caller's. 0; -ENOBUFS or -ENOMEM: the stream is
 * broken and will end; -EPIPE: it was broken, finished or shut down before.
 */
int stream_write(struct stream *s, const void *data, size_t len,
		 const struct passed_fds *fds);
int stream_write_vec(struct stream *s, struct payload *front,
		     const struct payload_vec *v);

/*
 * The process that has written what was delivered last, of a stream that is held and
 * whose socket has SO_PASSCRED: each delivery is of one process. 0: it is not known.
 */
pid_t stream_sender(const struct stream *s);

/* Take out what is held: the peer may have to wait for room before it can go on. */
void stream_release(struct stream *s);

/* Bytes that wait for the kernel to take them. */
size_t stream_queued(const struct stream *s);

/*
 * Read what is there now, up to about `max` bytes, without waiting for the
 * loop. Calls back.
 */
void stream_read_now(struct stream *s, size_t max);

/* Read no more; ends when what is queued has been written. */
void stream_finish(struct stream *s);
/* Close the sending direction once the queue is written; reading goes on. */
void stream_shutdown(struct stream *s);

/* Close at once; no callback comes any more. Freed in a later turn. */
void stream_close(struct stream *s);

int stream_fd(const struct stream *s);
