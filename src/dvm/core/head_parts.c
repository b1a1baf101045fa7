/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of tasks, as their nodes speak of them: how a task goes on whose parts have ended or
 * are lost with a node.
 */
#include "dvm/core/head_private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

void task_started(struct dvm_head *h, const struct dvm_started *m)
{
	struct head_task *t = task_find(h, m->task);

	if (t && task_runs(t) && t->instance == m->instance && !t->run->started_ns)
		t->run->started_ns = h->now.wall_ns;
}

void task_output(struct dvm_head *h, uint32_t node, const struct dvm_output_msg *m)
{
	struct head_task *t = task_find(h, m->task);

	if (t && task_runs(t))
		output_take(h, t, node, m);
}

/* ---- another try ---- */

static void run_again(struct dvm_head *h, struct head_task *t)
{
	spawned_end(h, t);
	t->instance++;
	task_forget_result(t);
	task_move(h, t, h->unheard_ms ? TASK_HELD : TASK_QUEUED);
	if (t->state == TASK_QUEUED)
		queue_put_back(h->queue, &t->item);
}

static bool has_tries(const struct dvm_head *h, const struct head_task *t)
{
	if (t->cancelled || t->spawned) /* the spawning task does not know of another try */
		return false;
	if (t->run->loss)
		return (t->run->loss == LOSS_UNSTARTED || !h->options.once) &&
		       t->run->losses < HEAD_INSTANCES_MAX;
	return t->status && !t->not_started && !t->too_long && t->retries > 0;
}

/*
 * End the task, or hold it: parts of it may run on a node that has not registered with this
 * head.
 */
static void end_or_hold(struct dvm_head *h, struct head_task *t)
{
	if (t->run->loss && h->unheard_ms)
		task_move(h, t, TASK_HELD);
	else
		task_end(h, t);
}

/* All parts of the task have ended. */
static void ended(struct dvm_head *h, struct head_task *t)
{
	ledger_release(h->ledger, queue_shape(&t->item), t->run->placement);
	output_end(h, t);
	done_note(h, t);
	h->retry = true;
	if (!has_tries(h, t)) {
		end_or_hold(h, t);
		return;
	}
	if (!t->run->loss)
		t->retries--;
	task_run_unplace(t->run);
	run_again(h, t);
	tasks_fail_impossible(h);
}

/* ---- ends of parts ---- */

static char *text_of(const struct dvm_bytes *b)
{
	return b->len ? strndup(b->data, b->len) : NULL;
}

static void *copy_of(const struct dvm_bytes *b)
{
	void *copy = b->len ? malloc(b->len) : NULL;

	return copy ? memcpy(copy, b->data, b->len) : NULL;
}

static void take_tail(char **to, uint32_t *len, const struct dvm_bytes *tail)
{
	free(*to);
	*to = copy_of(tail);
	*len = *to ? (uint32_t)tail->len : 0;
}

void task_take_output(struct task_run *r, const struct dvm_bytes *out,
		      const struct dvm_bytes *err)
{
	take_tail(&r->out, &r->out_len, out);
	take_tail(&r->err, &r->err_len, err);
}

/* Files of all parts, unlike the tails. Without memory they are not named. */
void task_take_files(struct task_run *r, const struct dvm_bytes *files,
		     const struct dvm_bytes *unkept)
{
	const size_t had = r->files ? r->files->len : 0;
	struct task_files *f;

	if (!files->len && !unkept->len)
		return;
	f = realloc(r->files, sizeof(*f) + had + files->len);
	if (!f)
		return;
	if (!r->files)
		f->unkept = NULL;
	r->files = f;
	if (files->len)
		memcpy(f->names + had, files->data, files->len);
	f->len = had + files->len;
	f->unkept = f->unkept ? f->unkept : text_of(unkept);
}

static void add_usage(struct head_task *t, const struct dvm_ended *m)
{
	struct task_run *r = t->run;

	r->user_us += m->user_us;
	r->system_us += m->system_us;
	if (m->peak_kib > r->peak_kib)
		r->peak_kib = m->peak_kib;
	if (!r->started_ns || m->started_ns < r->started_ns)
		r->started_ns = m->started_ns;
	if (m->ended_ns > t->ended_ns)
		t->ended_ns = m->ended_ns;
}

/*
 * Each tail is that of the first part that has one, until a part fails. A part with a file
 * for its standard output has no tail of it; so the tail of a part without a file stays.
 */
static void take_tails(struct task_run *r, const struct dvm_ended *m, bool fails)
{
	if (m->out.len && (fails || !r->out))
		take_tail(&r->out, &r->out_len, &m->out);
	if (fails || !r->err)
		take_tail(&r->err, &r->err_len, &m->err);
}

/*
 * The first part that failed by itself has the status of the task; the reason may be any
 * part's.
 */
