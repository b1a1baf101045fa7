/* SPDX-License-Identifier: BSD-3-Clause */
/* The device, its completion queue and its memory. */
#include "verbs_device.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "libio/clock.h"

/* An entry for every work request that can be under way, and more. */
#define CQ_ENTRIES (SIDES * (2 * (VERBS_RECEIVES + 1)) + 2 * VERBS_READY_RECEIVES)
#define SIDE_LEN \
	((size_t)(VERBS_RECEIVES + VERBS_MESSAGES) * TRANSPORT_MESSAGE_MAX)
#define MEMORY_LEN \
	(SIDES * SIDE_LEN + (size_t)(VERBS_READY_RECEIVES + SIDES) * VERBS_READY_LEN)
/* Longer than a message takes, shorter than it takes to sleep and wake up. */
#define SPIN_NS 20000
#define HOP_LIMIT 64

/* ---- buffers ---- */

char *verbs_receive_buffer(const struct verbs_device *d, enum ring_side side,
			   unsigned buffer)
{
	return d->memory + side * SIDE_LEN +
	       (size_t)buffer * TRANSPORT_MESSAGE_MAX;
}

char *verbs_send_buffer(const struct verbs_device *d, enum ring_side side,
			unsigned buffer)
{
	return verbs_receive_buffer(d, side, VERBS_RECEIVES + buffer);
}

char *verbs_listener_buffer(const struct verbs_device *d, unsigned buffer)
{
	return d->memory + SIDES * SIDE_LEN + (size_t)buffer * VERBS_READY_LEN;
}

/* ---- open and close ---- */

int verbs_cannot(char *why, const char *what, int rc)
{
	if (rc)
		snprintf(why, TRANSPORT_REASON_MAX, "cannot %s: %s", what,
			 strerror(-rc));
	return rc;
}

/* The usual reason why memory cannot be registered is a limit. */
static int say_registration(char *why, int error)
{
	struct rlimit limit;

	if ((error != ENOMEM && error != EPERM) ||
	    getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return verbs_cannot(why, "register memory", -error);
	snprintf(why, TRANSPORT_REASON_MAX,
		 "cannot register %zu KiB: RLIMIT_MEMLOCK is %ju KiB; "
		 "ulimit -l unlimited, or LimitMEMLOCK=infinity in slurmd's unit",
		 MEMORY_LEN / 1024, (uintmax_t)limit.rlim_cur / 1024);
	return -error;
}

static int register_memory(struct verbs_device *d, char *why)
{
	void *memory = mmap(NULL, MEMORY_LEN, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return verbs_cannot(why, "allocate buffers", -errno);
	d->memory = memory;
	/* A child must not take the pages away from the adapter. */
	madvise(memory, MEMORY_LEN, MADV_DONTFORK);
	d->mr = d->calls.reg_mr(d->pd, memory, MEMORY_LEN,
				IBV_ACCESS_LOCAL_WRITE);
	return d->mr ? 0 : say_registration(why, errno);
}

int verbs_device_open(struct verbs_device *d, char *why)
{
	struct verbs_calls *calls = &d->calls;
	int rc = verbs_settings_read(&d->settings, why);

	if (!rc && !calls->get_device_list)
		rc = verbs_calls_load(calls, why);
	if (!rc)
		rc = verbs_port_find(calls, &d->settings, &d->port, why);
	if (rc)
		return rc;
	d->pd = calls->alloc_pd(d->port.context);
	if (!d->pd)
		return verbs_cannot(why, "allocate a protection domain", -errno);
	rc = register_memory(d, why);
	if (rc)
		return rc;
	d->channel = calls->create_comp_channel(d->port.context);
	if (!d->channel)
		return verbs_cannot(why, "create a completion channel", -errno);
	d->cq = calls->create_cq(d->port.context, CQ_ENTRIES, NULL, d->channel,
				 0);
	return d->cq ? 0 : verbs_cannot(why, "create a completion queue", -errno);
}

void verbs_device_close(struct verbs_device *d)
{
	if (d->cq)
		d->calls.destroy_cq(d->cq);
	if (d->channel)
		d->calls.destroy_comp_channel(d->channel);
	if (d->mr)
		d->calls.dereg_mr(d->mr);
	if (d->memory)
		munmap(d->memory, MEMORY_LEN);
	if (d->pd)
		d->calls.dealloc_pd(d->pd);
	if (d->port.context)
		d->calls.close_device(d->port.context);
}

void verbs_device_route(const struct verbs_device *d, uint16_t lid,
			const union ibv_gid *gid, struct ibv_ah_attr *out)
{
	const struct verbs_port *port = &d->port;

	memset(out, 0, sizeof(*out));
	out->dlid = lid;
	out->sl = d->settings.service_level;
	out->port_num = port->number;
	/* Within one InfiniBand subnet the local identifier is enough. */
	if (port->fabric == FABRIC_INFINIBAND && lid &&
	    gid->global.subnet_prefix == port->gid.global.subnet_prefix)
		return;
	out->is_global = 1;
	out->grh.dgid = *gid;
	out->grh.sgid_index = port->gid_index;
	out->grh.hop_limit = HOP_LIMIT;
	out->grh.traffic_class = d->settings.traffic_class;
}

/* ---- completions and events ---- */

int verbs_device_poll(struct verbs_device *d, struct ibv_wc *wc, int n)
{
	int count = d->found_count;

	if (!count)
		return ibv_poll_cq(d->cq, n, wc);
	if (count > n)
		count = n;
	memcpy(wc, d->found, count * sizeof(*wc));
	d->found_count -= count;
	memmove(d->found, d->found + count, d->found_count * sizeof(*wc));
	return count;
}

static bool look(struct verbs_device *d)
{
	int n = ibv_poll_cq(d->cq, sizeof(d->found) / sizeof(*d->found),
			    d->found);

	d->found_count = n > 0 ? n : 0;
	/* A queue that cannot be polled will never have anything. */
	if (n < 0) {
		d->dead = true;
		snprintf(d->trouble, sizeof(d->trouble),
			 "%.32s: completion queue in error", d->port.device);
	}
	return n != 0;
}

static bool spin(struct verbs_device *d)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC);

	do {
		if (look(d))
			return true;
	} while (clock_ns(CLOCK_MONOTONIC) - begin < SPIN_NS);
	return false;
}

