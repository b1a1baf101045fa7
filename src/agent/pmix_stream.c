/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes whole messages of pmi2x-pmixd out of a stream. */
#include "agent/pmix_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/stream.h"
#include "libpmi/pmix_frame.h"
#include "libpmi/pmix_msg.h"

#define QUEUE_MAX ((size_t)2 * PMIX_MSG_BYTES_MAX) /* bytes that have not been read */
#define PAUSE_BYTES ((size_t)64 << 20) /* of output: with more, the sender here waits */

struct pmix_stream {
	struct pmix_stream_ops ops;
	void *arg;
	struct pmix_frame frame;
	struct stream *stream; /* NULL: it has ended */
};

static void end_stream(struct pmix_stream *s)
{
	stream_close(s->stream);
	s->stream = NULL;
	pmix_frame_free(&s->frame);
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

	return pmix_frame_room(&s->frame, at);
}

/* Until a message closes the stream. */
static int take_messages(struct pmix_stream *s)
{
	struct payload *message;
	int rc = 0;

	while (!rc && s->stream && (rc = pmix_frame_next(&s->frame, &message)) > 0) {
		rc = s->ops.message(s->arg, message);
		payload_unref(message);
	}
	return rc;
}

static void on_input(void *arg, size_t n)
{
	struct pmix_stream *s = arg;
	int rc;

	pmix_frame_filled(&s->frame, n);
	rc = take_messages(s);
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
	pmix_frame_init(&s->frame, budget);
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
