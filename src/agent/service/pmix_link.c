/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream to who serves the node's PMIx clients. Its messages go to the engine
 * whole, each in memory of its own, of which the engine keeps what it needs.
 */
#include "agent/service/pmix_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/stream.h"
#include "libpmi/pmix_msg.h"

#define FIRST_GROWTH 262144 /* bytes of a message that memory is first taken for */
#define QUEUE_MAX ((size_t)2 * PMIX_MSG_BYTES_MAX) /* bytes that have not been read */
#define PAUSE_BYTES ((size_t)64 << 20) /* then what is sent here waits */

struct pmix_link {
	struct stream *stream;   /* NULL: it has ended */
	struct payload *message; /* that comes; NULL: its length does */
	size_t size;             /* bytes it will have, its length among them */
	size_t filled;           /* bytes that have come, of either */
	unsigned char length[PMIX_MSG_LENGTH_BYTES];
};

static void close_stream(struct pmix_link *l)
{
	stream_close(l->stream);
	l->stream = NULL;
	payload_unref(l->message);
	l->message = NULL;
}

/* What became of it is told by whoever has started it. */
static void lose(struct service *s, const char *how)
{
	char why[NODE_WHY_MAX];

	close_stream(s->pmix);
	snprintf(why, sizeof(why), "PMIx server of node %.64s %s",
		 node_own_name(s->node), how);
	log_debug(s->node->log, "%s", why);
	pmi_server_pmix_lost(s->server, why);
}

/* ---- reading ---- */

static size_t on_room(void *arg, void **at)
{
	struct service *s = arg;
	struct pmix_link *l = s->pmix;

	*at = (l->message ? l->message->data : l->length) + l->filled;
	return (l->message ? l->message->len : sizeof(l->length)) - l->filled;
}

static int begin_message(struct service *s)
{
	struct pmix_link *l = s->pmix;
	int64_t size = pmix_msg_size(l->length);

	if (size < 0)
		return (int)size;
	l->size = (size_t)size;
	l->message = payload_new_in(s->step->budget, l->size < FIRST_GROWTH ?
						     l->size : FIRST_GROWTH);
	if (!l->message)
		return -ENOMEM;
	memcpy(l->message->data, l->length, sizeof(l->length));
	return 0;
}

/* By as much again: what has come is not less than half of what is held. */
static int grow_message(struct pmix_link *l)
{
	size_t len = l->size - l->filled > l->filled ? 2 * l->filled : l->size;
	struct payload *grown = payload_resize(l->message, len);

	if (!grown)
		return -ENOMEM;
	l->message = grown;
	return 0;
}

static int end_message(struct service *s)
{
	struct pmix_link *l = s->pmix;
	struct payload *message = l->message;
	int rc;

	l->message = NULL;
	l->filled = 0;
	rc = pmi_server_pmix_input(s->server, message);
	payload_unref(message);
	return rc;
}

static void on_input(void *arg, size_t n)
{
	struct service *s = arg;
	struct pmix_link *l = s->pmix;
	int rc = 0;

	l->filled += n;
	if (!l->message && l->filled == sizeof(l->length))
		rc = begin_message(s);
	else if (l->message && l->filled == l->size)
		rc = end_message(s);
	else if (l->message && l->filled == l->message->len)
		rc = grow_message(l);
	if (rc)
		lose(s, rc == -ENOMEM ?
		     "is left: no memory for what it sends" :
		     "is left: it has sent what is no message of its protocol");
}

static void on_end(void *arg, int error)
{
	lose(arg, error == -ENOBUFS ? "is left: it does not read" : "died");
}

/* ---- writing ---- */

void pmix_link_send(void *service, const void *head, size_t len,
		    struct payload *data)
{
	struct service *s = service;
	struct payload *front = payload_copy(head, len);
	struct payload_vec body;

	payload_vec_init(&body);
	if (!s->pmix->stream)
		; /* the engine will be told, or the agent ends */
	else if (front && (!data || !payload_vec_add(&body, data)))
		stream_write_vec(s->pmix->stream, front, &body);
	else /* one is missing */
		stream_finish(s->pmix->stream);
	payload_vec_clear(&body);
	payload_unref(front);
}

/* ---- life ---- */

int pmix_link_open(struct service *s)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = {
		.queue = QUEUE_MAX,
		.pause = PAUSE_BYTES,
	};
	int rc, fd = s->pmix_fd;

	if (fd < 0)
		return 0;
	s->pmix = calloc(1, sizeof(*s->pmix));
	if (!s->pmix)
		return -ENOMEM;
	s->pmix_fd = -1;
	rc = stream_open(&s->pmix->stream, loop_uv(s->node->loop), fd, &limits,
			 &ops, s);
	if (!rc)
		pmi_server_use_pmix(s->server, getuid(), getgid());
	return rc;
}

void pmix_link_close(struct service *s)
{
	if (s->pmix)
		close_stream(s->pmix);
}

void pmix_link_free(struct service *s)
{
	free(s->pmix);
}
