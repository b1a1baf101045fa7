/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that wait for tasks. A client confirms the results that it got with
 * {"op": "waited"}; until then a later "unwaited" covers these tasks, too, also of another
 * head. The head keeps the last HEAD_KEPT_MAX results. It only counts earlier tasks for
 * which no client has waited.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

static bool has_failed(const struct head_task *t)
{
	return task_failed_so_far(t);
}

static void add(struct unwaited *to, const struct unwaited *n)
{
	to->tasks += n->tasks;
	to->failed += n->failed;
}

/* ---- watching ---- */

int task_watch(struct dvm_head *h, struct head_task *t, uint32_t client)
{
	struct watcher *w;

	if (t->state == TASK_ENDED) {
		report_ended_to(h, t, client);
		return 0;
	}
	if (!t->watcher)
		t->watcher = client;
	FOR_EACH_WATCHER(t, there)
		if (there.client == client)
			return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->client = client;
	LL_PREPEND(t->watchers, w);
	return 0;
}

/* ---- requests ---- */

/* The number of kept results that the client will get. */
static size_t tell_ended(struct dvm_head *h, const struct head_client *c)
{
	struct head_task *t;
	size_t n = 0;

	DL_FOREACH(h->ended, t) {
		if (t->waited)
			continue;
		report_ended_to(h, t, c->number);
		n++;
	}
	return n;
}

/* The client has those that are not kept, until it confirms them or goes. */
static void give_unkept(struct dvm_head *h, struct head_client *c)
{
	add(&c->unkept, &h->unkept);
	h->unkept = (struct unwaited){ 0 };
}

size_t wait_unwaited(struct dvm_head *h, struct head_client *c)
{
	size_t n = tell_ended(h, c);

	give_unkept(h, c);
	return n;
}

static void confirm(struct dvm_head *h, struct head_task *t)
{
	const struct journal_waited w = { t->id, 1, has_failed(t) };

	t->waited = true;
	journal_waited(h, &w);
}

void wait_confirm(struct dvm_head *h, const struct head_client *c, uint64_t task)
{
	struct head_task *t = task_find(h, task);

	if (t && t->state == TASK_ENDED && t->told == c->number && !t->waited)
		confirm(h, t);
}

void wait_confirm_all(struct dvm_head *h, struct head_client *c)
{
	const struct journal_waited w = { 0, c->unkept.tasks, c->unkept.failed };
	struct head_task *t;

	if (w.count)
		journal_waited(h, &w);
	c->unkept = (struct unwaited){ 0 };
	DL_FOREACH(h->ended, t)
		if (t->told == c->number && !t->waited)
			confirm(h, t);
}

/* ---- what is not kept ---- */

void wait_task_forgotten(struct dvm_head *h, const struct head_task *t)
{
	struct head_client *c = t->told ? client_find(h, t->told) : NULL;
	const struct unwaited one = { 1, has_failed(t) };

	if (!t->waited)
		add(c ? &c->unkept : &h->unkept, &one);
}

void wait_client_gone(struct dvm_head *h, struct head_client *c)
{
	add(&h->unkept, &c->unkept);
}

struct unwaited wait_unkept(const struct dvm_head *h)
{
	struct unwaited all = h->unkept;
	const struct head_client *c;

	for (c = h->clients; c; c = c->hh.next)
		add(&all, &c->unkept);
	return all;
}

static uint64_t less(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

void wait_read(struct dvm_head *h, const struct journal_waited *r)
{
	struct head_task *t = r->task ? task_find(h, r->task) : NULL;

	if (t) {
		t->waited = true;
		return;
	}
	h->unkept.tasks = less(h->unkept.tasks, r->count);
	h->unkept.failed = less(h->unkept.failed, r->failed);
}
