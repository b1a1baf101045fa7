/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that are kept for programs, and listeners beside them. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/listener_socket.h"
#include "unit.h"

static const struct sockaddr_storage everywhere;

/* A port that is kept; it was free. */
static int keep_any(uint16_t *port)
{
	int listener = listener_socket(&everywhere, 0, port), fd;

	assert_true(listener >= 0);
	close(listener);
	fd = port_keep(*port);
	assert_true(fd >= 0);
	return fd;
}

TEST(port_is_kept_once)
{
	uint16_t port;
	int fd = keep_any(&port);

	assert_int_equal(port_keep(port), -EADDRINUSE);
	close(fd);
	fd = port_keep(port);
	assert_true(fd >= 0);
	close(fd);
}

/* A server of another program, such as torch's. */
TEST(server_that_asks_for_a_kept_port_listens_there)
{
	const int on = 1;
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6 };
	uint16_t port;
	int fd = keep_any(&port), server = socket(AF_INET6, SOCK_STREAM, 0);

	addr.sin6_port = htons(port);
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(server, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(server, 1), 0);
	close(server);
	server = port_listen_kept(&everywhere, port);
	assert_true(server >= 0);
	close(server);
	close(fd);
}

/* The socket at every address and the one at an address of this machine. */
TEST(agent_does_not_listen_at_a_kept_port)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };
	uint16_t port, bound;
	int fd = keep_any(&port);

	((struct sockaddr_in *)&here)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(listener_socket(&everywhere, port, &bound), -EADDRINUSE);
	assert_int_equal(listener_socket(&here, port, &bound), -EADDRINUSE);
	close(fd);
	fd = listener_socket(&everywhere, port, &bound);
	assert_true(fd >= 0);
	close(fd);
}

/* The side that closes first remembers the connection for a minute. */
static void end_connection_at(uint16_t port, int listener)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int ends[2] = { socket(AF_INET, SOCK_STREAM, 0), -1 };
	struct pollfd p = { .fd = listener, .events = POLLIN };
	char byte;

	assert_int_equal(connect(ends[0], (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	ends[1] = accept(listener, NULL, NULL);
	assert_true(ends[1] >= 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

TEST(agent_listens_at_a_port_of_ended_connections)
{
	uint16_t port;
	int fd = listener_socket(&everywhere, 0, &port);

	assert_true(fd >= 0);
	end_connection_at(port, fd);
	close(fd);
	assert_int_equal(port_keep(port), -EADDRINUSE);
	fd = listener_socket(&everywhere, port, &port);
	assert_true(fd >= 0);
	assert_int_equal(port_keep(port), -EADDRINUSE);
	close(fd);
}
