/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps bytes in their order, and writes several pieces of them at once. */
#include "libio/out_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "libio/attach_fds.h"
#include "libio/stream.h"
#include "libutil/array.h"

struct chunk {
	struct payload *bytes;
	size_t sent; /* of its bytes */
	struct passed_fds fds; /* travel with the first byte */
};

int out_queue_add(struct out_queue *q, struct payload *p,
		  const struct passed_fds *fds)
{
	struct chunk *c;

	if (q->head && q->head + q->count == q->cap) {
		memmove(q->chunks, q->chunks + q->head,
			q->count * sizeof(*q->chunks));
		q->head = 0;
	}
	if (array_grow(&q->chunks, q->head + q->count, &q->cap, sizeof(*c)))
		return -ENOMEM;
	c = &q->chunks[q->head + q->count++];
	*c = (struct chunk){ .bytes = payload_ref(p) };
	if (fds)
		c->fds = *fds;
	q->bytes += p->len;
	return 0;
}

static void drop_chunk(struct out_queue *q)
{
	struct chunk *c = &q->chunks[q->head++];

	q->bytes -= c->bytes->len - c->sent;
	payload_unref(c->bytes);
	if (--q->count == 0)
		q->head = 0;
}

void out_queue_clear(struct out_queue *q)
{
	while (q->count)
		drop_chunk(q);
}

void out_queue_free(struct out_queue *q)
{
	out_queue_clear(q);
	free(q->chunks);
}

/* ---- writing ---- */

ssize_t out_queue_put(int fd, bool is_socket, struct iovec *iov, int n,
		      const struct passed_fds *fds)
{
	union attached_fds control;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	if (fds && fds->count && is_socket)
		attach_fds(&msg, fds, &control);
	do {
		sent = is_socket ? sendmsg(fd, &msg, MSG_NOSIGNAL) :
				   writev(fd, iov, n);
	} while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

/* A chunk with descriptors starts a message of its own. */
static int gather(const struct out_queue *q, struct iovec *iov, size_t *bytes)
{
	int n = 0;

	*bytes = 0;
	for (size_t i = 0; i < q->count && n < STREAM_IOV_MAX; i++) {
		const struct chunk *c = &q->chunks[q->head + i];

		if (i && c->fds.count)
			break;
		iov[n].iov_base = c->bytes->data + c->sent;
		iov[n].iov_len = c->bytes->len - c->sent;
		*bytes += iov[n++].iov_len;
	}
	return n;
}

static void take_sent(struct out_queue *q, size_t n)
{
	if (n)
		q->chunks[q->head].fds.count = 0;
	while (n) {
		struct chunk *c = &q->chunks[q->head];
		size_t left = c->bytes->len - c->sent;

		if (n < left) {
			c->sent += n;
			q->bytes -= n;
			return;
		}
		n -= left;
		drop_chunk(q);
	}
}

int out_queue_flush(struct out_queue *q, int fd, bool is_socket)
{
	struct iovec iov[STREAM_IOV_MAX];

	while (q->count) {
		size_t offered;
		int n = gather(q, iov, &offered);
		ssize_t sent = out_queue_put(fd, is_socket, iov, n,
					     &q->chunks[q->head].fds);

		if (sent < 0)
			return (int)sent;
		take_sent(q, sent);
		if ((size_t)sent < offered)
			break;
	}
	return 0;
}
