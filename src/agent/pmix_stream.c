/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of who serves a node's PMIx clients, whole. */
#include "agent/pmix_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/stream.h"
#include "libpmi/pmix_msg.h"

#define FIRST_GROWTH 262144 /* bytes of a message that memory is first taken for */
#define QUEUE_MAX ((size_t)2 * PMIX_MSG_BYTES_MAX) /* bytes that have not been read */
#define PAUSE_BYTES ((size_t)64 << 20) /* then what is sent here waits */

struct pmix_stream {
	struct pmix_stream_ops ops;
	void *arg;
	struct budget *budget;
	struct stream *stream;   /* NULL: it has ended */
	struct payload *message; /* that comes; NULL: its length does */
	size_t size;             /* bytes it will have, its length among them */
	size_t filled;           /* bytes that have come, of either */
	unsigned char length[PMIX_MSG_LENGTH_BYTES];
};

static void end_stream(struct pmix_stream *s)
{
	stream_close(s->stream);
	s->stream = NULL;
	payload_unref(s->message);
	s->message = NULL;
}

static void lose(struct pmix_stream *s, const char *how)
{
	end_stream(s);
	s->ops.lost(s->arg, how);
}

/* ---- reading ---- */

static size_t on_room(void *arg, void **at)
{
	struct pmix_stream *s = arg;

	*at = (s->message ? s->message->data : s->length) + s->filled;
	return (s->message ? s->message->len : sizeof(s->length)) - s->filled;
}

static int begin_message(struct pmix_stream *s)
{
	int64_t size = pmix_msg_size(s->length);

	if (size < 0)
		return (int)size;
	s->size = (size_t)size;
	s->message = payload_new_in(s->budget,
				    s->size < FIRST_GROWTH ? s->size : FIRST_GROWTH);
	if (!s->message)
		return -ENOMEM;
	memcpy(s->message->data, s->length, sizeof(s->length));
	return 0;
}

/* By as much again: what has come is not less than half of what is held. */
static int grow_message(struct pmix_stream *s)
{
	size_t len = s->size - s->filled > s->filled ? 2 * s->filled : s->size;
	struct payload *grown = payload_resize(s->message, len);

	if (!grown)
		return -ENOMEM;
	s->message = grown;
	return 0;
}

static int end_message(struct pmix_stream *s)
{
	struct payload *message = s->message;
	int rc;

	s->message = NULL;
	s->filled = 0;
	rc = s->ops.message(s->arg, message);
	payload_unref(message);
	return rc;
}

static void on_input(void *arg, size_t n)
{
	struct pmix_stream *s = arg;
	int rc = 0;

	s->filled += n;
	if (!s->message && s->filled == sizeof(s->length))
		rc = begin_message(s);
	else if (s->message && s->filled == s->size)
		rc = end_message(s);
	else if (s->message && s->filled == s->message->len)
		rc = grow_message(s);
	if (rc && s->stream)
		lose(s, rc == -ENOMEM ?
		     "sent more than there is memory for; its connection is closed" :
		     "sent an invalid message; its connection is closed");
}

static void on_end(void *arg, int error)
{
	lose(arg, error == -ENOBUFS ? "does not read its messages; its connection is closed" : "died");
}

/* ---- writing ---- */

void pmix_stream_send(struct pmix_stream *s, const void *head, size_t len,
		      struct payload *data)
{
	struct payload *front = payload_copy(head, len);
	struct payload_vec body;

	payload_vec_init(&body);
	if (!s->stream)
		; /* its end has been told, or nobody hears any more */
	else if (front && (!data || !payload_vec_add(&body, data)))
		stream_write_vec(s->stream, front, &body);
	else /* one is missing */
		stream_finish(s->stream);
	payload_vec_clear(&body);
	payload_unref(front);
}

/* ---- life ---- */

int pmix_stream_open(struct pmix_stream **out, uv_loop_t *loop, int fd,
		     struct budget *budget, const struct pmix_stream_ops *ops, void *arg)
{
	static const struct stream_ops stream_ops = {
		.room = on_room, .input = on_input, .end = on_end,
	};
	static const struct stream_limits limits = {
		.queue = QUEUE_MAX, .pause = PAUSE_BYTES,
	};
	struct pmix_stream *s = calloc(1, sizeof(*s));
	int rc;

	*out = s;
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->ops = *ops;
	s->arg = arg;
	s->budget = budget;
	rc = stream_open(&s->stream, loop, fd, &limits, &stream_ops, s);
	if (!rc)
		return 0;
	free(s);
	*out = NULL;
	return rc;
}

void pmix_stream_close(struct pmix_stream *s)
{
	if (s)
		end_stream(s);
}

void pmix_stream_destroy(struct pmix_stream *s)
{
	free(s);
}
