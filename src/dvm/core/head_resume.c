/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A head that goes on with the journal of another one: it reads what that has written, and
 * settles what becomes of tasks that had not ended. Parts that nodes still hold go on:
 * head_adopt.c.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define OUTPUT_KEPT ((uint64_t)8 << 20) /* bytes of records behind the end of a task */

/* ---- reading ---- */

/* A profile of the journal, by its number there. */
struct old_profile {
	uint32_t number;
	struct head_profile *profile;
	UT_hash_handle hh;
};

/* A task that cannot run here: it has ended, still runs, or ends with why. */
struct unfit {
	uint64_t id;
	char why[256];
	UT_hash_handle hh;
};

struct replay {
	struct dvm_head *h;
	struct dvm_resumed *out;
	struct old_profile *profiles;
	struct unfit *unfits;
	struct adoption *adoption;
	bool left; /* the last head left no rank behind */
};

static char *text_of(const struct dvm_bytes *b)
{
	return strndup(b->len ? b->data : "", b->len);
}

static void read_counts(struct replay *r, const struct journal_counts *c)
{
	struct dvm_head *h = r->h;

	if (c->next_id > h->next_id)
		h->next_id = head_id_after(h, c->next_id - 1);
	if (c->line > h->line)
		h->line = c->line;
	h->done += c->done;
	h->failed += c->failed;
	h->unkept.tasks += c->unwaited;
	h->unkept.failed += c->unwaited_failed;
}

static struct head_profile *define(struct dvm_head *h,
				   const struct journal_profile *j)
{
	char *id = text_of(&j->id), *cwd = text_of(&j->cwd);
	char *outputs = j->outputs.len ? text_of(&j->outputs) : NULL;
	const struct profile_files files = { outputs, j->input };
	struct head_profile *p = NULL;
	struct buf env;

	buf_init(&env, DVM_COMMAND_MAX);
	if (id && cwd && !buf_append(&env, j->env.data, j->env.len))
		p = profile_define(h, id, cwd, &env, &j->limits, &files);
	buf_free(&env);
	free(id);
	free(cwd);
	free(outputs);
	return p;
}

static int read_profile(struct replay *r, const struct journal_profile *j)
{
	struct old_profile *old, *known;

	HASH_FIND(hh, r->profiles, &j->number, sizeof(j->number), known);
	if (known)
		return 0;
	old = calloc(1, sizeof(*old));
	if (!old)
		return -ENOMEM;
	old->number = j->number;
	old->profile = define(r->h, j);
	if (!old->profile) {
		free(old);
		return -ENOMEM;
	}
	/* The profile keeps its number, to which other records refer. */
	if (old->profile->users == 1) {
		old->profile->number = j->number;
		old->profile->recorded = 1;
	}
	if (j->number >= r->h->next_profile)
		r->h->next_profile = j->number + 1;
	HASH_ADD(hh, r->profiles, number, sizeof(old->number), old);
	if (old->hh.tbl)
		return 0;
	free(old);
	return -ENOMEM;
}

static int add_unfit(struct replay *r, uint64_t id, const char *why)
{
	struct unfit *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->id = id;
	snprintf(u->why, sizeof(u->why), "the DVM that resumed the journal cannot run the task: %s", why);
	HASH_ADD(hh, r->unfits, id, sizeof(u->id), u);
	if (u->hh.tbl)
		return 0;
	free(u);
	return -ENOMEM;
}

/*
 * An empty profile in place of one that is not in the journal. One use is counted; NULL: no
 * memory.
 */
static struct head_profile *no_profile(struct dvm_head *h)
{
	const struct journal_profile none = { .id = { "?", 1 }, .cwd = { "/", 1 } };

	return define(h, &none);
}

static struct head_task *queue_again(struct replay *r, const struct journal_submit *j,
				     char *why, size_t size)
{
	struct head_profile *p;
	struct old_profile *old;
	struct head_task *t = NULL;

	HASH_FIND(hh, r->profiles, &j->profile, sizeof(j->profile), old);
	p = old ? old->profile : no_profile(r->h);
	if (p)
		t = submit_again(r->h, &j->json, p, why, size);
	if (!old && t)
		snprintf(why, size, "the profile of the task is not in the journal");
	if (!old && p)
		profile_release(r->h, p);
	return t;
}

