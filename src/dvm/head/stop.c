/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of the head: it ends tasks whose time to finish is over, gives up nodes that
 * do not come, and stops when it is told to, or before its job ends.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "dvm/head/head_main.h"
#include "libutil/decimal.h"

#define MARGIN_S 5 /* for the last messages, before the job ends */

static void stop(struct headd *h)
{
	h->stops = true;
	dvm_head_stop(h->head, headd_now(h)); /* a turn follows */
}

/* Running tasks have time to finish; a second signal does not wait for that. */
static void on_terminate(uv_signal_t *handle, int number)
{
	struct headd *h = handle->data;

	if (h->ready && !h->stops && !h->leaving)
		stop(h);
	else
		headd_fail(h, "the head was ended by signal %d", number);
}

static void on_job_end(uv_timer_t *timer)
{
	stop(timer->data);
}

/* A turn follows. */
static void on_alarm(uv_timer_t *timer)
{
}

int stop_open(struct headd *h)
{
	uv_loop_t *uv = loop_uv(h->loop);

	h->alarm.data = h->job_end.data = h->terminate.data = h;
	uv_timer_init(uv, &h->alarm);
	uv_timer_init(uv, &h->job_end);
	uv_signal_init(uv, &h->terminate);
	return uv_signal_start(&h->terminate, on_terminate, SIGTERM);
}

/* Tasks have the grace time to finish, and after SIGTERM the same again. */
void stop_watch_job(struct headd *h)
{
	const char *text = getenv("SLURM_JOB_END_TIME");
	uint64_t end, before = 2 * h->options.grace_ms / 1000 + MARGIN_S;
	uint64_t now = (uint64_t)time(NULL);

	if (!h->options.journal.dir || !text ||
	    !decimal_u64(text, 1, INT64_MAX, &end) || end <= now + before)
		return;
	uv_timer_start(&h->job_end, on_job_end, (end - before - now) * 1000, 0);
}

void stop_turn(struct headd *h)
{
	uint64_t at = dvm_head_deadline(h->head), now = headd_now(h).ms;

	if (h->growing && h->grow_until < at)
		at = h->grow_until;
	if (at == UINT64_MAX)
		uv_timer_stop(&h->alarm);
	else
		uv_timer_start(&h->alarm, on_alarm, at > now ? at - now : 0, 0);
}

void stop_close(struct headd *h)
{
	uv_close((uv_handle_t *)&h->alarm, NULL);
	uv_close((uv_handle_t *)&h->job_end, NULL);
	uv_close((uv_handle_t *)&h->terminate, NULL);
}
