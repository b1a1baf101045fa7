/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over one TCP connection to a neighbour. */
#include "tcp_link.h"

#include <endian.h>
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH_BYTES 4
#define OUT_MESSAGES 8 /* messages that may wait for the kernel */
#define OUT_MAX (OUT_MESSAGES * (LENGTH_BYTES + TRANSPORT_MESSAGE_MAX))
#define LAST_MAX (LENGTH_BYTES + TRANSPORT_MESSAGE_MAX) /* room for the last */
#define IN_MAX (4 * (LENGTH_BYTES + TRANSPORT_MESSAGE_MAX))

int tcp_link_init(struct tcp_link *l)
{
	memset(l, 0, sizeof(*l));
	l->fd = -1;
	buf_init(&l->out, OUT_MAX + LAST_MAX);
	l->in = malloc(IN_MAX);
	return l->in ? 0 : -ENOMEM;
}

void tcp_link_start(struct tcp_link *l, int fd)
{
	l->fd = fd;
}

static void close_fd(struct tcp_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

void tcp_link_free(struct tcp_link *l)
{
	close_fd(l);
	buf_free(&l->out);
	free(l->in);
	l->in = NULL;
}

static void end_errno(struct tcp_link *l, int error)
{
	delivery_end(&l->to_owner, "%s",
		     error ? strerror(error) : "connection closed");
}

/* ---- sending ---- */

static bool again(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* Bytes that the kernel has taken, 0 for none; ends the link when broken. */
static size_t give(struct tcp_link *l, struct iovec *iov, int n)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent >= 0)
		return sent;
	if (!again(errno))
		end_errno(l, errno);
	return 0;
}

/* Keep what follows the first `skip` bytes; there is room. */
static int keep_rest(struct tcp_link *l, const struct iovec *iov, int n,
		     size_t skip)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		size_t cut = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		rc = buf_append(&l->out, (char *)iov[i].iov_base + cut,
				iov[i].iov_len - cut);
		skip -= cut;
	}
	if (rc)
		delivery_end(&l->to_owner, "no memory to send");
	return rc;
}

int tcp_link_send(struct tcp_link *l, const struct iovec *iov, int n,
		  bool last)
{
	struct iovec all[TRANSPORT_IOV_MAX + 1];
	size_t total = 0, sent = 0;
	uint32_t length;

	if (l->fd < 0 || l->to_owner.ended)
		return -EPIPE;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (l->out.len + LENGTH_BYTES + total >
	    (last ? OUT_MAX + LAST_MAX : OUT_MAX))
		return -EAGAIN;
	l->last = last;
	length = htole32(total);
	all[0].iov_base = &length;
	all[0].iov_len = sizeof(length);
	memcpy(all + 1, iov, n * sizeof(*iov));
	if (!l->out.len)
		sent = give(l, all, n + 1);
	if (l->to_owner.ended)
		return -EPIPE;
	return keep_rest(l, all, n + 1, sent);
}

/*
 * While the neighbour still sends, closing makes the kernel send a reset, and
 * forget what it has not sent: last words must have arrived.
 */
bool tcp_link_flushed(const struct tcp_link *l)
{
	int unacknowledged = 0;

	if (l->fd < 0 || l->to_owner.ended)
		return true;
	if (l->last && ioctl(l->fd, SIOCOUTQ, &unacknowledged))
		unacknowledged = 0;
	return !l->out.len && !unacknowledged;
}

static int flush(struct tcp_link *l)
{
	struct iovec iov = { l->out.data, l->out.len };
	size_t sent;

	if (!l->out.len)
		return 0;
	sent = give(l, &iov, 1);
	buf_consume(&l->out, sent);
	return sent > 0;
}

/* ---- receiving ---- */

static int receive(struct tcp_link *l)
{
	ssize_t n;

	if (l->to_owner.kept)
		return 0;
	if (l->start) {
		memmove(l->in, l->in + l->start, l->end - l->start);
		l->end -= l->start;
		l->start = 0;
	}
	n = recv(l->fd, l->in + l->end, IN_MAX - l->end, MSG_DONTWAIT);
	if (n > 0)
		l->end += n;
	else if (n == 0)
		end_errno(l, 0);
	else if (!again(errno))
		end_errno(l, errno);
	return n > 0;
}

/* The length of the first message, 0 while it is not complete. */
static size_t first_message(struct tcp_link *l)
{
	size_t have = l->end - l->start;
	uint32_t len;

	if (have < LENGTH_BYTES)
		return 0;
	memcpy(&len, l->in + l->start, sizeof(len));
	len = le32toh(len);
	if (!len || len > TRANSPORT_MESSAGE_MAX) {
		delivery_end(&l->to_owner, "a message of %u bytes, %d is the "
			     "limit", len, TRANSPORT_MESSAGE_MAX);
		l->start = l->end;
		return 0;
	}
	return have < LENGTH_BYTES + len ? 0 : len;
}

static int deliver(struct tcp_link *l, enum ring_side side,
		   const struct transport_events *events)
{
	int count = 0;
	size_t len;

	while (!l->to_owner.told && (len = first_message(l)) > 0) {
		if (!delivery_offer(&l->to_owner, side, events,
				    l->in + l->start + LENGTH_BYTES, len))
			break;
		l->start += LENGTH_BYTES + len;
		count++;
	}
	return count;
}

int tcp_link_progress(struct tcp_link *l, enum ring_side side,
		      const struct transport_events *events)
{
	const struct delivery *d = &l->to_owner;
	int count = 0, received = 0;

	if (l->fd >= 0 && !d->ended)
		count += flush(l);
	/* Read also after a failed send: the neighbour may have sent its reason. */
	if (l->fd >= 0)
		received = receive(l);
	count += received + deliver(l, side, events);
	if (d->ended && !d->kept && !received) {
		close_fd(l);
		count += delivery_tell_end(&l->to_owner, side, events);
	}
	return count;
}

short tcp_link_events(const struct tcp_link *l)
{
	return (l->to_owner.kept ? 0 : POLLIN) | (l->out.len ? POLLOUT : 0);
}