/* A completion after this makes the channel readable. */
static bool arm(struct verbs_device *d)
{
	if (d->armed)
		return true;
	d->armed = ibv_req_notify_cq(d->cq, 0) == 0;
	return d->armed;
}

static void take_cq_event(struct verbs_device *d)
{
	struct ibv_cq *cq;
	void *context;

	if (d->calls.get_cq_event(d->channel, &cq, &context) == 0)
		d->calls.ack_cq_events(cq, 1);
	d->armed = false;
}

void verbs_device_wait(struct verbs_device *d, int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = d->channel->fd, .events = POLLIN },
		{ .fd = d->port.context->async_fd, .events = POLLIN },
	};

	if (d->found_count || d->dead || timeout_ms <= 0)
		return;
	/* Look again after arming: what came before makes no event. */
	if (spin(d) || !arm(d) || look(d) || poll(fds, 2, timeout_ms) <= 0)
		return;
	if (fds[0].revents)
		take_cq_event(d);
	d->has_event = fds[1].revents != 0;
}

static void take_event(struct verbs_device *d, const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_PORT_ERR:
		if (e->element.port_num == d->port.number)
			snprintf(d->trouble, sizeof(d->trouble),
				 "port %d of %.32s is down", d->port.number,
				 d->port.device);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		if (e->element.port_num == d->port.number && !d->dead)
			d->trouble[0] = '\0';
		break;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_CQ_ERR:
		d->dead = true;
		snprintf(d->trouble, sizeof(d->trouble), "%.16s: %.40s",
			 d->port.device, d->calls.event_type_str(e->event_type));
		break;
	default: /* events of a queue pair show in its completions */
		break;
	}
}

bool verbs_device_events(struct verbs_device *d)
{
	struct pollfd fd = { .fd = d->port.context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool any = false;

	d->has_event = false;
	while (poll(&fd, 1, 0) > 0 &&
	       d->calls.get_async_event(d->port.context, &event) == 0) {
		take_event(d, &event);
		d->calls.ack_async_event(&event);
		any = true;
	}
	return any;
}
