/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the head, as they come and go, and their request to end the DVM. */
#include "dvm/core/head_private.h"
#include "libutil/plural.h"

#include <stdlib.h>

#include <utlist.h>

#define ENDED_MAX ((size_t)1 << 30) /* bytes of events of a turn */

void dvm_head_client_opened(struct dvm_head *h, uint32_t client)
{
	struct head_client *c = calloc(1, sizeof(*c));

	if (!c) {
		client_break_off(h, client);
		return;
	}
	c->number = client;
	buf_init(&c->ended, ENDED_MAX);
	HASH_ADD(hh, h->clients, number, sizeof(c->number), c);
	if (!c->hh.tbl) {
		free(c);
		client_break_off(h, client);
	}
}

void dvm_head_client_closed(struct dvm_head *h, uint32_t client,
			    struct dvm_time now)
{
	struct head_client *c = client_find(h, client);

	h->now = now;
	if (!c)
		return;
	submit_complete(h, c);
	HASH_DEL(h->clients, c);
	tasks_lose_client(h, client);
	wait_client_gone(h, c);
	for (size_t i = 0; i < c->nprofiles; i++)
		profile_release(h, c->profiles[i]);
	free(c->profiles);
	buf_free(&c->ended);
	client_drop_held(c);
	free(c);
}

/* ---- down ---- */

void dvm_head_await_starter(struct dvm_head *h, bool awaited)
{
	h->awaits_starter = awaited;
}

int head_other_clients(const struct dvm_head *h, const struct head_client *c)
{
	const struct head_client *o;
	int others = h->awaits_starter;

	for (o = h->clients; o; o = o->hh.next)
		others += o != c && !o->leaves;
	return others;
}

static void cancel_list(struct dvm_head *h, struct head_task *list)
{
	struct head_task *t, *next;

	DL_FOREACH_SAFE(list, t, next)
		task_cancel(h, t);
}

bool head_down(struct dvm_head *h, const struct head_client *c, enum head_work work,
	       struct head_refusal *no)
{
	size_t n = h->nqueued + h->nrunning;

	if ((work == WORK_KEEP || work == WORK_STOP) && !h->journal.on)
		return head_refuse(no, "keeping tasks needs a journal, and this DVM has none: use --wait or --cancel");
	if (n && work == WORK_REFUSE)
		return head_refuse(no, "%zu task%s %s not ended (%zu running, %zu queued): use --wait or --cancel%s",
				   n, plural(n), has_or_have(n), h->nrunning, h->nqueued,
				   h->journal.on ? ", or --keep" : "");
	if (work == WORK_CANCEL) {
		cancel_list(h, h->queued);
		cancel_list(h, h->running);
	}
	if (work == WORK_STOP)
		dvm_head_stop_now(h, h->now);
	else if (work == WORK_KEEP)
		dvm_head_stop(h, h->now);
	else
		head_drain(h);
	head_down_begins(h, c->number);
	return true;
}
