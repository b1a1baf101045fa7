/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons that this head has lost while it lives, and whose ranks may still run: somebody has
 * killed the daemon, the network has failed, or the daemon hangs. The head calls such a daemon
 * again and again, until its ranks have ended or its lease is over. A refused call proves
 * that they have ended: daemon and zygote hold the socket as long as they have ranks. A daemon
 * that waits for another head (up --orphan) goes on with its ranks, and each call tells it to
 * end. A head that has been taken over calls nobody: the next one has these daemons. It
 * sees that when the first of them leaves, before a turn starts tasks again elsewhere.
 */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "dvm/head/head_main.h"

#define FIRST_MS 1000 /* Slurm kills the processes of a step one after the other */
#define LAST_MS 4000  /* a cancel that waits for ten seconds sees some of them */

struct ending {
	struct head_main *head;
	uint32_t position;
	uint32_t wait_ms; /* before the next call */
	uv_timer_t timer;
	struct ending *prev, *next;
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void forget(struct ending *e)
{
	DL_DELETE(e->head->endings, e);
	uv_close((uv_handle_t *)&e->timer, on_closed);
}

static void on_timer(uv_timer_t *timer);

static void wait_for_next(struct ending *e)
{
	uv_timer_start(&e->timer, on_timer, e->wait_ms, 0);
	e->wait_ms = 2 * e->wait_ms < LAST_MS ? 2 * e->wait_ms : LAST_MS;
}

static void call(struct ending *e)
{
	struct head_main *h = e->head;
	struct dvm_address where;

	dvm_head_node_where(h->head, e->position, &where);
	if (nodes_call_to_end(h, e->position, &where))
		wait_for_next(e);
}

static void on_timer(uv_timer_t *timer)
{
	struct ending *e = timer->data;
	struct head_main *h = e->head;

	if (!head_journal_is_ours(h))
		return; /* these end with this head */
	if (dvm_head_node_may_run(h->head, e->position) && !h->leaving)
		call(e);
	else
		forget(e);
}

void ends_begin(struct head_main *h, uint32_t position)
{
	struct ending *e;

	if (!h->ready || h->leaving || !head_journal_is_ours(h) ||
	    !dvm_head_node_may_run(h->head, position))
		return;
	e = calloc(1, sizeof(*e));
	if (!e) /* its lease ends it */
		return;
	*e = (struct ending){ .head = h, .position = position, .wait_ms = FIRST_MS };
	uv_timer_init(loop_uv(h->loop), &e->timer);
	e->timer.data = e;
	DL_APPEND(h->endings, e);
	wait_for_next(e);
}

void ends_called(struct head_main *h, uint32_t position, int error)
{
	struct ending *e;

	if (error == -ECONNREFUSED)
		dvm_head_node_gone(h->head, position, head_now(h));
	DL_FOREACH(h->endings, e)
		if (e->position == position) {
			wait_for_next(e);
			return;
		}
}

void ends_close(struct head_main *h)
{
	while (h->endings)
		forget(h->endings);
}
