/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: a stream, the handshake on it, then frames. */
#include "libio/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/stream.h"
#include "libio/tcp.h"

struct link {
	struct stream *stream;
	struct handshake *handshake;
	bool proved;
	bool ended;
	bool closed;
	uv_timer_t deadline; /* of the handshake's next message */
	uint32_t handshake_ms;
	struct link_ops ops;
	void *arg;
	struct frame_reader reader;
};

static void end(struct link *l, int error)
{
	if (l->ended || l->closed)
		return;
	l->ended = true;
	uv_timer_stop(&l->deadline);
	l->ops.end(l->arg, l, error);
}

/* ---- the stream's callbacks ---- */

static size_t on_room(void *arg, void **at)
{
	struct link *l = arg;

	return l->proved ? frame_reader_room(&l->reader, at) :
			   handshake_room(l->handshake, at);
}

static void on_deadline(uv_timer_t *timer);

/* From now: the loop may have been busy since it last looked at the clock. */
static void start_deadline(struct link *l)
{
	uv_update_time(l->deadline.loop);
	uv_timer_start(&l->deadline, on_deadline, l->handshake_ms, 0);
}

/* The other side is next, and has its own time limit for that. */
static int send_handshake(struct link *l)
{
	struct buf *out = handshake_output(l->handshake);
	int rc;

	if (!out->len)
		return 0;
	start_deadline(l);
	rc = stream_write(l->stream, out->data, out->len, NULL);
	buf_clear(out);
	return rc;
}

static void handshake_step(struct link *l, size_t n)
{
	enum handshake_state state = handshake_input(l->handshake, n);
	int rc = send_handshake(l);

	if (state == HANDSHAKE_FAILED)
		end(l, handshake_error(l->handshake));
	else if (rc)
		end(l, rc);
	if (state != HANDSHAKE_PROVED || l->ended)
		return;
	l->proved = true;
	uv_timer_stop(&l->deadline);
	l->ops.proved(l->arg, l);
}

static int on_frame(void *arg, enum frame_type type, struct payload *body)
{
	struct link *l = arg;
	int rc = l->ops.frame(l->arg, l, type, body);

	return l->closed ? -ECANCELED : rc;
}

static int on_message(void *arg, const void *head, size_t head_len,
		      struct payload *body)
{
	struct link *l = arg;
	int rc = -EPROTO;

	if (l->ops.message)
		rc = l->ops.message(l->arg, l, head, head_len, body);
	return l->closed ? -ECANCELED : rc;
}

static struct payload *on_body_room(void *arg, const void *head,
				    size_t head_len, size_t len)
{
	struct link *l = arg;

	return l->ops.room ? l->ops.room(l->arg, l, head, head_len, len) : NULL;
}

static void on_input(void *arg, size_t n)
{
	static const struct frame_ops ops = {
		.frame = on_frame,
		.message = on_message,
		.room = on_body_room,
	};
	struct link *l = arg;
	int rc;

	if (l->ended || l->closed)
		return;
	if (!l->proved) {
		handshake_step(l, n);
		return;
	}
	rc = frame_reader_input(&l->reader, n, &ops, l);
	if (rc)
		end(l, rc);
}

static void on_end(void *arg, int error)
{
	struct link *l = arg;

	end(l, error || l->proved ? error : -ECONNRESET);
}

static void on_drained(void *arg)
{
	struct link *l = arg;

	if (l->ops.drained && !l->ended)
		l->ops.drained(l->arg, l);
}

/* Bytes that came in time count, even if this process could not run to read them. */
static void on_deadline(uv_timer_t *timer)
{
	struct link *l = timer->data;

	stream_read_now(l->stream, HANDSHAKE_MESSAGE_MAX);
	if (!l->proved && !uv_is_active((uv_handle_t *)timer))
		end(l, -ETIMEDOUT);
}

/* ---- beginning ---- */

/* Takes over fd and handshake, also on failure. */
static int create(struct link **out, uv_loop_t *loop, int fd,
		  struct handshake *handshake,
		  const struct link_options *options,
		  const struct link_ops *ops, void *arg)
{
	static const struct stream_ops stream_ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
		.drained = on_drained,
	};
	/* Pausing for output could make two neighbours wait for each other. */
	static const struct stream_limits limits = {
		.queue = LINK_QUEUE_MAX,
		.pause = LINK_QUEUE_MAX,
	};
	struct link *l = malloc(sizeof(*l));
	int rc;

	if (!l) {
		close(fd);
		handshake_destroy(handshake);
		return -ENOMEM;
	}
	memset(l, 0, offsetof(struct link, reader));
	frame_reader_init(&l->reader);
	l->reader.budget = options->budget;
	l->handshake = handshake;
	l->ops = *ops;
	l->arg = arg;
	tcp_send_at_once(fd);
	if (options->dead_peer_ms)
		tcp_end_without_answer(fd, options->dead_peer_ms);
	rc = stream_open(&l->stream, loop, fd, &limits, &stream_ops, l);
	if (rc) {
		handshake_destroy(handshake);
		free(l);
		return rc;
	}
	uv_timer_init(loop, &l->deadline);
	l->deadline.data = l;
	l->handshake_ms = options->handshake_ms;
	start_deadline(l);
	send_handshake(l); /* a failure is told by the loop */
	*out = l;
	return 0;
}

