/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of the head: lines of JSON over a unix socket of the user's, or by links from
 * other nodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "dvm/common/rundir.h"
#include "dvm/head/head_main.h"
#include "libio/peer.h"
#include "libio/stream.h"
#include "libutil/decimal.h"

#define UNREAD_MAX ((size_t)256 << 20) /* bytes that wait until a client reads them; a
                                          request has at most half of that */
#define CLOSED_MAX 256                  /* bytes of the last line for a client */
#define READ_BYTES 4096 /* at least; more as lines are longer */
#define BACKLOG 128

struct client {
	struct head_main *head;
	uint32_t number;
	struct stream *stream; /* NULL: none, and */
	struct link *link;     /* its owner's: that of a client on another node */
	pid_t process;         /* of the one here; else 0 */
	struct buf in;   /* a line that has not ended */
	size_t searched; /* bytes of it in which there is no newline */
	bool closing;    /* its reason was sent: nothing more is */
	bool taking;     /* lines of it are being taken: their answers are gathered */
	struct buf held; /* the gathered answers */
	UT_hash_handle hh;
};

/* ---- sending ---- */

/* In a test it is less. */
static size_t unread_max(void)
{
	static uint32_t bytes;
	const char *text;

	if (bytes)
		return bytes;
	text = getenv("PMI2X_DVM_UNREAD");
	bytes = UNREAD_MAX;
	if (text)
		(void)decimal_u32(text, 1, UNREAD_MAX, &bytes);
	return bytes;
}

static size_t queued(const struct client *c)
{
	return c->stream ? stream_queued(c->stream) : link_queued(c->link);
}

/* A stream that fails ends by itself. */
static void put(struct client *c, const void *data, size_t len)
{
	if (c->stream)
		(void)stream_write(c->stream, data, len, NULL);
	else
		(void)link_send_bytes(c->link, FRAME_CONTROL_DOWN, data, len);
}

static void finish(struct client *c)
{
	if (c->stream)
		stream_finish(c->stream);
	else
		link_finish(c->link);
}

/* Says why behind what waits to be read, and ends the connection. */
__attribute__((format(printf, 2, 3)))
static void break_off(struct client *c, const char *fmt, ...)
{
	char why[CLOSED_MAX / 2], line[CLOSED_MAX];
	va_list ap;

	if (c->closing)
		return;
	c->closing = true;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	put(c, line, (size_t)snprintf(line, sizeof(line),
		"{\"ev\":\"closed\",\"why\":\"the head closed this connection: %s\"}\n", why));
	buf_free(&c->held);
	finish(c);
}

static void send_now(struct client *c, const void *data, size_t len)
{
	if (c->closing)
		return;
	if (queued(c) + len > unread_max())
		break_off(c, "it did not read its output and results (%zu bytes were waiting)",
			  queued(c));
	else
		put(c, data, len);
}

static void send_held(struct client *c)
{
	if (!c->held.len)
		return;
	send_now(c, c->held.data, c->held.len);
	buf_free(&c->held);
}

/* ---- here ---- */

void clients_leave(struct client *c)
{
	struct head_main *h = c->head;

	HASH_DEL(h->clients, c);
	dvm_head_client_closed(h->head, c->number, head_now(h));
	stream_close(c->stream);
	buf_free(&c->in);
	buf_free(&c->held);
	free(c);
	stop_without_clients(h);
	h->hooks->check_left(h);
}

static size_t on_room(void *arg, void **at)
{
	struct client *c = arg;

	if (buf_reserve(&c->in, READ_BYTES))
		return 0;
	*at = c->in.data + c->in.len;
	return buf_room(&c->in);
}

static void take_lines(struct client *c)
{
	size_t begin = 0;
	char *end;

	c->taking = true;
	while ((end = memchr(c->in.data + c->searched, '\n',
			     c->in.len - c->searched))) {
		size_t at = (size_t)(end - c->in.data);

		dvm_json_request(c->head->head, c->number,
				      c->in.data + begin, at - begin,
				      head_now(c->head));
		begin = c->searched = at + 1;
	}
	buf_consume(&c->in, begin);
	c->searched = c->in.len;
	c->taking = false;
	send_held(c);
	if (c->in.len > unread_max() / 2)
		break_off(c, "a request has more than %zu MiB", unread_max() / 2 >> 20);
}

