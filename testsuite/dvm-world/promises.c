/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises that must hold in every world, whatever fails. */
#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "dvm/core/tree_head.h"

uint32_t task_of_name(const char *name)
{
	return name && *name == 'k' ? (uint32_t)strtoul(name + 1, NULL, 10) : TASKS_MAX;
}

bool promise_forgiven(const struct world *w)
{
	return w->weak || w->damaged;
}

/* A client has heard of it, or the present head may hear of it from a node. */
static bool is_known(const struct world *w, uint32_t task)
{
	for (uint32_t i = 0; i < w->nranks; i++)
		if (w->ranks[i].runs && w->ranks[i].task == task &&
		    head_has(w->published, w->ranks[i].daemon))
			return true;
	return w->tasks[task].submitted;
}

/* Two tasks have one number: may they? Nobody may know the other. */
static void check_number(struct world *w, uint32_t task, uint32_t other)
{
	if (is_known(w, other))
		failed(w, "number %llu is that of k%u, and was that of k%u",
		       (unsigned long long)w->tasks[other].id, task, other);
	w->tasks[other].id = 0;
}

static uint32_t find_other(const struct world *w, uint32_t task, uint64_t id)
{
	for (uint32_t i = 0; i < w->ntasks; i++)
		if (i != task && w->tasks[i].id == id)
			return i;
	return TASKS_MAX;
}

/* A number is of one task, and a task has one. */
void promise_id(struct world *w, uint32_t task, uint64_t id)
{
	uint32_t other;

	if (task >= w->ntasks) {
		if (!promise_forgiven(w))
			failed(w, "there is a task that nobody has submitted, %llu",
			       (unsigned long long)id);
		return;
	}
	if (!promise_forgiven(w) && w->tasks[task].id && w->tasks[task].id != id)
		failed(w, "k%u is task %llu, and was task %llu", task, (unsigned long long)id,
		       (unsigned long long)w->tasks[task].id);
	other = find_other(w, task, id);
	if (other < TASKS_MAX && !promise_forgiven(w)) {
		if (!is_known(w, task)) /* a cut-off node has heard of it late */
			return;
		check_number(w, task, other);
	}
	w->tasks[task].id = id;
}

static void check_code(struct world *w, uint32_t task, int64_t code)
{
	/* what is tied is told its end before that is safe */
	if (w->tasks[task].code != code && !w->tasks[task].tied && !promise_forgiven(w))
		failed(w, "k%u has ended with %lld, and a client was told %lld", task,
		       (long long)code, (long long)w->tasks[task].code);
}

/* Nothing of a task that has ended is left, wherever it ran. */
static void check_left(struct world *w, uint32_t task)
{
	for (uint32_t i = 0; !w->damaged && i < w->nranks; i++)
		if (w->ranks[i].runs && w->ranks[i].task == task)
			failed(w, "k%u has ended, as a client is told, while rank %u runs on %s",
			       task, w->ranks[i].rank, daemon_name(w->ranks[i].daemon));
}

void promise_ended(struct world *w, uint32_t task, int64_t code, uint64_t connection)
{
	struct world_task *t = &w->tasks[task];

	if (task >= w->ntasks) {
		failed(w, "a client is told of a task that it does not know");
		return;
	}
	if (t->ended)
		check_code(w, task, code);
	check_left(w, task);
	if (t->told_by == connection && !promise_forgiven(w))
		failed(w, "a client is told twice of the end of k%u", task);
	t->ended = true;
	t->ended_ms = t->ended_ms ? t->ended_ms : w->ms;
	t->code = code;
	t->told_by = connection;
}

/* Without any node a head leaves tasks to the next one. */
void promise_reason(struct world *w, const struct head_process *head, uint32_t task,
		    const char *why, uint64_t ended_ms)
{
	if (why && (strstr(why, "could run the task are lost") || strstr(why, "cannot run the task")) &&
	    head_was_alone(head, ended_ms))
		failed(w, "k%u ends for lack of nodes, and head %u has no node", task,
		       head_number(head));
}

/*
 * A start for which a node lacked something is no failure of the task. It runs again,
 * unless it has had its tries; with --once only if no rank of it was started.
 */
void promise_failure(struct world *w, uint32_t task, int64_t code, uint32_t instance)
{
	const struct world_task *t = &w->tasks[task];

	if (code != 126 || t->hard || t->cancelled || t->tied || promise_forgiven(w) ||
	    instance + 1 >= HEAD_INSTANCES_MAX || (w->plan.once && t->ranks > 1))
		return;
	failed(w, "k%u fails at try %u for what a node lacked", task, instance);
}

static bool is_other_start(const struct rank_process *o, const struct rank_process *p)
{
	return o != p && o->task == p->task && o->rank == p->rank && !o->lacks;
}

