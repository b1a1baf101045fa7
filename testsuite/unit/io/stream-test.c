/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte streams: order, partial writes, descriptors, limits, one end; all that
 * holds also for streams that leave input in the socket until it is answered.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libio/stream.h"

struct side {
	struct stream *stream;
	struct epoll_set *epoll; /* NULL: a plain stream */
	int fd, far;          /* far: the other end of its socket */
	char in[4096];
	char *got;
	size_t ngot;
	int ends, drains;
	int error;
	int peer;             /* asks, if there is an answer */
	const char *answer;   /* to any input */
	bool closes;          /* after it */
	struct side *other;   /* of the same set */
	bool early;           /* an answer went before all had been told */
	pid_t senders[4];     /* of the first pieces */
	unsigned pieces;
};

static uv_loop_t loop;
static bool held; /* streams of this run are made by stream_open_held */

static size_t on_room(void *arg, void **at)
{
	struct side *s = arg;

	*at = s->in;
	return sizeof(s->in);
}

static bool readable(int fd)
{
	int n = 0;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n > 0;
}

static void answer(struct side *s)
{
	s->early |= readable(s->peer) || (s->other && readable(s->other->peer));
	assert_int_equal(stream_write(s->stream, s->answer, strlen(s->answer), NULL),
			 0);
	s->early |= readable(s->peer);
	if (s->closes)
		stream_close(s->stream);
}

static void on_input(void *arg, size_t n)
{
	struct side *s = arg;

	if (s->pieces < sizeof(s->senders) / sizeof(*s->senders))
		s->senders[s->pieces] = stream_sender(s->stream);
	s->pieces++;
	s->got = realloc(s->got, s->ngot + n);
	memcpy(s->got + s->ngot, s->in, n);
	s->ngot += n;
	if (s->answer)
		answer(s);
}

static void on_end(void *arg, int error)
{
	struct side *s = arg;

	s->ends++;
	s->error = error;
}

static void on_drained(void *arg)
{
	((struct side *)arg)->drains++;
}

static const struct stream_ops ops = {
	.room = on_room,
	.input = on_input,
	.end = on_end,
	.drained = on_drained,
};

/* A stream on one end of a socket pair; returns the other end. */
static int side_open(struct side *s, size_t queue, size_t pause)
{
	struct stream_limits limits = { .queue = queue, .pause = pause };
	int fds[2];

	memset(s, 0, sizeof(*s));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    fds), 0);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	s->fd = fds[0];
	if (held) {
		assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &(int){ 1 },
					    sizeof(int)), 0);
		assert_int_equal(epoll_set_open(&s->epoll, &loop), 0);
	}
	assert_int_equal(held ? stream_open_held(&s->stream, &loop, s->epoll,
						 fds[0], &limits, &ops, s) :
				stream_open(&s->stream, &loop, fds[0], &limits,
					    &ops, s), 0);
	return s->far = fds[1];
}

static void side_close(struct side *s, int fd)
{
	stream_close(s->stream);
	epoll_set_close(s->epoll);
	free(s->got);
	if (fd >= 0)
		close(fd);
	uv_run(&loop, UV_RUN_DEFAULT);
}

static void side_end(void *side)
{
	struct side *s = side;

	side_close(s, s->far);
	free(s);
}

static struct side *side_of_test(size_t queue, size_t pause)
{
	struct side *s = malloc(sizeof(*s));

	side_open(s, queue, pause);
	return unit_at_end(side_end, s);
}

#define SIDE_TEST(name, queue, pause) TEST_ON(name, struct side *s, side_of_test(queue, pause))

static void turns(int n)
{
	while (n--)
		uv_run(&loop, UV_RUN_NOWAIT);
}

static size_t read_all(int fd, char *to, size_t max)
{
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, to + total, max - total)) > 0)
		total += n;
	return total;
}

TEST(delivers_input_then_the_end_once)
{
	struct side s;
	int fd = side_open(&s, 1000, 1000);

	assert_int_equal(write(fd, "hello", 5), 5);
	turns(1);
	assert_int_equal(s.ngot, 5);
	assert_int_equal(s.ends, 0);
	assert_int_equal(write(fd, "again", 5), 5);
	close(fd);
	turns(3);
	assert_int_equal(s.ngot, 10);
	assert_memory_equal(s.got, "helloagain", 10);
	assert_int_equal(s.ends, 1);
	assert_int_equal(s.error, 0);
	assert_int_equal(stream_write(s.stream, "x", 1, NULL), -EPIPE);
	turns(2);
	assert_int_equal(s.ends, 1);
	side_close(&s, -1);
}

SIDE_TEST(writes_at_once_when_nothing_is_queued, 1000, 1000)
{
	char got[10];

	assert_int_equal(stream_write(s->stream, "abc", 3, NULL), 0);
	assert_int_equal(read(s->far, got, 10), 3); /* no turn of the loop */
	assert_int_equal(stream_queued(s->stream), 0);
}