static void on_input(void *arg, size_t len)
{
	struct client *c = arg;

	c->in.len += len;
	take_lines(c);
}

static void on_end(void *arg, int error)
{
	clients_leave(arg);
}

static bool is_ours(int fd, pid_t *process)
{
	struct ucred who;

	if (peer_credentials(fd, &who))
		return false;
	*process = who.pid;
	return who.uid == getuid() || who.uid == 0;
}

static struct client *client_new(struct head_main *h)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->head = h;
	c->number = ++h->next_client;
	HASH_ADD(hh, h->clients, number, sizeof(c->number), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	buf_init(&c->in, UNREAD_MAX);
	buf_init(&c->held, UNREAD_MAX);
	return c;
}

static void on_accept(void *arg, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room, .input = on_input, .end = on_end,
	};
	const struct stream_limits limits = {
		.queue = unread_max() + CLOSED_MAX, .pause = unread_max() / 4,
	};
	struct head_main *h = arg;
	pid_t process;
	struct client *c = is_ours(fd, &process) ? client_new(h) : NULL;

	if (!c) {
		close(fd);
		return;
	}
	c->process = process;
	if (stream_open(&c->stream, loop_uv(h->loop), fd, &limits, &ops, c)) {
		HASH_DEL(h->clients, c);
		free(c);
		return;
	}
	dvm_head_client_opened(h->head, c->number);
}

/* ---- on other nodes ---- */

struct client *clients_join(struct head_main *h, struct link *l)
{
	struct client *c = client_new(h);

	if (!c)
		return NULL;
	c->link = l;
	dvm_head_client_opened(h->head, c->number);
	return c;
}

int clients_input(struct client *c, const void *data, size_t len)
{
	int rc = buf_append(&c->in, data, len);

	if (!rc)
		take_lines(c);
	return rc;
}

void clients_send(void *head, uint32_t client, const char *line, size_t len)
{
	struct head_main *h = head;
	struct client *c;

	HASH_FIND(hh, h->clients, &client, sizeof(client), c);
	if (!c)
		return;
	if (!c->taking)
		send_now(c, line, len);
	else if (!c->closing && buf_append(&c->held, line, len))
		break_off(c, "there is no memory for an answer");
}

size_t clients_unread(void *head, uint32_t client)
{
	const struct head_main *h = head;
	const struct client *c;

	HASH_FIND(hh, h->clients, &client, sizeof(client), c);
	if (!c)
		return 0;
	return c->held.len + queued(c);
}

void clients_name(void *head, uint32_t client, char *out, size_t size)
{
	const struct head_main *h = head;
	const struct client *c;

	HASH_FIND(hh, h->clients, &client, sizeof(client), c);
	if (c && c->process)
		snprintf(out, size, "process %d", (int)c->process);
	else
		snprintf(out, size, "a client on another node");
}

void clients_break(void *head, uint32_t client)
{
	struct head_main *h = head;
	struct client *c;

	HASH_FIND(hh, h->clients, &client, sizeof(client), c);
	if (c)
		break_off(c, "there is no memory for all that it has to read");
}

int clients_open(struct head_main *h)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, rc;

	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/" HEADD_SOCKET,
			     h->options.dir) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	unlink(a.sun_path); /* of a head that was killed */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    chmod(a.sun_path, 0600) < 0 || listen(fd, BACKLOG) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return listener_open(&h->clients_listener, loop_uv(h->loop), fd,
			     on_accept, h);
}

void clients_refuse(struct head_main *h)
{
	char path[PATH_MAX];

	listener_close(h->clients_listener);
	h->clients_listener = NULL;
	address_withdraw(h);
	snprintf(path, sizeof(path), "%s/" HEADD_SOCKET, h->options.dir);
	unlink(path);
}

/*
 * A client that waits for the end sees it when this process ends: this process keeps a
 * copy of the socket.
 */
static void finish_stream(struct stream *s)
{
	(void)fcntl(stream_fd(s), F_DUPFD_CLOEXEC, 0);
	stream_finish(s);
}

void clients_close(struct head_main *h)
{
	struct client *c, *next;

	HASH_ITER(hh, h->clients, c, next)
		if (c->stream)
			finish_stream(c->stream);
		else
			link_finish(c->link);
}
