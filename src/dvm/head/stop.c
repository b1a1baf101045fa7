/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of the head: it ends tasks whose time to finish is over, gives up nodes that
 * do not come, and stops when it is told to.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "dvm/head/head_main.h"

void stop_begin(struct head_main *h)
{
	h->stops = true;
	dvm_head_stop(h->head, head_now(h)); /* a turn follows */
}

/* Running tasks have time to finish; a second signal does not wait for that. */
static void on_terminate(uv_signal_t *handle, int number)
{
	struct head_main *h = handle->data;

	if (h->ready && !h->stops && !h->leaving)
		stop_begin(h);
	else
		head_fail(h, "the head was ended by signal %d", number);
}

/* A turn follows. */
static void on_alarm(uv_timer_t *timer)
{
}

void stop_forget_hold(struct head_main *h)
{
	if (h->hold < 0)
		return;
	uv_poll_stop(&h->hold_watch);
	close(h->hold);
	h->hold = -1;
	if (h->head)
		dvm_head_await_starter(h->head, false);
}

/* The tasks stay in the journal, for the next head. */
void stop_without_clients(struct head_main *h)
{
	if (!h->options.ends || h->hold >= 0 || h->clients || h->leaving || h->stops)
		return;
	h->stops = true;
	clients_refuse(h);
	dvm_head_stop_now(h->head, head_now(h)); /* a turn follows */
}

/* The process that starts this DVM, or the client for which it was started, has gone. */
static void on_hold_gone(uv_poll_t *handle, int status, int events)
{
	struct head_main *h = handle->data;

	stop_forget_hold(h);
	if (!h->ready && !h->leaving)
		head_fail(h, "the process that has started it was ended");
	else
		stop_without_clients(h);
}

static int watch_hold(struct head_main *h)
{
	int rc;

	h->hold_watch.data = h;
	if (h->hold < 0)
		return 0;
	rc = uv_poll_init(loop_uv(h->loop), &h->hold_watch, h->hold);
	return rc ? rc : uv_poll_start(&h->hold_watch, UV_DISCONNECT, on_hold_gone);
}

int stop_open(struct head_main *h)
{
	uv_loop_t *uv = loop_uv(h->loop);

	h->alarm.data = h->terminate.data = h;
	uv_timer_init(uv, &h->alarm);
	uv_signal_init(uv, &h->terminate);
	return uv_signal_start(&h->terminate, on_terminate, SIGTERM) ? -EIO : watch_hold(h);
}

void stop_turn(struct head_main *h)
{
	uint64_t at = dvm_head_deadline(h->head), now = head_now(h).ms;

	if (head_tree_deadline(h) < at)
		at = head_tree_deadline(h);
	if (h->growing && h->grow_until < at)
		at = h->grow_until;
	if (at == UINT64_MAX)
		uv_timer_stop(&h->alarm);
	else
		uv_timer_start(&h->alarm, on_alarm, at > now ? at - now : 0, 0);
}

void stop_close(struct head_main *h)
{
	uv_close((uv_handle_t *)&h->alarm, NULL);
	uv_close((uv_handle_t *)&h->terminate, NULL);
	if (h->hold_watch.type) /* watching was begun */
		uv_close((uv_handle_t *)&h->hold_watch, NULL);
}
