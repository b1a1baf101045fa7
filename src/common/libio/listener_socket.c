/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening TCP sockets: binding, and which port. */
#include "libio/listener_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The use of a socket. */
enum use {
	USE_KEEP,   /* keeps its port from others */
	USE_ALONE,  /* listens at a port that nobody has, not even for connections that have ended */
	USE_SHARED, /* listens also at a port that another socket keeps */
};

#define NOBODYS_ADDRESS 0x7ffffffe /* 127.255.255.254: no connection has it */

static int set_flag(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);

	getsockname(fd, (struct sockaddr *)&addr, &len);
	return ntohs(addr.ss_family == AF_INET ?
			     ((struct sockaddr_in *)&addr)->sin_port :
			     ((struct sockaddr_in6 *)&addr)->sin6_port);
}

/*
 * The flag counts at bind, and later against the sockets of others. Without `shared`, another socket
 * that is bound to the port has it, even if it does not listen.
 */
static int bind_at(int fd, const struct sockaddr_storage *addr, socklen_t len, bool shared)
{
	if (shared)
		set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (addr->ss_family == AF_INET6)
		set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(fd, (const struct sockaddr *)addr, len))
		return -errno;
	if (!shared)
		set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return 0;
}

static int socket_at(const struct sockaddr_storage *addr, socklen_t len, enum use use)
{
	int rc, fd = socket(addr->ss_family,
			    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	rc = bind_at(fd, addr, len, use == USE_SHARED);
	if (!rc && use != USE_KEEP && listen(fd, SOMAXCONN))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int socket_in(const struct sockaddr_storage *bind_to, int family, uint16_t port,
		     enum use use)
{
	struct sockaddr_storage addr = *bind_to;
	struct sockaddr_in *in4 = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

	addr.ss_family = family; /* all zeroes otherwise: every address */
	if (family == AF_INET) {
		in4->sin_port = htons(port);
		return socket_at(&addr, sizeof(*in4), use);
	}
	in6->sin6_port = htons(port);
	return socket_at(&addr, sizeof(*in6), use);
}

static int socket_on(const struct sockaddr_storage *bind_to, uint16_t port, enum use use)
{
	static const struct sockaddr_storage everywhere;
	int fd;

	if (bind_to->ss_family != AF_UNSPEC)
		return socket_in(bind_to, bind_to->ss_family, port, use);
	fd = socket_in(&everywhere, AF_INET6, port, use);
	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ?
		       socket_in(&everywhere, AF_INET, port, use) : fd;
}

/*
 * A socket at a port that may be in use only by connections that have ended. These have addresses of
 * their own, while a socket that keeps the port has all. The guard does not let anybody begin to
 * keep it meanwhile.
 */
static int socket_beside_ended(const struct sockaddr_storage *bind_to, uint16_t port)
{
	const struct sockaddr_in nobodys = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(NOBODYS_ADDRESS),
	};
	struct sockaddr_storage addr = { 0 };
	int fd, guard;

	memcpy(&addr, &nobodys, sizeof(nobodys));
	guard = socket_at(&addr, sizeof(nobodys), USE_KEEP);
	if (guard == -EADDRINUSE)
		return guard;
	fd = socket_on(bind_to, port, USE_SHARED);
	if (guard >= 0)
		close(guard);
	return fd;
}

int listener_socket(const struct sockaddr_storage *bind_to, uint16_t port,
		    uint16_t *bound)
{
	int fd = socket_on(bind_to, port, USE_ALONE);

	if (fd == -EADDRINUSE && port)
		fd = socket_beside_ended(bind_to, port);
	if (fd >= 0)
		*bound = port ? port : bound_port(fd);
	return fd;
}

int port_keep(uint16_t port)
{
	static const struct sockaddr_storage everywhere;

	return socket_on(&everywhere, port, USE_KEEP);
}

int port_listen_kept(const struct sockaddr_storage *bind_to, uint16_t port)
{
	return socket_on(bind_to, port, USE_SHARED);
}

uint16_t seeded_port(uint64_t seed, uint32_t index, uint16_t first,
		     uint16_t last)
{
	uint64_t size = last >= first ? (uint64_t)last - first + 1 : 1;

	return (uint16_t)(first + (seed % size + index) % size);
}