static void check_overlap(struct world *w, const struct rank_process *p)
{
	for (uint32_t i = 0; i < w->nranks; i++) {
		const struct rank_process *o = &w->ranks[i];

		if (is_other_start(o, p) && o->runs)
			failed(w, "rank %u of k%u starts on %s while it runs on %s",
			       p->rank, p->task, daemon_name(p->daemon), daemon_name(o->daemon));
	}
}

static void check_once(struct world *w, const struct rank_process *p)
{
	for (uint32_t i = 0; w->plan.once && i < w->nranks; i++) {
		const struct rank_process *o = &w->ranks[i];

		if (is_other_start(o, p))
			failed(w, "rank %u of k%u starts a second time, in spite of --once",
			       p->rank, p->task);
	}
}

void promise_start(struct world *w, const struct rank_process *p)
{
	if (w->failed || w->damaged || p->task >= w->ntasks)
		return;
	check_overlap(w, p);
	if (w->weak)
		return;
	if (w->tasks[p->task].ended && !w->tasks[p->task].tied)
		failed(w, "k%u starts after a client was told of its end", p->task);
	check_once(w, p);
}

/* A head that was taken over has no say any more. */
void promise_head(struct world *w, const struct daemon *d, uint32_t before, uint32_t now)
{
	if (now < before)
		failed(w, "%s has head %u after head %u", daemon_name(d), now, before);
}

/* A node whose relay is lost has time to find another. */
void promise_patience(struct world *w, const struct head_process *head, uint32_t position,
		      uint64_t reached_ms)
{
	if (reached_ms && w->ms < reached_ms + TREE_REATTACH_MS)
		failed(w, "head %u loses node %u %llu ms after that was reached",
		       head_number(head), position, (unsigned long long)(w->ms - reached_ms));
}

/* Kills and broken links do not keep a node from its head. */
void promise_answer(struct world *w, const struct daemon *d)
{
	if (!w->silent && w->plan.latency_ms < SECOND)
		failed(w, "%s hears nothing from its head, and messages come", daemon_name(d));
}

/* ---- what a head knows ---- */

static bool has_ended(json_t *report)
{
	const char *state = json_string_value(json_object_get(report, "state"));

	return state && strcmp(state, "queued") && strcmp(state, "running");
}

static void check_reported(struct world *w, json_t *report, bool *seen, uint64_t asked_ms)
{
	uint32_t task = task_of_name(json_string_value(json_object_get(report, "name")));

	promise_id(w, task, (uint64_t)json_integer_value(json_object_get(report, "id")));
	if (w->failed || promise_forgiven(w))
		return;
	seen[task] = true;
	if (!w->tasks[task].ended_ms || w->tasks[task].ended_ms > asked_ms)
		return;
	if (has_ended(report))
		check_code(w, task, json_integer_value(json_object_get(report, "code")));
	else if (!w->tasks[task].tied)
		failed(w, "k%u has ended, as a client was told, and does not stay so", task);
}

void promises_check_report(struct world *w, uint32_t head, json_t *report, uint64_t asked_ms)
{
	bool seen[TASKS_MAX] = { false };
	json_t *task;
	size_t i;

	json_array_foreach(json_object_get(report, "tasks"), i, task)
		check_reported(w, task, seen, asked_ms);
	for (i = 0; !promise_forgiven(w) && i < w->ntasks; i++)
		if (w->tasks[i].submitted && w->tasks[i].submitted_ms <= asked_ms && !seen[i])
			failed(w, "k%zu was submitted, as a client was told, and head %u does not know it",
			       i, head);
}

void promises_check_damage(struct world *w, uint32_t head)
{
	if (w->damaged && !w->damage_named)
		failed(w, "the disk has damaged the journal, and head %u does not say so", head);
}

/* A journal whose begin is damaged is refused, and that is all. */
void promise_unreadable(struct world *w, int error)
{
	if (error != -EBADMSG && error != -EPROTONOSUPPORT)
		return;
	w->over = w->unreadable = true;
	if (!w->damaged)
		failed(w, "the journal cannot be read, and nothing has damaged it");
}

/* ---- the end ---- */

void promises_check_end(struct world *w)
{
	if (w->failed || w->unreadable)
		return;
	for (uint32_t i = 0; i < w->ntasks; i++)
		if (w->tasks[i].submitted && !w->tasks[i].ended)
			failed(w, "k%u has no end", i);
	if (!w->over)
		failed(w, "something hangs");
	for (uint32_t i = 0; i < w->nranks; i++)
		if (w->ranks[i].runs)
			failed(w, "rank %u of k%u still runs", w->ranks[i].rank, w->ranks[i].task);
	for (uint32_t i = 0; i < w->ndaemons; i++)
		if (head_has(w->published, w->daemons[i]) && !daemon_holds_nothing(w->daemons[i]))
			failed(w, "%s keeps what is over", daemon_name(w->daemons[i]));
}
