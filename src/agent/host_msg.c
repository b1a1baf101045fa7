/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between an agent and the process that has started it. */
#include "agent/host_msg.h"

#include <errno.h>
#include <sys/socket.h>

#include "libutil/pack.h"

int host_msg_pack(struct buf *b, const struct host_msg *m)
{
	int rc = m->len > HOST_DATA_MAX ? -EMSGSIZE : pack_u8(b, m->type);

	rc = rc ? rc : pack_u32(b, m->number);
	rc = rc ? rc : pack_u32(b, (uint32_t)m->code);
	return rc ? rc : pack_bytes(b, m->data, m->len);
}

int host_msg_unpack(struct host_msg *m, const void *data, size_t len)
{
	struct cursor c;

	cursor_init(&c, data, len);
	m->type = unpack_u8(&c);
	m->number = unpack_u32(&c);
	m->code = (int32_t)unpack_u32(&c);
	m->data = unpack_bytes(&c, HOST_DATA_MAX, &m->len);
	if (!cursor_done(&c) || m->type < HOST_READY || m->type >= HOST_TYPES)
		return -EPROTO;
	return 0;
}

int host_msg_send(int fd, const struct host_msg *m)
{
	char room[HOST_MSG_MAX];
	struct buf b;
	ssize_t n;
	int rc;

	buf_init_in(&b, room, sizeof(room));
	rc = host_msg_pack(&b, m);
	if (rc)
		return rc;
	do {
		n = send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}
