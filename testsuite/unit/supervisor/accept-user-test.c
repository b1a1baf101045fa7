/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that wait at a listening socket, of this user and of others. */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libio/listener_socket.h"
#include "supervisor/accept_user.h"

#define MANY 20
#define FEW 3
#define NOBODY 65534

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

/* As another user, and in another process. The connection ends with that. */
static pid_t connect_as(uid_t uid)
{
	pid_t pid = fork();

	if (!pid) {
		alarm(60);
		if (setresuid(uid, uid, uid))
			_exit(1);
		(void)connect_one();
		(void)kill(getpid(), SIGSTOP); /* it has connected */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
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

static uint16_t port_of(int fd, bool peer)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);

	if (peer)
		getpeername(fd, (struct sockaddr *)&a, &len);
	else
		getsockname(fd, (struct sockaddr *)&a, &len);
	return a.sin_port;
}

TEST_WITH(own_client_is_accepted, open_listener, close_listener)
{
	int client, fd = connect_one();

	assert_true(accept_user(listener, getuid(), &client));
	assert_int_equal(port_of(client, true), port_of(fd, false));
	assert_int_equal(fcntl(client, F_GETFL) & O_NONBLOCK, 0);
	assert_false(waits());
	close(client);
	close(fd);
}

/* Clients behind it are for the process that serves them. */
TEST_WITH(second_client_is_left_alone, open_listener, close_listener)
{
	int client, first = connect_one(), second = connect_one();

	assert_true(accept_user(listener, getuid(), &client));
	assert_true(waits());
	close(client);
	close(first);
	close(second);
}

TEST_WITH(connections_of_other_users_are_closed_at_once, open_listener, close_listener)
{
	int client, fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_one();
	assert_false(accept_user(listener, getuid() + 1, &client));
	assert_int_equal(client, -1);
	assert_false(waits());
	for (int i = 0; i < MANY; i++) {
		assert_true(is_closed(fds[i]));
		close(fds[i]);
	}
}

TEST_WITH(own_client_behind_others_is_accepted, open_listener, close_listener)
{
	pid_t pids[FEW];
	int client, fd;

	if (getuid())
		skip();
	for (int i = 0; i < FEW; i++)
		pids[i] = connect_as(NOBODY);
	fd = connect_one();
	assert_true(accept_user(listener, getuid(), &client));
	assert_int_equal(port_of(client, true), port_of(fd, false));
	for (int i = 0; i < FEW; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	}
	close(client);
	close(fd);
}

TEST_WITH(client_that_has_hung_up_is_closed, open_listener, close_listener)
{
	struct linger at_once = { .l_onoff = 1 };
	int client, fd = connect_one();

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	assert_false(accept_user(listener, getuid(), &client));
	assert_false(waits());
}

TEST_WITH(nobody_waits, open_listener, close_listener)
{
	int client;

	assert_false(accept_user(listener, getuid(), &client));
}
