/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task of the head:
 *
 *   QUEUED -> PLACED -> LAUNCHED -> ENDED
 *
 * A try that is lost with a node, or that failed when there are tries left, is followed by
 * QUEUED. HELD comes before that while ranks of an earlier try may run. A task may be
 * cancelled, or found impossible, in each state. A task over several nodes of which one
 * fails or is lost is ended on the others.
 */
#include "dvm/core/head_private.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* ---- states and lists ---- */

bool task_may_move(enum task_state from, enum task_state to)
{
	static const bool legal[TASK_STATES][TASK_STATES] = {
		[TASK_QUEUED] = {
			[TASK_PLACED] = true,
			[TASK_LAUNCHED] = true, /* adopted: another head has launched it */
			[TASK_HELD] = true, [TASK_ENDED] = true,
		},
		[TASK_HELD] = { [TASK_QUEUED] = true, [TASK_ENDED] = true },
		[TASK_PLACED] = {
			[TASK_LAUNCHED] = true,
			/* lost before it was launched */
			[TASK_QUEUED] = true, [TASK_HELD] = true, [TASK_ENDED] = true,
		},
		[TASK_LAUNCHED] = {
			[TASK_QUEUED] = true, [TASK_HELD] = true, [TASK_ENDED] = true,
		},
	};

	return legal[from][to];
}

static struct head_task **list_of(struct dvm_head *h, enum task_state state,
				  size_t **count)
{
	switch (state) {
	case TASK_QUEUED:
	case TASK_HELD:
		*count = &h->nqueued;
		return &h->queued;
	case TASK_PLACED:
	case TASK_LAUNCHED:
		*count = &h->nrunning;
		return &h->running;
	default:
		*count = &h->nended;
		return &h->ended;
	}
}

static void enlist(struct dvm_head *h, struct head_task *t, enum task_state state)
{
	size_t *count;
	struct head_task **list = list_of(h, state, &count);

	t->state = state;
	DL_APPEND(*list, t);
	++*count;
}

void task_move(struct dvm_head *h, struct head_task *t, enum task_state state)
{
	size_t *count, *other;
	struct head_task **list = list_of(h, t->state, &count);

	assert(task_may_move(t->state, state));
	if (list == list_of(h, state, &other)) {
		t->state = state;
		return;
	}
	DL_DELETE(*list, t);
	--*count;
	enlist(h, t, state);
}

/* ---- life ---- */

void task_spec_free(struct task_spec *s)
{
	free(s->argv);
	free(s->input);
	free(s->path);
	free(s->error);
	free(s->cwd);
	free(s->name);
	free((void *)(uintptr_t)s->shape.placed);
	memset(s, 0, sizeof(*s));
}

void task_result_free(struct task_result *r)
{
	if (r->files)
		free(r->files->unkept);
	free(r->files);
	free(r->why);
	free(r->out);
	free(r->err);
	memset(r, 0, sizeof(*r));
}

static void forget_watchers(struct head_task *t)
{
	struct watcher *w, *next;

	LL_FOREACH_SAFE(t->watchers, w, next)
		free(w);
	t->watchers = NULL;
}

static void task_free(struct dvm_head *h, struct head_task *t)
{
	size_t *count;
	struct head_task **list = list_of(h, t->state, &count);

	DL_DELETE(*list, t);
	--*count;
	HASH_DEL(h->tasks, t);
	task_spec_free(&t->spec);
	profile_release(h, t->profile);
	task_result_free(&t->result);
	forget_watchers(t);
	output_end(h, t);
	spawned_free(t->spawned);
	free(t->placement);
	free(t);
}

void tasks_free(struct dvm_head *h)
{
	struct head_task *t, *next;

	HASH_ITER(hh, h->tasks, t, next)
		task_free(h, t);
}

struct head_task *task_submit(struct dvm_head *h, struct task_spec *spec,
			      struct head_profile *profile, int *error)
{
	struct head_task *t = calloc(1, sizeof(*t));

	*error = t ? 0 : -ENOMEM;
	if (t)
		*error = queue_add(h->queue, &t->item, &spec->shape,
				   spec->priority, spec->limit_s, h->now.ms);
	if (t && spec->shape.placed)
		spec->shape.placed = NULL; /* the queue's, or freed */
	if (*error) {
		task_spec_free(spec);
		free(t);
		return NULL;
	}
	t->id = h->next_id;
	h->next_id = head_id_after(h, t->id);
	t->spec = *spec;
	t->profile = profile;
	profile->users++;
	t->submitted_ns = h->now.wall_ns;
	HASH_ADD(hh, h->tasks, id, sizeof(t->id), t);
	enlist(h, t, TASK_QUEUED);
	h->retry = true;
	return t;
}

/* ---- the end ---- */

static void forget_oldest(struct dvm_head *h)
{
	while (h->nended > HEAD_KEPT_MAX) {
		wait_task_forgotten(h, h->ended);
		task_free(h, h->ended);
	}
}