static void take_result(struct head_task *t, const struct dvm_ended *m)
{
	bool is_cause = t->told_to_end && m->status && !m->told;

	add_usage(t, m);
	task_take_files(t->run, &m->files, &m->unkept);
	if (!t->why || (is_cause && m->why.len)) {
		free(t->why);
		t->why = text_of(&m->why);
	}
	take_tails(t->run, m, m->status && (!t->status || is_cause));
	if (t->status && !is_cause)
		return;
	t->status = m->status;
	t->rank = m->rank;
	t->not_started = m->not_started;
	t->too_long = m->too_long;
	t->told_to_end = m->told;
}

/* The node lacked something: the task runs again, and not there if nothing can. */
static void take_lack(struct dvm_head *h, struct head_task *t, uint32_t node,
		      const struct dvm_ended *m)
{
	struct task_run *r = t->run;
	char why[DVM_TEXT_MAX];

	snprintf(why, sizeof(why), "%.*s", (int)m->why.len, (const char *)m->why.data);
	if (m->lack == DVM_LACK_IDLE)
		head_drain_node(h, node, why);
	if (r->loss || t->cancelled)
		return;
	r->loss = r->placement->count == 1 && !m->any_started ? LOSS_UNSTARTED : LOSS_STARTED;
	r->losses += r->loss == LOSS_STARTED || m->lack == DVM_LACK_CHILD;
	if (r->parts_left > 1)
		task_signal_parts(h, t, 0);
}

void task_part_ended(struct dvm_head *h, uint32_t node, const struct dvm_ended *m)
{
	struct head_task *t = task_find(h, m->task);
	struct ledger_part *part;

	if (!t || !task_runs(t) || t->instance != m->instance)
		return;
	part = task_part_on(t, node);
	if (!part || part->ended)
		return;
	part->ended = true;
	if (!t->run->loss)
		take_result(t, m);
	if (m->lack)
		take_lack(h, t, node, m);
	if (!--t->run->parts_left)
		ended(h, t);
	else if (m->status && !t->run->loss)
		task_signal_parts(h, t, 0); /* those of a part that failed at once */
}

void task_failing(struct dvm_head *h, const struct dvm_started *m)
{
	struct head_task *t = task_find(h, m->task);

	if (t && task_runs(t) && t->instance == m->instance &&
	    t->run->parts_left > 1)
		task_signal_parts(h, t, 0);
}

void task_failed(struct dvm_head *h, const struct dvm_failed *m)
{
	struct head_task *t = task_find(h, m->task);

	if (!t || !task_runs(t) || t->instance != m->instance ||
	    t->run->loss || t->cancelled || (t->status && (t->why || !m->asked)))
		return;
	if (!t->status) {
		t->status = m->status;
		t->rank = m->rank;
	}
	free(t->why);
	t->why = text_of(&m->why);
	task_signal_parts(h, t, 0);
}

/* ---- nodes that are lost, or leave ---- */

/* The task's part on the node, if its ranks run, as far as is known; or NULL. */
static struct ledger_part *running_part(const struct head_task *t, uint32_t node)
{
	struct ledger_part *part = task_part_on(t, node);

	return part && !part->ended ? part : NULL;
}

bool tasks_lose_node(struct dvm_head *h, uint32_t node, const char *why)
{
	const struct ledger_part *part;
	char text[DVM_TEXT_MAX];
	struct head_task *t;
	bool any = false;

	snprintf(text, sizeof(text), "node %.200s was lost: %.600s",
		 head_node_name(h, node), why);
	DL_FOREACH(h->running, t) {
		part = running_part(t, node);
		if (!part)
			continue;
		any = true;
		t->run->losses += !t->run->loss;
		t->run->loss = LOSS_STARTED;
		t->status = SIGKILL;
		t->rank = part->first_rank;
		task_set_why(t, text);
		task_signal_parts(h, t, SIGKILL);
	}
	return any;
}

void tasks_leave_node(struct dvm_head *h, uint32_t node)
{
	struct ledger_part *part;
	struct head_task *t, *next;

	DL_FOREACH_SAFE(h->running, t, next) {
		part = running_part(t, node);
		if (!part)
			continue;
		part->ended = true;
		if (!--t->run->parts_left)
			ended(h, t);
	}
}

/* The nodes on which ranks of a task run. */
static void note_nodes(const struct ledger_placement *p, bool *on)
{
	for (uint32_t i = 0; i < p->count; i++)
		on[p->parts[i].node] |= !p->parts[i].ended;
}

bool *tasks_end_on(const struct dvm_head *h)
{
	bool *on = calloc(h->options.nodes, sizeof(*on));
	const struct head_task *t;

	if (!on)
		return NULL;
	DL_FOREACH(h->running, t)
		if (t->cancelled || h->stop_ms)
			note_nodes(t->run->placement, on);
	return on;
}

void tasks_move_away(struct dvm_head *h, uint32_t node)
{
	struct head_task *t, *next;

	DL_FOREACH_SAFE(h->running, t, next) {
		if (t->run->loss || !task_part_on(t, node))
			continue;
		t->run->loss = LOSS_STARTED;
		task_signal_parts(h, t, 0);
	}
}