static int read_submit(struct replay *r, const struct journal_submit *j)
{
	struct dvm_head *h = r->h;
	struct head_task *t;
	char why[128] = "";

	if (j->task < h->next_id || j->task >= INT64_MAX)
		return 0;
	h->next_id = j->task;
	t = queue_again(r, j, why, sizeof(why));
	if (!t)
		return -ENOMEM;
	h->next_id = head_id_after(h, j->task);
	if (j->line > h->line)
		h->line = j->line;
	t->submitted_ns = j->submitted_ns;
	t->cancelled = t->waited = j->tied;
	return *why ? add_unfit(r, j->task, why) : 0;
}

static int read_start(struct replay *r, const struct journal_start *j)
{
	struct head_task *t = task_find(r->h, j->task);

	if (!t || t->state == TASK_ENDED)
		return 0;
	if (task_begin_run(t))
		return -ENOMEM;
	t->instance = j->instance;
	t->retries = j->retries;
	t->run->placed_ns = j->placed_ns;
	return 0;
}

static void read_cancel(struct replay *r, uint64_t id)
{
	struct head_task *t = task_find(r->h, id);

	if (t && t->state != TASK_ENDED)
		t->cancelled = true;
}

static void set_result(struct head_task *t, const struct journal_end *j)
{
	t->instance = j->instance;
	t->cancelled = j->cancelled;
	t->ended_ns = j->ended_ns;
	t->status = j->status;
	t->rank = j->rank;
	t->not_started = j->not_started;
	t->too_long = j->too_long;
	t->why = j->why.len ? text_of(&j->why) : NULL;
	t->run->started_ns = j->started_ns;
	t->run->user_us = j->user_us;
	t->run->system_us = j->system_us;
	t->run->peak_kib = j->peak_kib;
	t->run->output_lost = j->output == JOURNAL_OUTPUT_LOST;
	task_take_output(t->run, &j->out, &j->err);
	task_take_files(t->run, &j->files, &j->unkept);
}

static int read_end(struct replay *r, const struct journal_end *j)
{
	struct head_task *t = task_find(r->h, j->task);

	if (!t || t->state == TASK_ENDED)
		return 0;
	if (task_begin_run(t))
		return -ENOMEM;
	set_result(t, j);
	task_end_queued(r->h, t);
	return 0;
}

static int read_record(struct replay *r, const struct journal_record *j)
{
	switch (j->type) {
	case JOURNAL_COUNTS: read_counts(r, &j->counts); return 0;
	case JOURNAL_PROFILE: return read_profile(r, &j->profile);
	case JOURNAL_SUBMIT: return read_submit(r, &j->submit);
	case JOURNAL_START: return read_start(r, &j->start);
	case JOURNAL_CANCEL: read_cancel(r, j->cancelled); return 0;
	case JOURNAL_END: return read_end(r, &j->end);
	case JOURNAL_WAITED: wait_read(r->h, &j->waited); return 0;
	case JOURNAL_NODES: r->left = j->nodes.left; return 0;
	default: return 0;
	}
}

/* ---- tasks that had not ended ---- */

/*
 * The journal says that the task ran when its head was lost. Settle its fate when its ranks
 * have certainly ended.
 */
static void settle_started(struct replay *r, struct head_task *t, bool once)
{
	if (!t->cancelled && once)
		r->out->lost++;
	if (!t->cancelled && !once) {
		r->out->again++;
		t->instance++;
		t->run->placed_ns = 0;
	}
	task_hold(r->h, t);
}

static void end_unfit(struct replay *r, struct head_task *t, const struct unfit *u)
{
	log_error(r->h->log, "task %llu: %s", (unsigned long long)u->id, u->why);
	t->not_started = true;
	t->status = 127 << 8;
	task_set_why(t, u->why);
	if (task_run(t)->placed_ns)
		task_hold(r->h, t);
	else
		task_end_queued(r->h, t);
}

static void settle_one(struct replay *r, struct head_task *t, bool once)
{
	struct unfit *u;

	HASH_FIND(hh, r->unfits, &t->id, sizeof(t->id), u);
	if (adoption_take(r->adoption, t, once))
		r->out->adopted++;
	else if (u)
		end_unfit(r, t, u);
	else if (task_run(t)->placed_ns)
		settle_started(r, t, once);
	else if (t->cancelled)
		task_end_lost(r->h, t, SIGTERM, "the task was cancelled, or its client was lost with the head");
}

/* Tasks that the journal does not know to have ended: others may have their cores. */
static void settle_ended(struct replay *r, bool once)
{
	struct head_task *t, *next;

	DL_FOREACH_SAFE(r->h->queued, t, next)
		if (adoption_is_over(r->adoption, t))
			r->out->adopted += adoption_take(r->adoption, t, once);
	adoption_take_ends(r->adoption);
}

