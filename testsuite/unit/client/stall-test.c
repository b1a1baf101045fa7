/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that reads no request before its answers have been read, on a socket
 * that holds next to nothing. Whatever the threads of a client do, requests go out
 * whole and answers come in.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"

#define LIMIT_S 120      /* a client that hangs ends the test */
#define BUFFER 4096      /* bytes that the kernel holds of each direction, about */
#define VALUE_LEN 100000 /* bytes of each request and of each answer */
#define CALLS 20         /* of a thread */

struct server {
	int fd;
	pthread_t thread;
	int asked;
	int told; /* messages that want no answer */
};

static char value[VALUE_LEN + 1];

/* ---- the server: one message after the other ---- */

static bool read_all(int fd, char *to, size_t len)
{
	while (len > 0) {
		ssize_t n = read(fd, to, len);

		if (n <= 0)
			return false;
		to += n;
		len -= n;
	}
	return true;
}

static void answer(struct server *s, const struct pmi_message *m)
{
	struct pmi_writer w;
	struct buf b;
	size_t at = 0;

	buf_init(&b, REQUEST_MAX);
	pmi_write_begin(&w, &b, PMI_PROTOCOL_2, "ask-response");
	pmi_write_str(&w, "thrid", pmi_message_str(m, "thrid"));
	pmi_write_int(&w, "rc", 0);
	pmi_write_str(&w, "value", value);
	pmi_write_end(&w);
	while (at < b.len) {
		ssize_t n = send(s->fd, b.data + at, b.len - at, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		at += n;
	}
	buf_free(&b);
}

static void take(struct server *s, char *data, size_t len)
{
	struct pmi_message m;

	pmi_message_init(&m);
	if (pmi2_decode(data, len, &m) ||
	    strcmp(pmi_message_str(&m, "value"), value)) {
		fprintf(stderr, "a request came in pieces\n");
		abort();
	}
	if (!strcmp(pmi_message_cmd(&m), "ask")) {
		s->asked++;
		answer(s, &m);
	} else {
		s->told++;
	}
	pmi_message_free(&m);
}

static void *serve(void *arg)
{
	static char data[PMI2_HEADER_LEN + PMI2_BODY_MAX + 1];
	struct server *s = arg;

	while (read_all(s->fd, data, PMI2_HEADER_LEN)) {
		size_t len = atoi(data);

		if (!read_all(s->fd, data + PMI2_HEADER_LEN, len))
			break;
		data[PMI2_HEADER_LEN + len] = '\0';
		take(s, data, PMI2_HEADER_LEN + len);
	}
	return NULL;
}

static struct conn *start(struct server *s, int *fd)
{
	int fds[2], size = BUFFER;
	struct conn *c;

	memset(value, 'v', VALUE_LEN);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF,
					    &size, sizeof(size)), 0);
	*s = (struct server){ .fd = fds[0] };
	*fd = fds[1];
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	assert_int_equal(conn_open(&c, *fd), 0);
	conn_set_wire(c, PMI_PROTOCOL_2, true);
	return c;
}

static void stop(struct server *s, struct conn *c, int fd)
{
	conn_close(c);
	close(fd);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

/* ---- clients ---- */

static int ask(struct conn *c, struct call *call)
{
	call_begin(call, c, "ask", "ask-response");
	pmi_write_str(&call->writer, "value", value);
	return call_post(call);
}

static int tell(struct conn *c)
{
	struct call call;

	call_begin(&call, c, "tell", "tell-response");
	pmi_write_str(&call.writer, "value", value);
	return call_send_only(&call);
}

/* cmocka's assertions belong to the main thread: what has gone wrong. */
static int finish(struct call *call)
{
	const char *text;
	int wrong = call_wait(call) != 0;

	text = wrong ? NULL : pmi_message_str(&call->reply, "value");
	wrong |= !text || strcmp(text, value);
	call_end(call);
	return wrong;
}

TEST(one_thread_posts_before_it_waits)
{
	struct call calls[CALLS];
	struct server s;
	int fd;
	struct conn *c = start(&s, &fd);

	for (int i = 0; i < CALLS; i++)
		assert_int_equal(ask(c, &calls[i]), 0);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(finish(&calls[i]), 0);
	stop(&s, c, fd);
	assert_int_equal(s.asked, CALLS);
}

static void *ask_in_turn(void *conn)
{
	struct call call;
	long wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += ask(conn, &call) || finish(&call);
	return (void *)wrong;
}

static void *ask_at_once(void *conn)
{
	struct call calls[CALLS];
	long wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += ask(conn, &calls[i]) != 0;
	for (int i = 0; i < CALLS; i++)
		wrong += finish(&calls[i]);
	return (void *)wrong;
}

static void *tell_in_turn(void *conn)
{
	long wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += tell(conn) != 0;
	return (void *)wrong;
}

TEST(threads_wait_and_send_at_once)
{
	void *(*const work[])(void *) = { ask_in_turn, ask_at_once,
					  tell_in_turn, ask_in_turn };
	pthread_t threads[4];
	struct server s;
	int fd;
	struct conn *c = start(&s, &fd);

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work[i], c),
				 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	stop(&s, c, fd);
	assert_int_equal(s.asked, 3 * CALLS);
	assert_int_equal(s.told, CALLS);
}

/* Read the beginning of a request, and close. */
static void *read_little(void *fd)
{
	char some[100];

	if (!read_all(*(int *)fd, some, sizeof(some)))
		abort();
	close(*(int *)fd);
	return NULL;
}

TEST(a_server_that_goes_ends_a_request_that_is_sent_in_part)
{
	struct call call;
	pthread_t thread;
	struct conn *c;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF,
				    &(int){ BUFFER }, sizeof(int)), 0);
	assert_int_equal(conn_open(&c, fds[1]), 0);
	conn_set_wire(c, PMI_PROTOCOL_2, true);
	assert_int_equal(pthread_create(&thread, NULL, read_little, &fds[0]),
			 0);
	assert_int_equal(ask(c, &call), -ECONNRESET);
	pthread_join(thread, NULL);
	call_end(&call);
	assert_int_equal(tell(c), -ECONNRESET);
	conn_close(c);
	close(fds[1]);
}

int main(void)
{
	alarm(LIMIT_S);
	return unit_run(NULL, NULL, NULL);
}
