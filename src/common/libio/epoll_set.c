/* SPDX-License-Identifier: BSD-3-Clause */
/* Edge-triggered polling beside libuv: an epoll set inside the loop's. */
#include "libio/epoll_set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64

struct epoll_set {
	uv_poll_t poll;
	int fd;
};

static void tell(const struct epoll_event *event)
{
	struct watched_fd *e = event->data.ptr;
	int events = 0;

	if (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		events |= UV_READABLE;
	if (event->events & EPOLLOUT)
		events |= UV_WRITABLE;
	if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		events |= UV_DISCONNECT;
	if (e->event)
		e->event(e, events, event->events & (EPOLLHUP | EPOLLERR));
}

static void settle(const struct epoll_event *event)
{
	struct watched_fd *e = event->data.ptr;

	if (e->event && e->settle)
		e->settle(e);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct epoll_set *set = poll->data;
	struct epoll_event list[EVENTS_AT_ONCE];
	int n = epoll_wait(set->fd, list, EVENTS_AT_ONCE, 0);

	for (int i = 0; i < n; i++)
		tell(&list[i]);
	for (int i = 0; i < n; i++)
		settle(&list[i]);
}

int epoll_set_open(struct epoll_set **out, uv_loop_t *loop)
{
	struct epoll_set *set = calloc(1, sizeof(*set));
	int rc;

	if (!set)
		return -ENOMEM;
	set->fd = epoll_create1(EPOLL_CLOEXEC);
	rc = set->fd < 0 ? -errno : uv_poll_init(loop, &set->poll, set->fd);
	if (rc) {
		if (set->fd >= 0)
			close(set->fd);
		free(set);
		return rc;
	}
	set->poll.data = set;
	uv_poll_start(&set->poll, UV_READABLE, on_poll);
	*out = set;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void epoll_set_close(struct epoll_set *set)
{
	if (!set)
		return;
	uv_close((uv_handle_t *)&set->poll, on_closed);
	close(set->fd);
}

static int control(struct epoll_set *set, int op, struct watched_fd *e,
		   int events)
{
	struct epoll_event event = { .events = EPOLLET, .data.ptr = e };

	if (events & UV_READABLE)
		event.events |= EPOLLIN | EPOLLRDHUP;
	if (events & UV_WRITABLE)
		event.events |= EPOLLOUT;
	return epoll_ctl(set->fd, op, e->fd, &event) ? -errno : 0;
}

int epoll_set_add(struct epoll_set *set, struct watched_fd *e, int events)
{
	return control(set, EPOLL_CTL_ADD, e, events);
}

void epoll_set_change(struct epoll_set *set, struct watched_fd *e, int events)
{
	control(set, EPOLL_CTL_MOD, e, events);
}

void epoll_set_remove(struct epoll_set *set, struct watched_fd *e)
{
	control(set, EPOLL_CTL_DEL, e, 0);
	e->event = NULL; /* the entry may be in the list that is being reported */
}
