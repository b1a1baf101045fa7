/* SPDX-License-Identifier: BSD-3-Clause */
/* Accepts connections in a loop. */
#include "libio/listener.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct listener {
	uv_poll_t poll;
	uv_timer_t retry;
	int fd;
	bool closed;
	int handles; /* not yet closed */
	listener_fn accepted;
	void (*starved)(void *arg, int error); /* NULL: not called */
	void *arg;
};

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
