/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the agent: what has come and what is to go. */
#include "helpers/pmixd/link.h"

#include <errno.h>
#include <sys/socket.h>

#define READ_BYTES ((size_t)256 << 10) /* at once */

void link_init(struct link *l, int fd)
{
	*l = (struct link){ .fd = fd };
	buf_init(&l->in, (size_t)PMIX_MSG_BYTES_MAX + READ_BYTES);
	buf_init(&l->out, (size_t)PMIX_MSG_BYTES_MAX * 2);
}

void link_free(struct link *l)
{
	buf_free(&l->in);
	buf_free(&l->out);
}

int link_read(struct link *l)
{
	ssize_t n;
	int rc;

	buf_consume(&l->in, l->taken);
	l->taken = 0;
	rc = buf_reserve(&l->in, READ_BYTES);
	if (rc)
		return rc;
	n = recv(l->fd, l->in.data + l->in.len, READ_BYTES, MSG_DONTWAIT);
	if (n > 0)
		l->in.len += (size_t)n;
	else if (!n)
		return -EPIPE;
	else if (errno != EAGAIN && errno != EINTR)
		return -errno;
	return 0;
}

int link_next(struct link *l, struct pmix_msg *m)
{
	int64_t n = pmix_msg_unpack(m, l->in.data + l->taken, l->in.len - l->taken);

	if (n > 0)
		l->taken += (size_t)n;
	return n > 0 ? 1 : (int)n;
}

int link_send(struct link *l, const struct pmix_msg *m)
{
	return pmix_msg_pack(&l->out, m);
}

bool link_has_to_write(const struct link *l)
{
	return l->sent < l->out.len;
}

int link_write(struct link *l)
{
	while (link_has_to_write(l)) {
		ssize_t n = send(l->fd, l->out.data + l->sent,
				 l->out.len - l->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		l->sent += (size_t)n;
	}
	buf_clear(&l->out);
	l->sent = 0;
	return 0;
}
