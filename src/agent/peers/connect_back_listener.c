/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of slurmd, each of which brings one message of another node. */
#include "agent/peers/connect_back_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/peers/connect_back.h"
#include "libio/listener.h"
#include "libio/stream.h"

#define HEADER_BYTES 8 /* u32 uid, u32 length, in network order */
#define CALLERS_MAX 16

struct caller {
	struct caller *prev, *next;
	struct connect_back_listener *listener;
	struct stream *stream;
	uv_timer_t limit;
	size_t have;
	unsigned char in[HEADER_BYTES + CONNECT_BACK_MAX];
};

struct connect_back_listener {
	const struct node *node;
	struct listener *listener;
	struct refusals *refused;
	struct caller *callers;
	unsigned count;
	connect_back_fn message;
	void *arg;
};

static void on_limit_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void drop(struct caller *c)
{
	DL_DELETE(c->listener->callers, c);
	c->listener->count--;
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
	const struct connect_back_listener *l = c->listener;
	uint32_t uid, len;

	c->have += n;
	if (c->have < HEADER_BYTES)
		return;
	memcpy(&uid, c->in, 4);
	memcpy(&len, c->in + 4, 4);
	len = ntohl(len);
	if (!refusals_user_counts(ntohl(uid), l->node->options->connect_back_uid) ||
	    len > CONNECT_BACK_MAX) {
		drop(c);
		return;
	}
	if (c->have < HEADER_BYTES + len)
		return;
	l->message(l->arg, c->in + HEADER_BYTES, len);
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

	return stream_open(&c->stream, loop_uv(c->listener->node->loop), fd,
			   &limits, &ops, c);
}

static void on_accept(void *arg, int fd)
{
	struct connect_back_listener *l = arg;
	struct caller *c = NULL;

	if (refusals_let_in(l->refused, fd, l->node->options->connect_back_uid,
			    "this socket") &&
	    l->count < CALLERS_MAX)
		c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->listener = l;
	if (open_caller(c, fd)) {
		free(c);
		return;
	}
	uv_timer_init(loop_uv(l->node->loop), &c->limit);
	c->limit.data = c;
	uv_timer_start(&c->limit, on_limit, l->node->options->handshake_ms, 0);
	DL_APPEND(l->callers, c);
	l->count++;
}

int connect_back_listener_open(struct connect_back_listener **out, const struct node *node,
			       int fd, struct refusals *refused, connect_back_fn message,
			       void *arg)
{
	struct connect_back_listener *l = calloc(1, sizeof(*l));
	int rc;

	*out = l;
	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	l->node = node;
	l->refused = refused;
	l->message = message;
	l->arg = arg;
	rc = listener_open(&l->listener, loop_uv(node->loop), fd, on_accept, l);
	if (rc) {
		*out = NULL;
		free(l);
	}
	return rc;
}

void connect_back_listener_close(struct connect_back_listener *l)
{
	if (!l)
		return;
	listener_close(l->listener);
	while (l->callers)
		drop(l->callers);
	free(l);
}
