/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hook in front of libpmix: a pipe of descriptors' numbers, whose end has the number of the
 * library's own listening socket. libpmix reads requests by read, and answers by writev;
 * another release may answer by write or send.
 */
#include "helpers/pmixd/accept_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libio/clock.h"

/* The library calls without an argument of the program's: there is no other way here. */
static struct {
	int in, out;
	atomic_int library; /* the library's listening socket, or -1 */
} hook = { .in = -1, .out = -1, .library = -1 };

int accept_hook_make(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	hook.out = ends[0];
	hook.in = ends[1];
	return 0;
}

bool accept_hook_is_used(void)
{
	return atomic_load(&hook.library) >= 0;
}

int accept_hook_let_in(int fd)
{
	int rc = 0;

	if (write(hook.in, &fd, sizeof(fd)) != sizeof(fd)) {
		rc = -errno;
		close(fd);
	}
	return rc;
}

/* ---- who waits for an answer ---- */

#define CLIENTS_MAX 65536 /* descriptors; later ones never wait */

/* By descriptor: accept_hook_asks_since, and of what is no client, too. */
static _Atomic int64_t asks[CLIENTS_MAX];

static bool is_noted(int fd)
{
	return fd >= 0 && fd < CLIENTS_MAX;
}

static void note_request(int fd)
{
	if (is_noted(fd) && !atomic_load_explicit(&asks[fd], memory_order_relaxed))
		atomic_store_explicit(&asks[fd], (int64_t)clock_ms(CLOCK_MONOTONIC),
				      memory_order_relaxed);
}

static void note_answer(int fd)
{
	if (is_noted(fd))
		atomic_store_explicit(&asks[fd], 0, memory_order_relaxed);
}

int64_t accept_hook_asks_since(int fd)
{
	return is_noted(fd) ? atomic_load_explicit(&asks[fd], memory_order_relaxed) : 0;
}

static bool is_tcp(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}

/* ---- instead of the C library's ---- */

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int listen(int fd, int backlog)
{
	if (hook.out < 0 || accept_hook_is_used() || !is_tcp(fd))
		return (int)syscall(SYS_listen, fd, backlog);
	if (dup3(hook.out, fd, O_CLOEXEC) < 0)
		return -1;
	atomic_store(&hook.library, fd);
	return 0;
}

EXPORTED int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int client;

	if (fd < 0 || fd != atomic_load(&hook.library))
		return (int)syscall(SYS_accept4, fd, address, len, flags);
	if (read(hook.out, &client, sizeof(client)) != sizeof(client))
		return -1; /* EAGAIN */
	note_answer(client);
	if (address)
		(void)getpeername(client, address, len);
	return client;
}

EXPORTED int accept(int fd, struct sockaddr *address, socklen_t *len)
{
	return accept4(fd, address, len, 0);
}

/* The program and libpmix read from many descriptors that are no clients, too. */
EXPORTED ssize_t read(int fd, void *buf, size_t len)
{
	ssize_t n = syscall(SYS_read, fd, buf, len);

	if (n > 0)
		note_request(fd);
	return n;
}

EXPORTED ssize_t writev(int fd, const struct iovec *parts, int count)
{
	note_answer(fd); /* before the client can send its next request */
	return syscall(SYS_writev, fd, parts, count);
}

EXPORTED ssize_t write(int fd, const void *data, size_t len)
{
	note_answer(fd);
	return syscall(SYS_write, fd, data, len);
}

EXPORTED ssize_t send(int fd, const void *data, size_t len, int flags)
{
	note_answer(fd);
	return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}