static socklen_t address_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(struct sockaddr_in6);
}

/* A connecting socket and the address it has chosen. */
static int begin_connect(const struct sockaddr_storage *to,
			 struct sockaddr_storage *local)
{
	socklen_t len = sizeof(*local);
	int rc, fd = socket(to->ss_family,
			    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	do {
		rc = connect(fd, (const struct sockaddr *)to, address_len(to));
	} while (rc < 0 && errno == EINTR);
	if (rc < 0 && errno != EINPROGRESS && errno != EALREADY &&
	    errno != EISCONN) /* the last two: after an interruption */
		goto fail;
	if (getsockname(fd, (struct sockaddr *)local, &len) < 0)
		goto fail;
	return fd;

fail:
	rc = -errno;
	close(fd);
	return rc;
}

int link_connect(struct link **out, uv_loop_t *loop,
		 const struct handshake_self *self, uint32_t to,
		 const struct sockaddr_storage *addr,
		 const struct link_options *options,
		 const struct link_ops *ops, void *arg)
{
	struct sockaddr_storage local = { 0 };
	struct handshake *handshake;
	int rc, fd = begin_connect(addr, &local);

	if (fd < 0)
		return fd;
	rc = handshake_connect(&handshake, self, to, &local, addr);
	if (rc) {
		close(fd);
		return rc;
	}
	return create(out, loop, fd, handshake, options, ops, arg);
}

int link_accept(struct link **out, uv_loop_t *loop,
		const struct handshake_self *self, int fd,
		const struct link_options *options,
		const struct link_ops *ops, void *arg)
{
	struct sockaddr_storage local = { 0 }, remote = { 0 };
	socklen_t local_len = sizeof(local), remote_len = sizeof(remote);
	struct handshake *handshake;
	int rc = 0;

	if (getsockname(fd, (struct sockaddr *)&local, &local_len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&remote, &remote_len) < 0)
		rc = -errno;
	rc = rc ? rc : handshake_accept(&handshake, self, &local, &remote);
	if (rc) {
		close(fd);
		return rc;
	}
	return create(out, loop, fd, handshake, options, ops, arg);
}

/* ---- use ---- */

const struct handshake_peer *link_peer(const struct link *l)
{
	return handshake_peer(l->handshake);
}

void link_hand_over(struct link *l, const struct link_ops *ops, void *arg)
{
	l->ops = *ops;
	l->arg = arg;
}

const uint8_t *link_source(const struct link *l)
{
	return handshake_source(l->handshake);
}

int link_fd(const struct link *l)
{
	return stream_fd(l->stream);
}

bool link_is_proved(const struct link *l)
{
	return l->proved;
}

int link_send_front(struct link *l, struct payload *front,
		    const struct payload_vec *body)
{
	if (!l->proved)
		return -ENOTCONN;
	if (body && body->bytes > FRAME_BODY_MAX)
		return -EMSGSIZE;
	return stream_write_vec(l->stream, front, body);
}

int link_send(struct link *l, enum frame_type type,
	      const struct payload_vec *body)
{
	struct payload *front = frame_header(type, NULL, 0,
					     body ? body->bytes : 0);
	int rc = front ? link_send_front(l, front, body) : -ENOMEM;

	payload_unref(front);
	return rc;
}

int link_send_bytes(struct link *l, enum frame_type type, const void *data,
		    size_t len)
{
	struct payload *p = payload_copy_in(l->reader.budget, data, len);
	struct payload_vec body;
	int rc;

	payload_vec_init(&body);
	rc = p ? payload_vec_add(&body, p) : -ENOMEM;
	rc = rc ? rc : link_send(l, type, &body);
	payload_vec_clear(&body);
	payload_unref(p);
	return rc;
}

size_t link_queued(const struct link *l)
{
	return stream_queued(l->stream);
}

void link_shutdown(struct link *l)
{
	stream_shutdown(l->stream);
}

void link_finish(struct link *l)
{
	stream_finish(l->stream);
}

static void on_closed(uv_handle_t *handle)
{
	struct link *l = handle->data;

	handshake_destroy(l->handshake);
	frame_reader_free(&l->reader);
	free(l);
}

void link_close(struct link *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	stream_close(l->stream);
	uv_close((uv_handle_t *)&l->deadline, on_closed);
}

const char *link_strerror(int error)
{
	switch (error) {
	case 0:
		return "the peer closed the connection";
	case -EPROTO:
	case -EMSGSIZE:
		return "the peer does not use pmi2x's protocol";
	case -EACCES:
		return "the peer does not belong to this step";
	case -EADDRNOTAVAIL:
		return "another node or step answers there";
	case -EPROTONOSUPPORT:
	case -ENOPROTOOPT:
		return "another version of pmi2x is installed there";
	case -ETIMEDOUT:
		return "no answer";
	default:
		return strerror(-error);
	}
}
