/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of slurmd, each of which brings one message of another node. */
#include "agent/peers/doorbell.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/peers/connect_back.h"
#include "libio/listener.h"
#include "libio/stream.h"

#define DOORBELL_HEADER_BYTES 8 /* u32 uid, u32 length, in network order */
#define DOORBELL_CALLERS_MAX 16

struct caller {
	struct caller *prev, *next;
	struct doorbell *doorbell;
	struct stream *stream;
	uv_timer_t limit;
	size_t have;
	unsigned char in[DOORBELL_HEADER_BYTES + CONNECT_BACK_MAX];
};

struct doorbell {
	const struct node *node;
	struct listener *listener;
	struct refusals *refused;
	struct caller *callers;
	unsigned count;
	doorbell_fn message;
	void *arg;
};

static void on_limit_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void drop(struct caller *c)
{
	DL_DELETE(c->doorbell->callers, c);
	c->doorbell->count--;
	stream_close(c->stream);
	uv_close((uv_handle_t *)&c->limit, on_limit_closed);
}

static void on_limit(uv_timer_t *timer)
{
	drop(timer->data);
}

static size_t on_room(void *arg, void **at)
{
	struct caller *c = arg;

	*at = c->in + c->have;
	return sizeof(c->in) - c->have;
}

static void on_input(void *arg, size_t n)
{
	struct caller *c = arg;
	const struct doorbell *d = c->doorbell;
	uint32_t uid, len;

	c->have += n;
	if (c->have < DOORBELL_HEADER_BYTES)
		return;
	memcpy(&uid, c->in, 4);
	memcpy(&len, c->in + 4, 4);
	len = ntohl(len);
	if (!refusals_user_counts(ntohl(uid), d->node->options->connect_back_uid) ||
	    len > CONNECT_BACK_MAX) {
		drop(c);
		return;
	}
	if (c->have < DOORBELL_HEADER_BYTES + len)
		return;
	d->message(d->arg, c->in + DOORBELL_HEADER_BYTES, len);
	drop(c);
}

static void on_end(void *arg, int error)
{
	drop(arg);
}

static int open_caller(struct caller *c, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = { 0 };

	return stream_open(&c->stream, loop_uv(c->doorbell->node->loop), fd,
			   &limits, &ops, c);
}

static void on_accept(void *arg, int fd)
{
	struct doorbell *d = arg;
	struct caller *c = NULL;

	if (refusals_let_in(d->refused, fd, d->node->options->connect_back_uid,
			    "this socket") &&
	    d->count < DOORBELL_CALLERS_MAX)
		c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->doorbell = d;
	if (open_caller(c, fd)) {
		free(c);
		return;
	}
	uv_timer_init(loop_uv(d->node->loop), &c->limit);
	c->limit.data = c;
	uv_timer_start(&c->limit, on_limit, d->node->options->handshake_ms, 0);
	DL_APPEND(d->callers, c);
	d->count++;
}

int doorbell_open(struct doorbell **out, const struct node *node, int fd,
		  struct refusals *refused, doorbell_fn message, void *arg)
{
	struct doorbell *d = calloc(1, sizeof(*d));
	int rc;

	*out = d;
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	d->node = node;
	d->refused = refused;
	d->message = message;
	d->arg = arg;
	rc = listener_open(&d->listener, loop_uv(node->loop), fd, on_accept, d);
	if (rc) {
		*out = NULL;
		free(d);
	}
	return rc;
}

void doorbell_close(struct doorbell *d)
{
	if (!d)
		return;
	listener_close(d->listener);
	while (d->callers)
		drop(d->callers);
	free(d);
}