#define BIG ((size_t)4 << 20)

SIDE_TEST(partial_writes_keep_the_order, 2 * BIG, 2 * BIG)
{
	char *sent = malloc(BIG), *got = malloc(BIG);
	struct payload_vec v;
	struct payload *p;
	size_t n = 0;

	for (size_t i = 0; i < BIG; i++)
		sent[i] = i * 7 >> 4;
	payload_vec_init(&v);
	p = payload_copy(sent, BIG);
	for (size_t at = 0; at < BIG / 2; at += BIG / 256) {
		struct payload *slice = payload_slice(p, at, BIG / 256);

		payload_vec_add(&v, slice);
		payload_unref(slice);
	}
	assert_int_equal(stream_write_vec(s->stream, NULL, &v), 0);
	payload_vec_clear(&v);
	assert_int_equal(stream_write(s->stream, sent + BIG / 2, BIG / 2, NULL),
			 0);
	assert_true(stream_queued(s->stream) > 0);
	while (n < BIG) {
		n += read_all(s->far, got + n, BIG - n);
		turns(1);
	}
	assert_memory_equal(sent, got, BIG);
	assert_int_equal(stream_queued(s->stream), 0);
	assert_int_equal(s->drains, 1);
	payload_unref(p);
	free(sent);
	free(got);
}