static void settle(struct replay *r, bool once)
{
	struct dvm_head *h = r->h;
	struct head_task *t, *next;

	if (h->options.away_ms && !r->left && !adoption_is_whole(h))
		h->unheard_ms = h->now.ms + h->options.away_ms;
	settle_ended(r, once);
	DL_FOREACH_SAFE(h->queued, t, next)
		if (t->state == TASK_QUEUED) /* held tasks wait for the end of ranks */
			settle_one(r, t, once);
	if (!h->unheard_ms)
		tasks_release(h, false);
}

static void replay_free(struct replay *r)
{
	struct old_profile *old, *next_old;
	struct unfit *u, *next_unfit;

	HASH_ITER(hh, r->profiles, old, next_old) {
		HASH_DEL(r->profiles, old);
		profile_release(r->h, old->profile);
		free(old);
	}
	HASH_ITER(hh, r->unfits, u, next_unfit) {
		HASH_DEL(r->unfits, u);
		free(u);
	}
}

/*
 * Nodes that were lost before this head had its journal may be the first of several that
 * go, as those of an allocation that ends do: tasks wait a moment.
 */
static void hope_for_lost_nodes(struct dvm_head *h)
{
	for (uint32_t i = 0; i < h->options.nodes; i++)
		if (h->nodes[i].lost)
			h->hopeless_ms = h->now.ms + HEAD_HOPE_MS;
}

static void keep_journal(struct dvm_head *h)
{
	h->journal.on = true;
	h->journal.request = 1;
	journal_nodes(h, true);
}

int dvm_head_resume(struct dvm_head *h, struct journal_reader *journal, bool once,
		    struct dvm_resumed *out, struct dvm_time now)
{
	struct replay r = { .h = h, .out = out };
	struct journal_record record;
	int rc = 0;

	h->now = now;
	*out = (struct dvm_resumed){ 0 };
	hope_for_lost_nodes(h);
	while (!rc && journal_next(journal, &record))
		rc = read_record(&r, &record);
	r.adoption = adoption_create(h);
	rc = rc ? rc : r.adoption ? 0 : -ENOMEM;
	if (!rc) {
		keep_journal(h);
		out->ended = h->done;
		settle(&r, once);
		tasks_fail_impossible(h);
		out->queued = h->nqueued;
		h->adopting = false;
		adoption_end(r.adoption);
	}
	replay_free(&r);
	return rc;
}

void dvm_head_keep_journal(struct dvm_head *h)
{
	hope_for_lost_nodes(h);
	keep_journal(h);
}

/* ---- what may be left out ---- */

/*
 * True: the profile is known by its name. A profile that is defined again has another
 * number, and the same content.
 */
static bool profile_is_known(const struct dvm_head *h, const struct dvm_bytes *id)
{
	const struct head_profile *p;

	HASH_FIND(hh, h->profiles, id->data, id->len, p);
	return p;
}

/* Output of a task is left out when much has been written since its end. */
static bool end_is_known(struct dvm_head *h, struct journal_end *e)
{
	const struct head_task *t = task_find(h, e->task);

	if (!t || e->output != JOURNAL_OUTPUT ||
	    h->journal.written - t->end_at < OUTPUT_KEPT || t->end_at > h->journal.written)
		return t;
	e->output = JOURNAL_OUTPUT_LOST;
	return t;
}

bool dvm_head_knows(struct dvm_head *h, struct journal_record *r)
{
	switch (r->type) {
	case JOURNAL_PROFILE: return profile_is_known(h, &r->profile.id);
	case JOURNAL_SUBMIT: return task_find(h, r->submit.task);
	case JOURNAL_START: return task_find(h, r->start.task);
	case JOURNAL_CANCEL: return task_find(h, r->cancelled);
	case JOURNAL_END: return end_is_known(h, &r->end);
	case JOURNAL_WAITED: return task_find(h, r->waited.task);
	case JOURNAL_NODES: return true;
	default: return false;
	}
}

void dvm_head_forgotten(const struct dvm_head *h, struct journal_counts *out)
{
	struct unwaited unkept = wait_unkept(h);
	const struct head_task *t;

	*out = (struct journal_counts){ h->next_id, h->done, h->failed, h->line,
					unkept.tasks, unkept.failed };
	DL_FOREACH(h->ended, t) {
		out->done--;
		out->failed -= t->status && !t->cancelled;
	}
}
