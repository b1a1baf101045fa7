/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the agent: what has come and what is to go. */
#include "helpers/pmixd/link.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define READ_BYTES ((size_t)256 << 10) /* before messages are handled */
#define OUT_MAX ((size_t)PMIX_MSG_BYTES_MAX * 2) /* bytes that wait to be sent */
#define PIECES_AT_ONCE 64

void link_init(struct link *l, int fd)
{
	*l = (struct link){ .fd = fd };
	pmix_frame_init(&l->frame, NULL);
	payload_vec_init(&l->in);
	payload_vec_init(&l->out);
}

void link_free(struct link *l)
{
	pmix_frame_free(&l->frame);
	payload_vec_clear(&l->in);
	payload_vec_clear(&l->out);
}

/* ---- reading ---- */

static int take_messages(struct link *l)
{
	struct payload *message;
	int rc;

	while ((rc = pmix_frame_next(&l->frame, &message)) > 0) {
		rc = payload_vec_add(&l->in, message);
		payload_unref(message);
		if (rc)
			return rc;
	}
	return rc;
}

/* How many bytes have come; 0: none, for now; or a negative errno. */
static ssize_t read_some(struct link *l, bool *more)
{
	void *at;
	size_t room = pmix_frame_room(&l->frame, &at);
	ssize_t n = recv(l->fd, at, room, MSG_DONTWAIT);
	int rc;

	*more = n > 0 && (size_t)n == room;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -EPIPE;
	pmix_frame_filled(&l->frame, (size_t)n);
	rc = take_messages(l);
	return rc ? rc : n;
}

/* An end behind messages shows again once they have been handled. */
int link_read(struct link *l)
{
	size_t total = 0;
	bool more = true;

	while (more && total < READ_BYTES) {
		ssize_t n = read_some(l, &more);

		if (n < 0)
			return total && n != -EPROTO && n != -ENOMEM ? 0 : (int)n;
		total += (size_t)n;
	}
	return 0;
}

int link_next(struct link *l, struct pmix_msg *m, struct payload **whole)
{
	struct payload *message;

	if (l->taken == l->in.count) {
		payload_vec_drop(&l->in, l->in.count);
		l->taken = 0;
		return 0;
	}
	message = l->in.items[l->taken++];
	if (whole)
		*whole = message;
	return pmix_msg_unpack(m, message->data, message->len) > 0 ? 1 : -EPROTO;
}

/* ---- writing ---- */

static int send_with(struct link *l, struct buf *front, const struct payload_vec *data)
{
	size_t pieces = l->out.count;
	struct payload *p = payload_take(front);
	int rc = p ? payload_vec_add(&l->out, p) : -ENOMEM;

	payload_unref(p);
	if (!rc && data)
		rc = payload_vec_add_all(&l->out, data);
	while (rc && l->out.count > pieces) { /* half a message must not go */
		struct payload *last = l->out.items[--l->out.count];

		l->out.bytes -= last->len;
		payload_unref(last);
	}
	return rc;
}

static bool has_room(const struct link *l, const struct pmix_msg *m)
{
	return m->len < OUT_MAX - l->out.bytes;
}

int link_send(struct link *l, const struct pmix_msg *m)
{
	struct buf whole;
	int rc = has_room(l, m) ? 0 : -ENOBUFS;

	buf_init(&whole, OUT_MAX);
	rc = rc ? rc : pmix_msg_pack(&whole, m);
	rc = rc ? rc : send_with(l, &whole, NULL);
	buf_free(&whole);
	return rc;
}

int link_send_pieces(struct link *l, const struct pmix_msg *m,
		     const struct payload_vec *data)
{
	struct buf head;
	int rc = has_room(l, m) ? 0 : -ENOBUFS;

	buf_init(&head, OUT_MAX);
	rc = rc ? rc : pmix_msg_pack_head(&head, m);
	rc = rc ? rc : send_with(l, &head, data);
	buf_free(&head);
	return rc;
}

bool link_has_to_write(const struct link *l)
{
	return l->out.count > 0;
}

static ssize_t write_some(const struct link *l)
{
	struct iovec iov[PIECES_AT_ONCE];
	struct msghdr msg = { .msg_iov = iov };
	size_t skip = l->sent;

	while (msg.msg_iovlen < PIECES_AT_ONCE && msg.msg_iovlen < l->out.count) {
		struct payload *p = l->out.items[msg.msg_iovlen];

		iov[msg.msg_iovlen++] = (struct iovec){ p->data + skip, p->len - skip };
		skip = 0;
	}
	return sendmsg(l->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* These bytes have gone, and the pieces that end with them. */
static void drop_sent(struct link *l, size_t n)
{
	size_t whole = 0;

	l->sent += n;
	while (whole < l->out.count && l->sent >= l->out.items[whole]->len)
		l->sent -= l->out.items[whole++]->len;
	payload_vec_drop(&l->out, whole);
}

int link_write(struct link *l)
{
	while (link_has_to_write(l)) {
		ssize_t n = write_some(l);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		drop_sent(l, (size_t)n);
	}
	return 0;
}
