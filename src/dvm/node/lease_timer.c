/* SPDX-License-Identifier: BSD-3-Clause */
/* The lease of this node by the clock of this machine: lease_timer.h. */
#include "dvm/node/lease_timer.h"

#include <time.h>

#include "libio/clock.h"

/* A clock that goes on while the machine sleeps: another node may get the work then. */
static uint64_t now_ms(void)
{
	return (uint64_t)clock_ns(CLOCK_BOOTTIME) / 1000000;
}

static void on_tick(uv_timer_t *timer)
{
	struct lease_timer *t = timer->data;
	uint64_t now = now_ms(), end;

	if (lease_ask(&t->lease, now))
		t->ops.ask(t->arg, now);
	end = lease_end(&t->lease);
	if (now >= end)
		t->ops.over(t->arg, now - end);
}

void lease_timer_init(struct lease_timer *t, uv_loop_t *loop,
		      const struct lease_timer_ops *ops, void *arg)
{
	t->ops = *ops;
	t->arg = arg;
	t->timer.data = t;
	uv_timer_init(loop, &t->timer);
}

void lease_timer_begin(struct lease_timer *t, uint32_t length_ms)
{
	uint32_t tick;

	lease_begin(&t->lease, length_ms, now_ms());
	tick = lease_tick(&t->lease);
	if (tick)
		uv_timer_start(&t->timer, on_tick, 0, tick);
}

void lease_timer_answered(struct lease_timer *t, uint64_t sent_ms)
{
	lease_answered(&t->lease, sent_ms, now_ms());
}

uint64_t lease_timer_left(const struct lease_timer *t)
{
	uint64_t now = now_ms(), end = lease_end(&t->lease);

	return end == UINT64_MAX ? end : end > now ? end - now : 0;
}

void lease_timer_close(struct lease_timer *t)
{
	if (!uv_is_closing((uv_handle_t *)&t->timer))
		uv_close((uv_handle_t *)&t->timer, NULL);
}