/* Lists show the command of a task that has ended: the first bytes are kept. */
static void cut_command(struct head_task *t)
{
	char *kept;

	if (t->spec.argv_len <= COMMAND_KEPT_MAX)
		return;
	t->spec.argv[COMMAND_KEPT_MAX - 1] = '\0';
	t->spec.argv_len = COMMAND_KEPT_MAX;
	t->argv_cut = true;
	kept = realloc(t->spec.argv, COMMAND_KEPT_MAX);
	if (kept)
		t->spec.argv = kept;
}

void task_end(struct dvm_head *h, struct head_task *t)
{
	spawned_end(h, t);
	queue_done(h->queue, &t->item);
	t->ended_ns = t->ended_ns ? t->ended_ns : h->now.wall_ns;
	t->result.cancelled = t->cancelled;
	h->done++;
	if (t->result.status && !t->cancelled)
		h->failed++;
	t->waited |= t->tied || t->spawned; /* others have nothing to do with it */
	task_move(h, t, TASK_ENDED);
	journal_end(h, t);
	report_ended(h, t);
	forget_watchers(t);
	cut_command(t);
	forget_oldest(h);
}

void task_set_why(struct head_task *t, const char *why)
{
	free(t->result.why);
	t->result.why = strdup(why);
}

void task_end_queued(struct dvm_head *h, struct head_task *t)
{
	if (t->state == TASK_QUEUED)
		queue_remove(h->queue, &t->item);
	h->retry = true; /* others may have waited behind it */
	task_end(h, t);
}

void task_undo(struct dvm_head *h, struct head_task *t)
{
	queue_remove(h->queue, &t->item);
	queue_done(h->queue, &t->item);
	h->next_id = t->id;
	task_free(h, t);
}

/*
 * End a task that will not run, with 127, as a shell does for a program that it cannot
 * start.
 */
static void end_unstarted(struct dvm_head *h, struct head_task *t, const char *why)
{
	t->result.not_started = true;
	t->result.status = 127 << 8;
	if (!t->result.why)
		task_set_why(t, why);
	task_end_queued(h, t);
}

void tasks_fail_impossible(struct dvm_head *h)
{
	struct queue_item *item;

	if (h->now.ms < h->hopeless_ms || (h->journal.on && head_has_lost_all(h)))
		return;
	while ((item = queue_impossible(h->queue, h->ledger)))
		end_unstarted(h, task_of_item(item), "all nodes that could run the task are lost");
}

/* ---- signals ---- */

void task_signal_parts(struct dvm_head *h, const struct head_task *t,
			      uint32_t number)
{
	const struct dvm_msg m = {
		.type = DVM_SIGNAL,
		.signal = { t->id, t->instance, number },
	};

	for (uint32_t i = 0; t->state == TASK_LAUNCHED && i < t->placement->count; i++)
		head_queue_msg(h, t->placement->parts[i].node, &m);
}

void task_cancel(struct dvm_head *h, struct head_task *t)
{
	if (t->state == TASK_ENDED || t->cancelled)
		return;
	t->cancelled = true;
	spawned_cancel(h, t);
	if (t->state == TASK_QUEUED) {
		end_unstarted(h, t, "the task was cancelled before it started");
		return;
	}
	journal_cancel(h, t);
	task_signal_parts(h, t, 0);
}

/* ---- tasks that are held ---- */

void task_hold(struct dvm_head *h, struct head_task *t)
{
	task_move(h, t, TASK_HELD);
	queue_remove(h->queue, &t->item);
}

void task_end_lost(struct dvm_head *h, struct head_task *t, int32_t status, const char *why)
{
	t->result.status = status;
	task_set_why(t, why);
	task_end_queued(h, t);
}

/* A task that is not run again keeps the time of its start. */
static void release(struct dvm_head *h, struct head_task *t)
{
	if (t->result.why) {
		task_end_queued(h, t);
	} else if (t->cancelled) {
		task_end_lost(h, t, SIGTERM, "the task was cancelled, or its client was lost with the head");
	} else if (t->placed_ns) {
		task_end_lost(h, t, SIGKILL, "the task was running when the head was lost, and --once allows no second start");
	} else {
		task_move(h, t, TASK_QUEUED);
		queue_put_back(h->queue, &t->item);
		h->retry = true;
	}
}

/* Tasks that waited first come first: the last is put before all others first. */
bool tasks_release(struct dvm_head *h, bool cancelled)
{
	struct head_task *t = h->queued ? h->queued->prev : NULL, *before;
	bool any = false;

	for (; t; t = before) {
		before = t == h->queued ? NULL : t->prev;
		if (t->state != TASK_HELD || (cancelled && !t->cancelled))
			continue;
		release(h, t);
		any = true;
	}
	tasks_fail_impossible(h);
	return any;
}

/* ---- clients that go ---- */

void tasks_lose_client(struct dvm_head *h, uint32_t client)
{
	struct head_task *t, *next;

	DL_FOREACH_SAFE(h->queued, t, next)
		if (t->tied == client)
			task_cancel(h, t);
	DL_FOREACH_SAFE(h->running, t, next)
		if (t->tied == client)
			task_cancel(h, t);
}