/* How many bytes come with the next read, and which descriptors do. */
static size_t receive(int fd, char *to, size_t max, struct passed_fds *passed)
{
	_Alignas(struct cmsghdr) char control[64];
	struct iovec iov = { to, max };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	passed->count = c ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	assert_true(passed->count <= PASSED_FDS_MAX);
	if (c)
		memcpy(passed->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n > 0 ? n : 0;
}

/* Both ends of the pipe have come, in order; close them. */
static void close_pipe(const struct passed_fds *passed)
{
	char byte;

	assert_int_equal(passed->count, 2);
	assert_int_equal(write(passed->fds[1], "x", 1), 1);
	assert_int_equal(read(passed->fds[0], &byte, 1), 1);
	close(passed->fds[0]);
	close(passed->fds[1]);
}

TEST(descriptors_travel_with_their_bytes)
{
	struct passed_fds pipes = { .count = 2 }, passed;
	struct side s;
	int fd = side_open(&s, 2 * BIG, 2 * BIG), found = 0;
	char *fill = calloc(1, BIG), *got = malloc(BIG);
	size_t total = 0;

	assert_int_equal(pipe(pipes.fds), 0);
	assert_int_equal(stream_write(s.stream, "now", 3, &pipes), 0);
	assert_int_equal(receive(fd, got, BIG, &passed), 3);
	close_pipe(&passed);

	/* Behind a queue they come with their first byte, not earlier or later. */
	assert_int_equal(stream_write(s.stream, fill, BIG, NULL), 0);
	assert_int_equal(stream_write(s.stream, fill, BIG, &pipes), 0);
	while (total < 2 * BIG) {
		size_t n = receive(fd, got, BIG, &passed);

		if (passed.count) {
			close_pipe(&passed);
			found++;
			assert_true(total + n > BIG);
		}
		total += n;
		turns(1);
	}
	assert_int_equal(found, 1);
	close(pipes.fds[0]);
	close(pipes.fds[1]);
	free(fill);
	free(got);
	side_close(&s, fd);
}

SIDE_TEST(a_full_queue_breaks_the_stream, 1000, 1000)
{
	char *fill = calloc(1, BIG);

	assert_int_equal(stream_write(s->stream, fill, BIG, NULL), -ENOBUFS);
	assert_int_equal(s->ends, 0); /* told by the loop, not inside the call */
	assert_int_equal(stream_write(s->stream, "x", 1, NULL), -EPIPE);
	turns(2);
	assert_int_equal(s->ends, 1);
	assert_int_equal(s->error, -ENOBUFS);
	free(fill);
}

SIDE_TEST(reading_pauses_while_the_peer_does_not_read, 2 * BIG, 100)
{
	char *fill = calloc(1, BIG);

	assert_int_equal(stream_write(s->stream, fill, BIG, NULL), 0);
	assert_int_equal(write(s->far, "ask", 3), 3);
	turns(3);
	assert_int_equal(s->ngot, 0);
	for (int i = 0; i < 1000 && stream_queued(s->stream) > 0; i++) {
		read_all(s->far, fill, BIG);
		turns(1);
	}
	turns(2);
	assert_int_equal(s->ngot, 3);
	free(fill);
}

SIDE_TEST(finish_flushes_first, 2 * BIG, 2 * BIG)
{
	char *data = calloc(1, BIG), *got = malloc(BIG);
	size_t n = 0;

	stream_write(s->stream, data, BIG, NULL);
	stream_finish(s->stream);
	assert_int_equal(write(s->far, "late", 4), 4);
	for (int i = 0; i < 10000 && !s->ends; i++) {
		n += read_all(s->far, got, BIG);
		turns(1);
	}
	n += read_all(s->far, got, BIG);
	assert_int_equal(n, BIG);
	assert_int_equal(s->ends, 1);
	assert_int_equal(s->error, 0);
	assert_int_equal(s->ngot, 0);
	free(data);
	free(got);
}

SIDE_TEST(shutdown_ends_one_direction, 1000, 1000)
{
	char got[10];

	stream_write(s->stream, "bye", 3, NULL);
	stream_shutdown(s->stream);
	turns(1);
	assert_int_equal(read(s->far, got, 10), 3);
	assert_int_equal(read(s->far, got, 10), 0); /* end of file */
	assert_int_equal(write(s->far, "last", 4), 4);
	turns(2);
	assert_int_equal(s->ngot, 4);
	assert_int_equal(s->ends, 0);
}

/* Bytes that the peer sent before it stopped listening are still heard. */
TEST(input_comes_before_a_write_error)
{
	struct side s;
	int fd = side_open(&s, 1000, 1000);

	assert_int_equal(write(fd, "abort", 5), 5);
	close(fd);
	assert_int_equal(stream_write(s.stream, "x", 1, NULL), -EPIPE);
	assert_int_equal(s.ends, 0);
	turns(2);
	assert_int_equal(s.ngot, 5);
	assert_int_equal(s.ends, 1);
	side_close(&s, -1);
}

SIDE_TEST(read_now_takes_what_is_there, 1000, 1000)
{
	assert_int_equal(write(s->far, "hello", 5), 5);
	stream_read_now(s->stream, 1 << 20);
	assert_int_equal(s->ngot, 5);
	assert_int_equal(s->ends, 0);
}

/* ---- input that stays until it is answered ---- */

static int side_open_held(struct side *s)
{
	NOT_EMULATED("SO_PEEK_OFF");
	held = true;
	return side_open(s, 1000, 1000);
}

static struct side *held_side(void)
{
	NOT_EMULATED("SO_PEEK_OFF");
	held = true;
	return side_of_test(1000, 1000);
}

#define HELD_TEST(name) TEST_ON(name, struct side *s, held_side())

static int unread(const struct side *s)
{
	int n = -1;

	assert_int_equal(ioctl(s->fd, FIONREAD, &n), 0);
	return n;
}

HELD_TEST(input_stays_until_it_is_released)
{
	assert_int_equal(write(s->far, "first", 5), 5);
	turns(3);
	assert_int_equal(s->ngot, 5); /* once, whatever the turns */
	assert_int_equal(unread(s), 5);
	assert_int_equal(write(s->far, "second", 6), 6);
	turns(3);
	assert_int_equal(s->ngot, 11);
	assert_memory_equal(s->got, "firstsecond", 11);
	assert_int_equal(unread(s), 11);
	stream_release(s->stream);
	assert_int_equal(unread(s), 0);
	assert_int_equal(write(s->far, "third", 5), 5);
	turns(3);
	assert_int_equal(s->ngot, 16);
	assert_memory_equal(s->got, "firstsecondthird", 16);
}

static void ask(struct side *s, int fd)
{
	char got[10];

	assert_int_equal(write(fd, "asks", 4), 4);
	turns(1);
	assert_int_equal(stream_write(s->stream, "ok", 2, NULL), 0);
	assert_int_equal(read(fd, got, 10), 2);
}

HELD_TEST(input_of_several_requests_is_taken_out_together)
{
	for (int i = 1; i < STREAM_HOLD_PIECES; i++) {
		ask(s, s->far);
		assert_int_equal(unread(s), 4 * i);
	}
	ask(s, s->far);
	assert_int_equal(unread(s), 0);
	assert_int_equal(s->ngot, 4 * STREAM_HOLD_PIECES);
	ask(s, s->far);
	assert_memory_equal(s->got + 4 * STREAM_HOLD_PIECES, "asks", 4);
}

TEST(much_input_is_taken_out_unanswered)
{
	static const char line[1000];
	struct side s;
	int fd = side_open_held(&s);
	size_t total = 0;

	for (int i = 0; i < 1000; i++) {
		if (write(fd, line, sizeof(line)) == sizeof(line))
			total += sizeof(line);
		turns(1);
		assert_in_range(unread(&s), 0, STREAM_HOLD_MAX);
	}
	assert_int_equal(total, 1000 * sizeof(line));
	assert_int_equal(s.ngot, total);
	side_close(&s, fd);
}

static pid_t write_by_another(int fd, const char *text)
{
	pid_t pid = fork();

	if (!pid)
		_exit(write(fd, text, strlen(text)) != (ssize_t)strlen(text));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* The kernel ends a read between them, though there is more to read. */
HELD_TEST(bytes_of_two_writers_are_read_to_the_end)
{
	pid_t another;

	assert_int_equal(write(s->far, "one's", 5), 5);
	another = write_by_another(s->far, "another's");
	turns(3);
	assert_int_equal(s->ngot, 14);
	assert_memory_equal(s->got, "one'sanother's", 14);
	assert_int_equal(s->pieces, 2);
	assert_int_equal(s->senders[0], getpid());
	assert_int_equal(s->senders[1], another);
}

/* More than the turns of one event take. */
TEST(a_burst_is_read_to_its_end)
{
	static char burst[100000];
	struct side s;
	int fd = side_open_held(&s);

	memset(burst, 'b', sizeof(burst));
	assert_int_equal(write(fd, burst, sizeof(burst)), sizeof(burst));
	turns(10);
	assert_int_equal(s.ngot, sizeof(burst));
	side_close(&s, fd);
}

/* A close with input unread would turn the answers into a reset. */
TEST(held_input_does_not_reset_the_answer_at_close)
{
	struct side s;
	int fd = side_open_held(&s);
	char got[10];

	assert_int_equal(stream_write(s.stream, "bye", 3, NULL), 0);
	assert_int_equal(write(fd, "unanswered", 10), 10);
	turns(2);
	assert_int_equal(s.ngot, 10);
	side_close(&s, -1);
	assert_int_equal(read(fd, got, 10), 3);
	assert_int_equal(read(fd, got, 10), 0);
	close(fd);
}

static void side_answers(struct side *s, int peer, const char *text)
{
	s->answer = text;
	s->peer = peer;
}

static void assert_answered(int peer, const char *text)
{
	char got[64];

	assert_int_equal(read(peer, got, sizeof(got)), strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

/* A second stream in the set of the first; returns its other end. */
static int side_open_beside(struct side *s, const struct side *first)
{
	struct stream_limits limits = { .queue = 1000, .pause = 1000 };
	int fds[2];

	memset(s, 0, sizeof(*s));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    fds), 0);
	assert_int_equal(stream_open_held(&s->stream, &loop, first->epoll,
					  fds[0], &limits, &ops, s), 0);
	return fds[1];
}

TEST(answers_wait_until_all_requests_are_read)
{
	struct side a, b;
	int fd = side_open_held(&a), beside = side_open_beside(&b, &a);

	a.other = &b;
	b.other = &a;
	for (int i = 1; i <= 3; i++) {
		side_answers(&a, fd, "to a");
		side_answers(&b, beside, "to b");
		assert_int_equal(write(fd, "asks", 4), 4);
		assert_int_equal(write(beside, "asks", 4), 4);
		turns(1);
		assert_int_equal(a.ngot, 4 * i);
		assert_int_equal(b.ngot, 4 * i);
		assert_answered(fd, "to a");
		assert_answered(beside, "to b");
	}
	assert_false(a.early || b.early);
	stream_close(b.stream);
	free(b.got);
	close(beside);
	side_close(&a, fd);
}

/* An answer that waits may stop the reading; what has come meanwhile is read then. */
TEST(an_answer_beyond_the_pause_does_not_end_the_reading)
{
	static char text[1500], got[2000];
	struct side s;
	int fd;

	NOT_EMULATED("SO_PEEK_OFF");
	fd = side_open(&s, 100000, 1000);
	memset(text, 't', sizeof(text) - 1);
	side_answers(&s, fd, text);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(fd, "asks", 4), 4);
		turns(2);
		assert_int_equal(read_all(fd, got, sizeof(got)), strlen(text));
	}
	assert_int_equal(s.ngot, 12);
	side_close(&s, fd);
}

HELD_TEST(an_answer_comes_before_the_close)
{
	side_answers(s, s->far, "bye");
	s->closes = true;
	assert_int_equal(write(s->far, "asks", 4), 4);
	turns(2);
	assert_answered(s->far, "bye");
	assert_int_equal(s->ends, 0);
	s->stream = NULL;
}

/* The peer has shut its side down, and still reads. */
HELD_TEST(an_answer_comes_after_the_peers_last_request)
{
	side_answers(s, s->far, "last");
	assert_int_equal(write(s->far, "asks", 4), 4);
	shutdown(s->far, SHUT_WR);
	turns(2);
	assert_int_equal(s->ends, 1);
	assert_int_equal(s->error, 0);
	assert_answered(s->far, "last");
}

static int set_up_held(void **state)
{
	held = true;
	return uv_loop_init(&loop);
}

static int set_up(void **state)
{
	return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
	return uv_loop_close(&loop);
}

int main(void)
{
	return unit_run("plain", set_up, tear_down) + unit_run("held", set_up_held, tear_down);
}
