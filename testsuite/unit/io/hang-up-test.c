/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets whose peer has put in a descriptor of which the last close waits. A wait here
 * ends by the alarm.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libconfine/host_msg.h"
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

/* By the thread that waits. */
static void hang_up_and_wait(void)
{
	int number = ends[0];

	hang_up(&ends[0]);
	while (fcntl(number, F_GETFD) >= 0)
		usleep(1000);
}

/* The length of the message that carries it. */
static void hang_up_on_descriptor(int type, size_t len)
{
	struct lingering l;

	open_pair(type);
	lingering_open(&l);
	lingering_give(&l, ends[1], "x", len);
	hang_up_and_wait();
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

static unsigned int count_open(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Without SO_PASSCRED there would be room for some in what looks for a message. */
static void no_descriptor_is_received(void **state)
{
	const int types[] = { SOCK_STREAM, SOCK_SEQPACKET }, no = 0;

	NOT_EMULATED("room for credentials alone in a message");
	for (size_t i = 0; i < 2; i++) {
		unsigned int before;
		struct lingering l;

		open_pair(types[i]);
		setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &no, sizeof(no));
		lingering_open(&l);
		lingering_give(&l, ends[1], "x", 1);
		before = count_open();
		hang_up_and_wait();
		assert_int_equal(count_open(), before - 1);
		lingering_close(&l);
		close(ends[1]);
	}
}

/* The socket reports that first, and hides the message. */
static void descriptor_of_a_peer_that_left_data_unread_is_not_waited_for(void **state)
{
	struct lingering l;

	open_pair(SOCK_SEQPACKET);
	assert_int_equal(send(ends[0], "x", 1, 0), 1);
	lingering_open(&l);
	lingering_give(&l, ends[1], "x", 1);
	close(ends[1]);
	hang_up(&ends[0]);
	lingering_close(&l);
}

/* An idle rank's socket: it is closed here, and no thread is made for it. */
static void end_of_a_stream_with_credentials_is_nothing_unread(void **state)
{
	int number, yes = 1;

	open_pair(SOCK_STREAM);
	setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	close(ends[1]);
	number = ends[0];
	hang_up(&ends[0]);
	assert_int_equal(fcntl(number, F_GETFD), -1);
}

/* ---- hang_up_listener ---- */

static void connections_of_a_listener_are_not_waited_for(void **state)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(here);
	struct lingering l;
	int listener, number, client[2];

	alarm(60);
	number = listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &len), 0);
	assert_int_equal(listen(listener, 4), 0);
	for (int i = 0; i < 2; i++) {
		client[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(client[i], (struct sockaddr *)&here, len), 0);
	}
	lingering_open(&l);
	lingering_give(&l, client[1], "x", 1);
	hang_up_listener(&listener);
	assert_int_equal(listener, -1);
	assert_int_equal(fcntl(number, F_GETFD), -1);
	lingering_close(&l);
	for (int i = 0; i < 2; i++) {
		char byte;

		assert_true(recv(client[i], &byte, 1, MSG_DONTWAIT) == 0 ||
			    errno == ECONNRESET);
		close(client[i]);
	}
}

/* ---- host_msg_receive ---- */

static void message_with_descriptor_is_not_received(void **state)
{
	const struct host_msg m = { .type = HOST_LOG, .data = "x", .len = 1 };
	struct host_msg heard;
	char room[HOST_MSG_MAX];
	struct lingering l;

	NOT_EMULATED("room for credentials alone in a message");
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

/* The end of a peer that has left answers unread. */
static void last_message_is_heard_before_the_end(void **state)
{
	const struct host_msg m = { .type = HOST_END };
	struct host_msg heard;
	char room[HOST_MSG_MAX];

	open_pair(SOCK_SEQPACKET);
	assert_int_equal(host_msg_send(ends[0], &m), 0);
	assert_int_equal(host_msg_send(ends[1], &m), 0);
	close(ends[1]);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), 1);
	assert_int_equal(heard.type, HOST_END);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPIPE);
	hang_up(&ends[0]);
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
		cmocka_unit_test(no_descriptor_is_received),
		cmocka_unit_test(descriptor_of_a_peer_that_left_data_unread_is_not_waited_for),
		cmocka_unit_test(end_of_a_stream_with_credentials_is_nothing_unread),
		cmocka_unit_test(connections_of_a_listener_are_not_waited_for),
		cmocka_unit_test(message_with_descriptor_is_not_received),
		cmocka_unit_test(last_message_is_heard_before_the_end),
		cmocka_unit_test(end_of_the_connection_is_heard),
		cmocka_unit_test(empty_message_makes_no_sense),
	};

	return cmocka_run_group_tests_name("hang-up", tests, NULL, NULL);
}
