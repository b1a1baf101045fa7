/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory as a way in and out of collectives: the eventfd by which ranks
 * wake the agent, and the futex by which the agent wakes the ranks of its node.
 *
 * Ranks hold the same open file as the agent and may make it blocking or empty
 * it between poll and read. So it is only read in a way that cannot block.
 */
#include "agent/step/slot_wakes.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libcoll/layout.h"
#include "libio/fd.h"
#include "libshm/slots.h"

struct slot_wakes {
	struct slots *memory;
	uv_poll_t poll;
	uv_timer_t again;
	int wake_fd;
};

/* 0 or a negative errno: -EAGAIN when nobody has written. */
static int empty(int fd)
{
	uint64_t count;
	struct iovec iov = { &count, sizeof(count) };

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT) < 0 ? -errno : 0;
}

static void on_wake(uv_poll_t *poll, int status, int events)
{
	struct service *s = poll->data;

	(void)empty(s->wakes->wake_fd);
	pmi_server_slots_input(s->server);
}

void slot_wakes_wake(void *service)
{
	struct service *s = service;

	syscall(SYS_futex, slots_futex(s->wakes->memory), FUTEX_WAKE, INT_MAX,
		NULL, NULL, 0);
}

static void on_again(uv_timer_t *timer)
{
	struct service *s = timer->data;

	pmi_server_slots_input(s->server);
}

void slot_wakes_again(void *service)
{
	struct service *s = service;

	uv_timer_start(&s->wakes->again, on_again, 0, 0);
}

/* ---- life ---- */

static int open_wake(struct service *s, struct slot_wakes *w)
{
	int rc;

	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake_fd < 0)
		return -errno;
	rc = empty(w->wake_fd);
	if (rc != -EAGAIN) /* EOPNOTSUPP: older than Linux 5.8 */
		return rc ? rc : -EIO;
	rc = uv_timer_init(loop_uv(s->node->loop), &w->again);
	rc = rc ? rc : uv_poll_init(loop_uv(s->node->loop), &w->poll, w->wake_fd);
	if (rc)
		return rc;
	w->poll.data = w->again.data = s;
	return uv_poll_start(&w->poll, UV_READABLE, on_wake);
}

static int open_slots(struct service *s, struct slot_wakes *w)
{
	uint32_t count;
	int rc;

	layout_ranks_at(s->step->layout, s->step->position, &count);
	rc = slots_create(&w->memory, s->region, count);
	return rc ? rc : open_wake(s, w);
}

int slot_wakes_open(struct service *s)
{
	struct slot_wakes *w;
	int rc;

	if (!s->region)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->wake_fd = -1;
	s->wakes = w;
	rc = open_slots(s, w);
	if (rc)
		log_info(s->node->log, "ranks of node %s use sockets instead of shared memory: %s",
			 node_own_name(s->node), strerror(-rc));
	else
		pmi_server_use_slots(s->server, w->memory, w->wake_fd);
	return 0;
}

void slot_wakes_close(struct service *s)
{
	if (!s->wakes)
		return;
	node_close_handle(&s->wakes->poll);
	node_close_handle(&s->wakes->again);
}

void slot_wakes_free(struct service *s)
{
	if (!s->wakes)
		return;
	slots_destroy(s->wakes->memory);
	fd_close(&s->wakes->wake_fd);
	free(s->wakes);
}
