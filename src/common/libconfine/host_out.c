/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps messages for which a socket has no room. */
#include "libconfine/host_out.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct host_kept {
	struct host_kept *next;
	struct host_msg message;
	char data[];
};

static int keep(struct host_out *o, const struct host_msg *m)
{
	struct host_kept *k;

	if (m->len > HOST_DATA_MAX)
		return -EMSGSIZE;
	if (o->count >= HOST_OUT_MAX)
		return -ENOBUFS;
	k = malloc(sizeof(*k) + m->len);
	if (!k)
		return -ENOMEM;
	k->next = NULL;
	k->message = *m;
	k->message.data = k->data;
	if (m->len)
		memcpy(k->data, m->data, m->len);
	if (o->last)
		o->last->next = k;
	else
		o->first = k;
	o->last = k;
	o->count++;
	return 0;
}

static void drop_first(struct host_out *o)
{
	struct host_kept *k = o->first;

	o->first = k->next;
	if (!o->first)
		o->last = NULL;
	o->count--;
	free(k);
}

int host_out_send(struct host_out *o, int fd, const struct host_msg *m)
{
	int rc = o->count ? -EAGAIN : host_msg_send(fd, m);

	return rc == -EAGAIN ? keep(o, m) : rc;
}

int host_out_flush(struct host_out *o, int fd)
{
	int rc = 0;

	while (!rc && o->count) {
		rc = host_msg_send(fd, &o->first->message);
		if (!rc)
			drop_first(o);
	}
	return rc == -EAGAIN ? 0 : rc;
}

int host_out_drain(struct host_out *o, int fd)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	int rc = host_out_flush(o, fd);

	while (!rc && o->count) {
		(void)poll(&room, 1, -1);
		rc = host_out_flush(o, fd);
	}
	return rc;
}

void host_out_free(struct host_out *o)
{
	while (o->count)
		drop_first(o);
}
