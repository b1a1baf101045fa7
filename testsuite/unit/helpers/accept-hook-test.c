/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions in front of the C library's, which note the clients that wait for an answer. */
#include "unit.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "helpers/pmixd/accept_hook.h"

static void ask(const int ends[2])
{
	char byte;

	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_true(accept_hook_asks_since(ends[0]) > 0);
}

static ssize_t answer_with_writev(int fd)
{
	const struct iovec part = { "y", 1 };

	return writev(fd, &part, 1);
}

static ssize_t answer_with_write(int fd)
{
	return write(fd, "y", 1);
}

static ssize_t answer_with_send(int fd)
{
	return send(fd, "y", 1, MSG_NOSIGNAL);
}

TEST(client_waits_until_it_is_answered)
{
	static ssize_t (*const answers[])(int fd) = {
		answer_with_writev, answer_with_write, answer_with_send,
	};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(accept_hook_asks_since(ends[0]), 0);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		ask(ends);
		assert_int_equal(answers[i](ends[0]), 1);
		assert_int_equal(accept_hook_asks_since(ends[0]), 0);
	}
	close(ends[0]);
	close(ends[1]);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

TEST(first_request_counts)
{
	int64_t since;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ask(ends);
	since = accept_hook_asks_since(ends[0]);
	while (now_ms() == since)
		; /* another time for the next request */
	ask(ends);
	assert_true(accept_hook_asks_since(ends[0]) == since);
	assert_int_equal(answer_with_write(ends[0]), 1);
	close(ends[0]);
	close(ends[1]);
}

TEST(end_of_a_connection_is_no_request)
{
	char byte;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	assert_int_equal(accept_hook_asks_since(ends[0]), 0);
	assert_int_equal(accept_hook_asks_since(-1), 0);
	close(ends[0]);
}
