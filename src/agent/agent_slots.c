/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory as a way in and out of collectives: the eventfd by which ranks
 * wake the agent, and the futex by which the agent wakes the ranks of its node.
 *
 * Ranks hold the same open file as the agent and may make it blocking or empty
 * it between poll and read. So it is only read in a way that cannot block.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "libshm/slots.h"

struct agent_slots {
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
	struct agent *a = poll->data;

	(void)empty(a->slots->wake_fd);
	pmi_server_slots_input(a->server);
}

void agent_slots_wake(struct agent *a)
{
	syscall(SYS_futex, slots_futex(a->slots->memory), FUTEX_WAKE, INT_MAX,
		NULL, NULL, 0);
}

static void on_again(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	pmi_server_slots_input(a->server);
}

void agent_slots_again(struct agent *a)
{
	uv_timer_start(&a->slots->again, on_again, 0, 0);
}

/* ---- life ---- */

static int open_wake(struct agent *a, struct agent_slots *as)
{
	int rc;

	as->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (as->wake_fd < 0)
		return -errno;
	rc = empty(as->wake_fd);
	if (rc != -EAGAIN) /* EOPNOTSUPP: older than Linux 5.8 */
		return rc ? rc : -EIO;
	rc = uv_timer_init(loop_uv(a->loop), &as->again);
	rc = rc ? rc : uv_poll_init(loop_uv(a->loop), &as->poll, as->wake_fd);
	if (rc)
		return rc;
	as->poll.data = as->again.data = a;
	return uv_poll_start(&as->poll, UV_READABLE, on_wake);
}

static int open_slots(struct agent *a, struct agent_slots *as)
{
	uint32_t count;
	int rc;

	layout_ranks_at(a->step->layout, a->step->position, &count);
	rc = slots_create(&as->memory, a->region, count);
	return rc ? rc : open_wake(a, as);
}

int agent_slots_open(struct agent *a)
{
	struct agent_slots *as;
	int rc;

	if (!a->region)
		return 0;
	as = calloc(1, sizeof(*as));
	if (!as)
		return -ENOMEM;
	as->wake_fd = -1;
	a->slots = as;
	rc = open_slots(a, as);
	if (rc)
		log_debug(a->log, "ranks use their sockets only: %s",
			  strerror(-rc));
	else
		pmi_server_use_slots(a->server, as->memory, as->wake_fd);
	return 0;
}

void agent_slots_close(struct agent *a)
{
	if (!a->slots)
		return;
	agent_close_handle(&a->slots->poll);
	agent_close_handle(&a->slots->again);
}

void agent_slots_free(struct agent *a)
{
	if (!a->slots)
		return;
	slots_destroy(a->slots->memory);
	if (a->slots->wake_fd >= 0)
		close(a->slots->wake_fd);
	free(a->slots);
}
