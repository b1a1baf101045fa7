/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets whose peer has put in a descriptor of which the last close waits. A wait here
 * ends by the alarm.
 */
#include "unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/host_msg.h"
#include "libio/hang_up.h"
#include "lingering.h"

static int ends[2]; /* ours, and the peer's */

static void open_pair(int type)
{
	int yes = 1;

	alarm(60);
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
	if (type == SOCK_SEQPACKET)
		setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
}

static bool peer_sees_the_end(void)
{
	char byte;

	return recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

static void empty_socket_is_closed_at_once(void **state)
{
	const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (size_t i = 0; i < 2; i++) {
		int number;

		open_pair(types[i]);
		number = ends[0];
		hang_up(&ends[0]);
		assert_int_equal(ends[0], -1);
		assert_int_equal(dup(number), -1);
		assert_true(peer_sees_the_end());
		close(ends[1]);
	}
}

static void no_socket_is_left_alone(void **state)
{
	int none = -1;

	hang_up(&none);
	assert_int_equal(none, -1);
}

/* The length of the message that carries it. */
static void hang_up_on_descriptor(int type, size_t len)
{
	struct lingering l;

	open_pair(type);
	lingering_open(&l);
	lingering_give(&l, ends[1], "x", len);
	hang_up(&ends[0]);
	assert_true(peer_sees_the_end());
	lingering_close(&l);
	close(ends[1]);
}

static void descriptor_in_a_stream_is_not_waited_for(void **state)
{
	hang_up_on_descriptor(SOCK_STREAM, 1);
}

static void descriptor_in_a_message_is_not_waited_for(void **state)
{
	hang_up_on_descriptor(SOCK_SEQPACKET, 1);
}

static void descriptor_in_an_empty_message_is_not_waited_for(void **state)
{
	hang_up_on_descriptor(SOCK_SEQPACKET, 0);
}

/* ---- host_msg_receive ---- */

static void message_with_descriptor_is_not_received(void **state)
{
	const struct host_msg m = { .type = HOST_LOG, .data = "x", .len = 1 };
	struct host_msg heard;
	char room[HOST_MSG_MAX];
	struct lingering l;

	open_pair(SOCK_SEQPACKET);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), 0);
	assert_int_equal(host_msg_send(ends[1], &m), 0);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), 1);
	assert_memory_equal(heard.data, "x", 1);
	lingering_open(&l);
	lingering_give(&l, ends[1], "x", 0);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPROTO);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPROTO);
	hang_up(&ends[0]);
	lingering_close(&l);
	close(ends[1]);
}

static void end_of_the_connection_is_heard(void **state)
{
	struct host_msg heard;
	char room[HOST_MSG_MAX];

	open_pair(SOCK_SEQPACKET);
	close(ends[1]);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPIPE);
	hang_up(&ends[0]);
}

static void empty_message_makes_no_sense(void **state)
{
	struct host_msg heard;
	char room[HOST_MSG_MAX];

	open_pair(SOCK_SEQPACKET);
	assert_int_equal(send(ends[1], "", 0, 0), 0);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPROTO);
	hang_up(&ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_socket_is_closed_at_once),
		cmocka_unit_test(no_socket_is_left_alone),
		cmocka_unit_test(descriptor_in_a_stream_is_not_waited_for),
		cmocka_unit_test(descriptor_in_a_message_is_not_waited_for),
		cmocka_unit_test(descriptor_in_an_empty_message_is_not_waited_for),
		cmocka_unit_test(message_with_descriptor_is_not_received),
		cmocka_unit_test(end_of_the_connection_is_heard),
		cmocka_unit_test(empty_message_makes_no_sense),
	};

	return cmocka_run_group_tests_name("hang-up", tests, NULL, NULL);
}
