/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task of the head:
 *
 *   QUEUED -> PLACED -> LAUNCHED -> ENDED
 *
 * A try that is lost with a node, or that failed when there are tries left, is followed by
 * QUEUED. HELD comes before that while ranks of an earlier try may run, and COMING while
 * its submit is not complete. A task may be
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

/* A million tasks may wait: what a task has only later belongs into struct task_run. */
_Static_assert(sizeof(struct head_task) <= 232, "a waiting task has few bytes");

/* ---- states and lists ---- */

bool task_may_move(enum task_state from, enum task_state to)
{
	static const bool legal[TASK_STATES][TASK_STATES] = {
		[TASK_QUEUED] = {
			[TASK_PLACED] = true,
			[TASK_LAUNCHED] = true, /* adopted: another head has launched it */
			[TASK_HELD] = true, [TASK_COMING] = true, [TASK_ENDED] = true,
		},
		[TASK_COMING] = { [TASK_QUEUED] = true, [TASK_ENDED] = true },
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
	case TASK_COMING:
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

	t->state = (uint8_t)state;
	DL_APPEND(*list, t);
	++*count;
}

void task_move(struct dvm_head *h, struct head_task *t, enum task_state state)
{
	size_t *count, *other;
	struct head_task **list = list_of(h, (enum task_state)t->state, &count);

	assert(task_may_move((enum task_state)t->state, state));
	if (list == list_of(h, state, &other)) {
		t->state = (uint8_t)state;
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

int task_begin_run(struct head_task *t)
{
	if (!t->run)
		t->run = calloc(1, sizeof(*t->run));
	return t->run ? 0 : -ENOMEM;
}

static void free_output(struct task_run *r)
{
	if (r->files)
		free(r->files->unkept);
	free(r->files);
	free(r->out);
	free(r->err);
}

void task_forget_result(struct head_task *t)
{
	const struct task_run keep = { .losses = t->run->losses };

	free(t->why);
	t->why = NULL;
	t->ended_ns = 0;
	t->status = 0;
	t->rank = 0;
	t->not_started = t->too_long = t->told_to_end = false;
	free_output(t->run);
	*t->run = keep;
}

static void forget_watchers(struct head_task *t)
{
	struct watcher *w, *next;

	LL_FOREACH_SAFE(t->watchers, w, next)
		free(w);
	t->watchers = NULL;
	t->watcher = 0;
}

static void run_free(struct task_run *r)
{
	if (!r)
		return;
	free_output(r);
	task_run_unplace(r);
	free(r);
}

static void task_free(struct dvm_head *h, struct head_task *t)
{
	size_t *count;
	struct head_task **list = list_of(h, (enum task_state)t->state, &count);

	if (t->state == TASK_COMING)
		submit_forget(h, t);
	DL_DELETE(*list, t);
	--*count;
	task_remove(h, t);
	profile_release(h, t->profile);
	forget_watchers(t);
	output_end(h, t);
	spawned_free(t->spawned);
	run_free(t->run);
	free(t->texts);
	free(t->argv);
	free(t->why);
	free(t);
}

void tasks_free(struct dvm_head *h)
{
	while (h->queued)
		task_free(h, h->queued);
	while (h->running)
		task_free(h, h->running);
	while (h->ended)
		task_free(h, h->ended);
}

/* ---- submitting ---- */

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copy a text to *at, which moves behind it. */
static const char *move_text(char **at, const char *text)
{
	char *copy = *at;

	if (!text)
		return NULL;
	memcpy(copy, text, size_of(text));
	*at += size_of(text);
	return copy;
}

/* 0 or -ENOMEM. */
static int take_texts(struct head_task *t, const struct task_spec *s)
{
	size_t bytes = size_of(s->path) + size_of(s->error) + size_of(s->cwd) +
		       size_of(s->name) + s->input_len;
	char *at;

	if (!bytes)
		return 0;
	t->texts = malloc(sizeof(*t->texts) + bytes);
	if (!t->texts)
		return -ENOMEM;
	at = t->texts->bytes;
	t->texts->path = move_text(&at, s->path);
	t->texts->error = move_text(&at, s->error);
	t->texts->cwd = move_text(&at, s->cwd);
	t->texts->name = move_text(&at, s->name);
	t->texts->input = s->input_len ? memcpy(at, s->input, s->input_len) : NULL;
	t->texts->input_len = s->input_len;
	return 0;
}

/* The arguments, in no more memory than they need. */
static void take_argv(struct head_task *t, struct task_spec *s)
{
	char *fits = s->argv ? realloc(s->argv, s->argv_len) : NULL;

	t->argv = fits ? fits : s->argv;
	t->argv_len = (uint32_t)s->argv_len;
	s->argv = NULL;
}

static void take_numbers(struct head_task *t, const struct task_spec *s)
{
	t->ranks = s->shape.ranks;
	t->priority = s->priority;
	t->limit_s = s->limit_s;
	t->retries = s->retries;
	t->number = s->number;
	t->output = (uint8_t)s->output;
	t->pmi = s->pmi;
	t->append = s->append;
	t->preloaded = s->preloaded;
}

/* 0 or -ENOMEM. */
static int take_spec(struct dvm_head *h, struct head_task *t, struct task_spec *spec)
{
	int rc = take_texts(t, spec);

	if (rc)
		return rc;
	rc = queue_add(h->queue, &t->item, &spec->shape, spec->priority, spec->limit_s,
		       h->now.ms);
	spec->shape.placed = NULL; /* the queue's, or freed */
	return rc;
}

struct head_task *task_submit(struct dvm_head *h, struct task_spec *spec,
			      struct head_profile *profile, int *error)
{
	struct head_task *t = calloc(1, sizeof(*t));

	*error = t ? take_spec(h, t, spec) : -ENOMEM;
	if (*error) {
		task_spec_free(spec);
		if (t)
			free(t->texts);
		free(t);
		return NULL;
	}
	t->id = h->next_id;
	h->next_id = head_id_after(h, t->id);
	take_argv(t, spec);
	take_numbers(t, spec);
	task_spec_free(spec);
	t->profile = profile;
	profile->users++;
	t->submitted_ns = h->now.wall_ns;
	task_add(h, t);
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

	if (t->argv_len <= COMMAND_KEPT_MAX)
		return;
	t->argv[COMMAND_KEPT_MAX - 1] = '\0';
	t->argv_len = COMMAND_KEPT_MAX;
	t->argv_cut = true;
	kept = realloc(t->argv, COMMAND_KEPT_MAX);
	if (kept)
		t->argv = kept;
}

void task_end(struct dvm_head *h, struct head_task *t)
{
	spawned_end(h, t);
	queue_done(h->queue, &t->item);
	t->ended_ns = t->ended_ns ? t->ended_ns : h->now.wall_ns;
	h->done++;
	if (t->status && !t->cancelled)
		h->failed++;
	t->waited = t->waited || t->tied || t->spawned; /* others have nothing to do with it */
	task_move(h, t, TASK_ENDED);
	journal_end(h, t);
	report_ended(h, t);
	forget_watchers(t);
	cut_command(t);
	forget_oldest(h);
}

void task_set_why(struct head_task *t, const char *why)
{
	free(t->why);
	t->why = strdup(why);
}

static void leave_queue(struct dvm_head *h, struct head_task *t)
{
	if (t->state == TASK_QUEUED)
		queue_remove(h->queue, &t->item);
	else if (t->state == TASK_COMING)
		submit_forget(h, t);
}

void task_end_queued(struct dvm_head *h, struct head_task *t)
{
	leave_queue(h, t);
	h->retry = true; /* others may have waited behind it */
	task_end(h, t);
}

void task_undo(struct dvm_head *h, struct head_task *t)
{
	leave_queue(h, t);
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
	t->not_started = true;
	t->status = 127 << 8;
	if (!t->why)
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
	const struct ledger_placement *where = task_run(t)->placement;

	for (uint32_t i = 0; t->state == TASK_LAUNCHED && i < where->count; i++)
		head_queue_msg(h, where->parts[i].node, &m);
}

void task_cancel(struct dvm_head *h, struct head_task *t)
{
	if (t->state == TASK_ENDED || t->cancelled)
		return;
	t->cancelled = true;
	spawned_cancel(h, t);
	if (t->state == TASK_QUEUED || t->state == TASK_COMING) {
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
	t->status = status;
	task_set_why(t, why);
	task_end_queued(h, t);
}

/* A task that is not run again keeps the time of its start. */
static void release(struct dvm_head *h, struct head_task *t)
{
	if (t->why) {
		task_end_queued(h, t);
	} else if (t->cancelled) {
		task_end_lost(h, t, SIGTERM, "the task was cancelled, or its client was lost with the head");
	} else if (task_run(t)->placed_ns) {
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
