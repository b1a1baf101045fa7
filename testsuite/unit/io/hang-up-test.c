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

TEST(empty_socket_is_closed_at_once)
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

TEST(no_socket_is_left_alone)
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

TEST(descriptor_in_a_stream_is_not_waited_for)
{
	hang_up_on_descriptor(SOCK_STREAM, 1);
}

TEST(descriptor_in_a_message_is_not_waited_for)
{
	hang_up_on_descriptor(SOCK_SEQPACKET, 1);
}

TEST(descriptor_in_an_empty_message_is_not_waited_for)
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
TEST(no_descriptor_is_received)
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
TEST(descriptor_of_a_peer_that_left_data_unread_is_not_waited_for)
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
TEST(end_of_a_stream_with_credentials_is_nothing_unread)
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

TEST(connections_of_a_listener_are_not_waited_for)
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

TEST(message_with_descriptor_is_not_received)
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
TEST(last_message_is_heard_before_the_end)
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

TEST(end_of_the_connection_is_heard)
{
	struct host_msg heard;
	char room[HOST_MSG_MAX];

	open_pair(SOCK_SEQPACKET);
	close(ends[1]);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPIPE);
	hang_up(&ends[0]);
}

TEST(empty_message_makes_no_sense)
{
	struct host_msg heard;
	char room[HOST_MSG_MAX];

	open_pair(SOCK_SEQPACKET);
	assert_int_equal(send(ends[1], "", 0, 0), 0);
	assert_int_equal(host_msg_receive(ends[0], room, &heard), -EPROTO);
	hang_up(&ends[0]);
	close(ends[1]);
}
