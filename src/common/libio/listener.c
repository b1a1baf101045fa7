/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets: binding, accepting. */
#include "libio/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct listener {
	uv_poll_t poll;
	uv_timer_t retry;
	int fd;
	bool closed;
	int handles; /* not yet closed */
	listener_fn accepted;
	void (*starved)(void *arg, int error); /* or NULL */
	void *arg;
};

/* ---- binding ---- */

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

static int listen_at(const struct sockaddr_storage *addr, socklen_t len)
{
	int rc, fd = socket(addr->ss_family,
			    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (addr->ss_family == AF_INET6)
		set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(fd, (const struct sockaddr *)addr, len) < 0 ||
	    listen(fd, SOMAXCONN) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int listen_in(const struct sockaddr_storage *bind_to, int family,
		     uint16_t port)
{
	struct sockaddr_storage addr = *bind_to;
	struct sockaddr_in *in4 = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

	addr.ss_family = family; /* all zeroes otherwise: every address */
	if (family == AF_INET) {
		in4->sin_port = htons(port);
		return listen_at(&addr, sizeof(*in4));
	}
	in6->sin6_port = htons(port);
	return listen_at(&addr, sizeof(*in6));
}

int listener_socket(const struct sockaddr_storage *bind_to, uint16_t port,
		    uint16_t *bound)
{
	static const struct sockaddr_storage everywhere;
	int fd;

	if (bind_to->ss_family != AF_UNSPEC) {
		fd = listen_in(bind_to, bind_to->ss_family, port);
	} else {
		fd = listen_in(&everywhere, AF_INET6, port);
		if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
			fd = listen_in(&everywhere, AF_INET, port);
	}
	if (fd >= 0)
		*bound = port ? port : bound_port(fd);
	return fd;
}

/* ---- accepting ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
	struct listener *l = timer->data;

	uv_poll_start(&l->poll, UV_READABLE, on_poll);
}

static bool out_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS ||
	       error == ENOMEM;
}

static void wait_for_resources(struct listener *l, int error)
{
	uv_poll_stop(&l->poll);
	uv_timer_start(&l->retry, on_retry, LISTENER_RETRY_MS, 0);
	if (l->starved)
		l->starved(l->arg, -error);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;

	for (int i = 0; i < LISTENER_ACCEPTS_PER_TURN && !l->closed; i++) {
		int fd = accept4(l->fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			l->accepted(l->arg, fd);
		} else if (out_of_resources(errno)) {
			wait_for_resources(l, errno);
			return;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		}
		/* Other errors are of one connection; the next may be fine. */
	}
}

int listener_open(struct listener **out, uv_loop_t *loop, int fd,
		  listener_fn accepted, void *arg)
{
	struct listener *l = calloc(1, sizeof(*l));
	int rc = l ? uv_poll_init(loop, &l->poll, fd) : -ENOMEM;

	if (rc) {
		free(l);
		close(fd);
		return rc;
	}
	uv_timer_init(loop, &l->retry);
	l->poll.data = l->retry.data = l;
	l->handles = 2;
	l->fd = fd;
	l->accepted = accepted;
	l->arg = arg;
	uv_poll_start(&l->poll, UV_READABLE, on_poll);
	*out = l;
	return 0;
}

void listener_on_starved(struct listener *l, void (*fn)(void *arg, int error))
{
	l->starved = fn;
}

static void on_closed(uv_handle_t *handle)
{
	struct listener *l = handle->data;

	if (--l->handles == 0)
		free(l);
}

void listener_close(struct listener *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	uv_close((uv_handle_t *)&l->poll, on_closed);
	uv_close((uv_handle_t *)&l->retry, on_closed);
	close(l->fd);
}
