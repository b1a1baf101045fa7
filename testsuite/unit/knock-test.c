/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that wait at a listening socket, of this user and of others. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/listener_socket.h"
#include "starter/knock.h"

#define MANY 20

static int listener;
static struct sockaddr_in address;

static int open_listener(void **state)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)&here;
	uint16_t port;

	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = listener_socket(&here, 0, &port);
	address = *in;
	address.sin_port = htons(port);
	return listener < 0;
}

static int close_listener(void **state)
{
	return close(listener);
}

static int connect_one(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address,
				 sizeof(address)), 0);
	return fd;
}

static bool knocks(uid_t uid)
{
	return knock_of(listener, ntohs(address.sin_port), uid);
}

static bool waits(void)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

static void ones_own_is_left_for_who_serves_it(void **state)
{
	int fd = connect_one();

	assert_true(knocks(getuid()));
	assert_true(waits());
	close(fd);
}

static void others_are_closed_all_at_once(void **state)
{
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_one();
	assert_false(knocks(getuid() + 1));
	assert_false(waits());
	for (int i = 0; i < MANY; i++) {
		assert_true(is_closed(fds[i]));
		close(fds[i]);
	}
}

static void who_has_hung_up_does_not_wait_for_ever(void **state)
{
	struct linger at_once = { .l_onoff = 1 };
	int fd = connect_one();

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	assert_false(knocks(getuid()));
	assert_false(waits());
}

static void nobody_waits(void **state)
{
	assert_false(knocks(getuid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ones_own_is_left_for_who_serves_it,
						open_listener, close_listener),
		cmocka_unit_test_setup_teardown(others_are_closed_all_at_once,
						open_listener, close_listener),
		cmocka_unit_test_setup_teardown(who_has_hung_up_does_not_wait_for_ever,
						open_listener, close_listener),
		cmocka_unit_test_setup_teardown(nobody_waits, open_listener,
						close_listener),
	};

	return cmocka_run_group_tests_name("knock", tests, NULL, NULL);
}
