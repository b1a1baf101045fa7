/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that are kept for programs, and listeners beside them. */
#include <errno.h>
#include <netinet/in.h>
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

TEST(server_that_asks_for_a_kept_port_listens_there)
{
	uint16_t port, bound;
	int fd = keep_any(&port), server = listener_socket(&everywhere, port, &bound);

	assert_true(server >= 0);
	assert_int_equal(bound, port);
	close(server);
	close(fd);
}
