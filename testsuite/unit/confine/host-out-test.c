/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for which a socket has no room. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libconfine/host_out.h"

#define MANY 2000 /* more than a socket holds */

static int ends[2];
static struct host_out out;

static int open_pair(void **state)
{
	out = (struct host_out){ 0 };
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int close_pair(void **state)
{
	host_out_free(&out);
	close(ends[0]);
	return ends[1] < 0 ? 0 : close(ends[1]);
}

static int send_number(uint32_t number)
{
	const struct host_msg m = {
		.type = HOST_LOG, .number = number, .data = "text", .len = 4,
	};

	return host_out_send(&out, ends[0], &m);
}

/* The next one; UINT32_MAX: none. */
static uint32_t hear_number(int flags)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;
	ssize_t n = recv(ends[1], room, sizeof(room), flags);

	if (n <= 0)
		return UINT32_MAX;
	assert_int_equal(host_msg_unpack(&m, room, (size_t)n), 0);
	assert_memory_equal(m.data, "text", 4);
	return m.number;
}

TEST_WITH(messages_are_kept_in_order, open_pair, close_pair)
{
	uint32_t heard = 0;

	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(send_number(i), 0);
	assert_true(out.count > 0);
	while (heard < MANY) {
		uint32_t number = hear_number(MSG_DONTWAIT);

		if (number == UINT32_MAX)
			assert_int_equal(host_out_flush(&out, ends[0]), 0);
		else
			assert_int_equal(number, heard++);
	}
	assert_int_equal(out.count, 0);
}

static void *hear_all(void *arg)
{
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(hear_number(0), i);
	return NULL;
}

TEST_WITH(drain_waits_for_room, open_pair, close_pair)
{
	pthread_t thread;

	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(send_number(i), 0);
	assert_int_equal(pthread_create(&thread, NULL, hear_all, NULL), 0);
	assert_int_equal(host_out_drain(&out, ends[0]), 0);
	assert_int_equal(out.count, 0);
	pthread_join(thread, NULL);
}

TEST_WITH(peer_that_never_reads_is_reported, open_pair, close_pair)
{
	uint32_t i = 0;
	int rc;

	while (!(rc = send_number(i)))
		i++;
	assert_int_equal(rc, -ENOBUFS);
	assert_int_equal(out.count, HOST_OUT_MAX);
}

TEST_WITH(end_of_the_peer_ends_waiting, open_pair, close_pair)
{
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(send_number(i), 0);
	close(ends[1]);
	ends[1] = -1;
	assert_true(host_out_drain(&out, ends[0]) < 0);
}
