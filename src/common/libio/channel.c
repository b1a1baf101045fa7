/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages between an srun and one that it has started. */
#include "libio/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libio/frames.h"
#include "libio/stream.h"

#define READ_NOW_MAX ((size_t)1 << 20)

struct channel {
	struct stream *stream;
	struct channel_ops ops;
	void *arg;
	struct frame_reader reader;
};

static size_t on_room(void *arg, void **at)
{
	struct channel *c = arg;

	return frame_reader_room(&c->reader, at);
}

static int on_frame(void *arg, enum frame_type type, struct payload *body)
{
	struct channel *c = arg;

	if (type != FRAME_CONTROL_UP)
		return -EPROTO;
	return c->ops.message(c->arg, body->data, body->len);
}

static void on_input(void *arg, size_t len)
{
	struct channel *c = arg;
	static const struct frame_ops ops = { .frame = on_frame };
	int rc = frame_reader_input(&c->reader, len, &ops, c);

	if (rc)
		c->ops.end(c->arg, rc);
}

static void on_end(void *arg, int error)
{
	struct channel *c = arg;

	c->ops.end(c->arg, error);
}

int channel_open(struct channel **out, uv_loop_t *loop, int fd,
		 const struct channel_ops *ops, void *arg)
{
	static const struct stream_ops stream_ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = {
		.queue = CHANNEL_QUEUE_MAX,
		.pause = CHANNEL_QUEUE_MAX / 2,
	};
	struct channel *c = malloc(sizeof(*c));
	int rc;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	frame_reader_init(&c->reader);
	c->ops = *ops;
	c->arg = arg;
	rc = stream_open(&c->stream, loop, fd, &limits, &stream_ops, c);
	if (rc) {
		free(c);
		return rc;
	}
	*out = c;
	return 0;
}

int channel_send(struct channel *c, const void *data, size_t len)
{
	struct payload *header = frame_header(FRAME_CONTROL_UP, NULL, 0, len);
	struct payload *body = payload_copy(data, len);
	struct payload_vec frame;
	int rc = header && body ? 0 : -ENOMEM;

	payload_vec_init(&frame);
	rc = rc ? rc : payload_vec_add(&frame, body);
	rc = rc ? rc : stream_write_vec(c->stream, header, &frame);
	payload_vec_clear(&frame);
	payload_unref(header);
	payload_unref(body);
	return rc;
}

int channel_send_fds(struct channel *c, const void *data, size_t len,
		     const struct passed_fds *fds)
{
	struct payload *frame = frame_whole(FRAME_CONTROL_UP, data, len);
	int rc = frame ? stream_write(c->stream, frame->data, frame->len, fds) : -ENOMEM;

	payload_unref(frame);
	return rc;
}

int channel_fd(const struct channel *c)
{
	return stream_fd(c->stream);
}

void channel_shutdown(struct channel *c)
{
	stream_shutdown(c->stream);
}

void channel_read_now(struct channel *c)
{
	stream_read_now(c->stream, READ_NOW_MAX);
}

void channel_close(struct channel *c)
{
	if (!c)
		return;
	stream_close(c->stream);
	frame_reader_free(&c->reader);
	free(c);
}
