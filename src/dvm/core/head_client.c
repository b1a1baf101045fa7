/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of the head, and what they ask: one JSON object a line, {"op": ...}. Each is
 * answered by one {"ev": ...}, which repeats "tag" where the request has one.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define SHOWN_MAX 1000 /* tasks in an answer to "ps" */
#define HELD_MAX ((size_t)256 << 20) /* bytes of lines that wait for the journal */

/* ---- clients ---- */

struct head_client *client_find(struct dvm_head *h, uint32_t number)
{
	struct head_client *c;

	HASH_FIND(hh, h->clients, &number, sizeof(number), c);
	return c;
}

static void break_off(struct dvm_head *h, uint32_t client)
{
	if (h->ops.client_break)
		h->ops.client_break(h->arg, client);
}

void dvm_head_client_opened(struct dvm_head *h, uint32_t client)
{
	struct head_client *c = calloc(1, sizeof(*c));

	if (!c) {
		break_off(h, client);
		return;
	}
	c->number = client;
	HASH_ADD(hh, h->clients, number, sizeof(c->number), c);
}

static void drop_first(struct head_client *c)
{
	struct held_lines *l = c->held;

	DL_DELETE(c->held, l);
	buf_free(&l->lines);
	free(l);
}

static void held_free(struct head_client *c)
{
	while (c->held)
		drop_first(c);
}

void dvm_head_client_closed(struct dvm_head *h, uint32_t client,
			    struct dvm_time now)
{
	struct head_client *c = client_find(h, client);

	h->now = now;
	if (!c)
		return;
	HASH_DEL(h->clients, c);
	tasks_lose_client(h, client);
	wait_client_gone(h, c);
	for (size_t i = 0; i < c->nprofiles; i++)
		profile_release(h, c->profiles[i]);
	free(c->profiles);
	json_decref(c->ended);
	held_free(c);
	free(c);
}

/* ---- lines ---- */

static void give(struct dvm_head *h, struct head_client *c, const char *lines, size_t len)
{
	c->sent += len;
	h->ops.client_send(h->arg, c->number, lines, len);
}

static void send_safe(struct dvm_head *h, struct head_client *c)
{
	struct held_lines *l;

	while ((l = c->held) && journal_is_safe(h, l->at)) {
		give(h, c, l->lines.data, l->lines.len);
		drop_first(c);
	}
}

/* 0 or a negative errno. */
static int hold(struct head_client *c, const char *line, size_t len, uint64_t at)
{
	struct held_lines *last = c->held ? c->held->prev : NULL;

	if (last && at <= last->at)
		return buf_append(&last->lines, line, len);
	last = calloc(1, sizeof(*last));
	if (!last)
		return -ENOMEM;
	last->at = at;
	buf_init(&last->lines, HELD_MAX);
	DL_APPEND(c->held, last);
	return buf_append(&last->lines, line, len);
}

/* One that would not get all of it gets nothing more, and the end. */
static void send_or_hold(struct dvm_head *h, struct head_client *c, const char *line,
			 size_t len, uint64_t at)
{
	if (c->broken)
		return;
	if (!c->held && journal_is_safe(h, at)) {
		give(h, c, line, len);
	} else if (hold(c, line, len, at)) {
		c->broken = true;
		held_free(c);
		break_off(h, c->number);
	}
}

void client_tell_at(struct dvm_head *h, uint32_t client, json_t *event, uint64_t at)
{
	char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
	struct head_client *c = client_find(h, client);
	size_t len = text ? strlen(text) : 0;

	if (text && c) {
		text[len] = '\n'; /* in place of its NUL */
		send_or_hold(h, c, text, len + 1, at);
	} else if (c && !c->broken) {
		c->broken = true; /* no memory: it would wait forever */
		break_off(h, client);
	}
	free(text);
	json_decref(event);
}

void client_tell(struct dvm_head *h, uint32_t client, json_t *event)
{
	client_tell_at(h, client, event, 0);
}

void dvm_head_safe(struct dvm_head *h, uint64_t position, struct dvm_time now)
{
	struct head_client *c, *next;

	h->now = now;
	h->journal.safe = position;
	HASH_ITER(hh, h->clients, c, next)
		send_safe(h, c);
}

/* The answer belongs to the request of this tag. */
void client_answer_at(struct dvm_head *h, const struct head_client *c,
		      json_t *request, json_t *event, uint64_t at)
{
	json_t *tag = json_object_get(request, "tag");

	if (event && tag)
		json_object_set(event, "tag", tag);
	client_tell_at(h, c->number, event, at);
}

void client_answer(struct dvm_head *h, const struct head_client *c, json_t *request,
		   json_t *event)
{
	client_answer_at(h, c, request, event, 0);
}

void client_refuse(struct dvm_head *h, const struct head_client *c,
		   json_t *request, const char *fmt, ...)
{
	char why[DVM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	client_answer(h, c, request, json_pack("{s:s,s:o}", "ev", "error", "why",
					       report_name(why)));
}

/* ---- requests about tasks ---- */

static void answer_done(struct dvm_head *h, const struct head_client *c,
			json_t *request, size_t count)
{
	client_answer(h, c, request, json_pack("{s:s,s:I,s:I,s:I,s:I}", "ev", "ok",
					"tasks", (json_int_t)count,
					"ended", (json_int_t)h->done,
					"failed", (json_int_t)h->failed,
					"line", (json_int_t)h->line));
}

size_t client_for_list(struct dvm_head *h, struct head_task *list, task_fn fn,
		       json_t *request, uint32_t client)
{
	struct head_task *t, *next;
	size_t n = 0;

	DL_FOREACH_SAFE(list, t, next) {
		fn(h, t, request, client);
		n++;
	}
	return n;
}

/* One that has been forgotten has ended, as far as anybody can say. */
static bool is_forgotten(const struct dvm_head *h, json_int_t id)
{
	return id > 0 && (uint64_t)id < h->next_id && head_is_own_id(h, (uint64_t)id);
}

static bool ids_ok(struct dvm_head *h, const struct head_client *c,
		   json_t *request, json_t *ids)
{
	json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
		if (!json_is_integer(id) ||
		    !is_forgotten(h, json_integer_value(id))) {
			client_refuse(h, c, request,
				      "there is no task %lld here",
				      (long long)json_integer_value(id));
			return false;
		}
	return true;
}

/* As client_for_list, for tasks of this name. */
static size_t for_name(struct dvm_head *h, struct head_task *list, const char *name, task_fn fn,
		       json_t *request, uint32_t client)
{
	struct head_task *t, *next;
	size_t n = 0;

	DL_FOREACH_SAFE(list, t, next)
		if (t->spec.name && !strcmp(t->spec.name, name)) {
			fn(h, t, request, client);
			n++;
		}
	return n;
}

bool client_for_tasks(struct dvm_head *h, const struct head_client *c, json_t *request,
		      task_fn fn, size_t *count, size_t *unkept)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	json_t *ids = json_object_get(request, "ids"), *id;
	struct head_task *t;
	size_t i;

	*count = *unkept = 0;
	if (json_is_true(json_object_get(request, "all"))) {
		*count = client_for_list(h, h->queued, fn, request, c->number);
		*count += client_for_list(h, h->running, fn, request, c->number);
	} else if (name) {
		*count = for_name(h, h->queued, name, fn, request, c->number);
		*count += for_name(h, h->running, name, fn, request, c->number);
	} else if (!json_is_array(ids)) {
		client_refuse(h, c, request,
			      "name the tasks: \"ids\": [...], \"name\": text or \"all\": true");
		return false;
	} else if (!ids_ok(h, c, request, ids)) {
		return false;
	}
	json_array_foreach(ids, i, id) {
		t = task_find(h, (uint64_t)json_integer_value(id));
		if (t)
			fn(h, t, request, c->number);
		*count += t != NULL;
		*unkept += !t;
	}
	return true;
}

static void do_to_tasks(struct dvm_head *h, const struct head_client *c, json_t *request,
			task_fn fn)
{
	size_t count, unkept;

	if (client_for_tasks(h, c, request, fn, &count, &unkept))
		answer_done(h, c, request, count);
}

/* "queued": only if it waits. */
static void cancel_one(struct dvm_head *h, struct head_task *t, json_t *request,
		       uint32_t client)
{
	if (t->state == TASK_QUEUED || !json_is_true(json_object_get(request, "queued")))
		task_cancel(h, t);
}

static void signal_one(struct dvm_head *h, struct head_task *t, json_t *request,
		       uint32_t client)
{
	task_signal(h, t, (uint32_t)json_integer_value(
				  json_object_get(request, "signal")));
}

static void on_cancel(struct dvm_head *h, struct head_client *c, json_t *request)
{
	do_to_tasks(h, c, request, cancel_one);
}

static void on_signal(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_int_t number =
		json_integer_value(json_object_get(request, "signal"));

	if (number < 1 || number > 64)
		client_refuse(h, c, request, "\"signal\" must be a number from 1 to 64");
	else
		do_to_tasks(h, c, request, signal_one);
}

static void append_list(const struct dvm_head *h, const struct head_task *list,
			json_t *tasks)
{
	const struct head_task *t;

	DL_FOREACH(list, t)
		if (json_array_size(tasks) < SHOWN_MAX)
			json_array_append_new(tasks, report_listed(h, t, REPORT_COMMAND_MAX));
}

static void on_ps(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *tasks = json_array();
	uint64_t at = 0;

	append_list(h, h->running, tasks);
	append_list(h, h->queued, tasks);
	if (json_is_true(json_object_get(request, "ended"))) {
		journal_hurry(h);
		append_list(h, h->ended, tasks);
		at = h->journal.end_at;
	}
	client_answer_at(h, c, request, json_pack("{s:s,s:I,s:I,s:I,s:o}", "ev", "ps",
					"running", (json_int_t)h->nrunning,
					"queued", (json_int_t)h->nqueued,
					"ended", (json_int_t)h->done,
					"tasks", tasks), at);
}

/* The task of "id"; NULL: the client has been told why not. */
static struct head_task *task_of(struct dvm_head *h, const struct head_client *c,
				 json_t *request)
{
	json_int_t id = json_integer_value(json_object_get(request, "id"));
	struct head_task *t = task_find(h, (uint64_t)id);

	if (t)
		return t;
	if (is_forgotten(h, id))
		client_refuse(h, c, request,
			      "task %lld has ended, and its result was discarded: only the last %d results are kept",
			      (long long)id, HEAD_KEPT_MAX);
	else
		client_refuse(h, c, request, "there is no task %lld here",
			      (long long)id);
	return NULL;
}

static void on_show(struct dvm_head *h, struct head_client *c, json_t *request)
{
	struct head_task *t = task_of(h, c, request);

	if (!t)
		return;
	journal_hurry(h);
	client_answer_at(h, c, request, json_pack("{s:s,s:o}", "ev", "task", "task",
					report_listed(h, t, SIZE_MAX)), t->end_at);
}

/* "told" and "told_pmi" follow, from each node that is asked. */
static void on_why(struct dvm_head *h, struct head_client *c, json_t *request)
{
	struct head_task *t = task_of(h, c, request);

	if (!t)
		return;
	journal_hurry(h);
	client_answer_at(h, c, request, json_pack("{s:s,s:o,s:o,s:i}", "ev", "why",
					"task", report_listed(h, t, REPORT_COMMAND_MAX),
					"reasons", why_reasons(h, t),
					"asked", (int)why_ask(h, t, c->number)),
			 t->end_at);
}

/* ---- requests about the DVM ---- */

static void on_hello(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_int_t version =
		json_integer_value(json_object_get(request, "version"));

	c->refused = version != DVM_VERSION;
	if (c->refused)
		client_refuse(h, c, request,
			      "this DVM runs pmi2x %s with protocol version %d, the client has version %lld: use the client of the same release",
			      h->options.build, DVM_VERSION, (long long)version);
	else
		client_answer(h, c, request, json_pack("{s:s,s:b,s:b,s:i,s:o,s:s,s:i,s:o}",
						"ev", "hello", "ending",
						h->phase != HEAD_SERVES, "ends",
						h->options.ends, "version",
						DVM_VERSION, "dvm",
						report_name(h->options.name), "build",
						h->options.build, "members",
						(int)h->options.members, "journal",
						report_name(h->options.journal ?
							    h->options.journal : "")));
}

static void on_status(struct dvm_head *h, struct head_client *c, json_t *request)
{
	client_answer(h, c, request, report_status(h));
}

/* How many tasks run that this client watches? */
static void on_progress(struct dvm_head *h, struct head_client *c, json_t *request)
{
	const struct watcher *w;
	const struct head_task *t;
	json_int_t n = 0;

	DL_FOREACH(h->running, t)
		LL_FOREACH(t->watchers, w)
			n += w->client == c->number;
	client_answer(h, c, request, json_pack("{s:s,s:I}", "ev", "ok", "running", n));
}

static void set_drained(struct dvm_head *h, struct head_client *c,
			json_t *request, bool drained)
{
	const char *name = json_string_value(json_object_get(request, "node"));
	uint32_t node = name ? head_find_node(h, name) : NODE_NONE;

	if (node == NODE_NONE || h->nodes[node].lost || h->nodes[node].leaving) {
		client_refuse(h, c, request, "there is no node %s here",
			      name ? name : "(\"node\" is missing)");
		return;
	}
	if (drained)
		head_drain_node(h, node, NULL);
	else
		head_undrain_node(h, node);
	answer_done(h, c, request, 0);
}

static void on_drain(struct dvm_head *h, struct head_client *c, json_t *request)
{
	set_drained(h, c, request, true);
}

static void on_undrain(struct dvm_head *h, struct head_client *c, json_t *request)
{
	set_drained(h, c, request, false);
}

/* A DVM that starts paused begins its work. */
static void on_go(struct dvm_head *h, struct head_client *c, json_t *request)
{
	h->options.paused = false;
	h->retry = true;
	answer_done(h, c, request, 0);
}

static void keep(struct dvm_head *h, const struct head_client *c, json_t *request,
		 size_t n, bool now)
{
	if (!h->journal.on) {
		client_refuse(h, c, request,
			      "keeping tasks needs a journal, and this DVM has none: use --wait or --cancel");
		return;
	}
	if (now)
		dvm_head_stop_now(h, h->now);
	else
		dvm_head_stop(h, h->now);
	answer_done(h, c, request, n);
	head_down_begins(h, c->number);
}

enum work { WORK_REFUSE, WORK_WAIT, WORK_CANCEL, WORK_KEEP, WORK_STOP, WORKS };

/* WORKS: it is none of them. */
static enum work work_of(json_t *request)
{
	static const char *const names[WORKS] = {
		[WORK_REFUSE] = "refuse", [WORK_WAIT] = "wait",
		[WORK_CANCEL] = "cancel", [WORK_KEEP] = "keep",
		[WORK_STOP] = "stop",
	};
	json_t *v = json_object_get(request, "work");
	const char *name = json_string_value(v);
	enum work work = WORK_REFUSE;

	if (!v)
		return work;
	while (work < WORKS && (!name || strcmp(name, names[work])))
		work++;
	return work;
}

static int count_others(const struct dvm_head *h, const struct head_client *c)
{
	const struct head_client *o;
	int others = 0;

	for (o = h->clients; o; o = o->hh.next)
		others += o != c && !o->leaves;
	return others;
}

/*
 * "work": what becomes of tasks that have not ended: "refuse", "wait", "cancel"; "keep": in
 * the journal, for another head; "stop": the same, and what runs is ended at once. "last":
 * only if no other client stays connected.
 */
static void on_down(struct dvm_head *h, struct head_client *c, json_t *request)
{
	enum work work = work_of(request);
	size_t n = h->nqueued + h->nrunning;
	bool last = json_is_true(json_object_get(request, "last"));
	int others = count_others(h, c);

	if (work == WORKS) {
		client_refuse(h, c, request,
			      "\"work\" must be refuse, wait, cancel, keep or stop");
		return;
	}
	c->leaves = last;
	if (others && last) {
		client_answer(h, c, request, json_pack("{s:s,s:i}", "ev", "ok", "others", others));
		return;
	}
	if (work == WORK_KEEP || work == WORK_STOP) {
		keep(h, c, request, n, work == WORK_STOP);
		return;
	}
	if (n && work == WORK_REFUSE) {
		client_refuse(h, c, request,
			      "%zu tasks have not ended (%zu running, %zu queued): use --wait or --cancel%s",
			      n, h->nrunning, h->nqueued,
			      h->journal.on ? ", or --keep" : "");
		return;
	}
	if (work == WORK_CANCEL) {
		(void)client_for_list(h, h->queued, cancel_one, request, 0);
		(void)client_for_list(h, h->running, cancel_one, request, 0);
	}
	head_drain(h);
	answer_done(h, c, request, n);
	head_down_begins(h, c->number);
}

static void on_submit(struct dvm_head *h, struct head_client *c, json_t *request)
{
	if (h->phase == HEAD_SERVES)
		submit_request(h, c, request);
	else
		client_refuse(h, c, request,
			      "this DVM is stopping and accepts no more tasks");
}

/* ---- input ---- */

static const struct request {
	const char *op;
	void (*handle)(struct dvm_head *h, struct head_client *c, json_t *request);
} requests[] = {
	{ "hello", on_hello },   { "submit", on_submit }, { "wait", wait_request },
	{ "waited", waited_request },
	{ "ps", on_ps },         { "show", on_show },     { "cancel", on_cancel },
	{ "signal", on_signal }, { "status", on_status }, { "drain", on_drain },
	{ "undrain", on_undrain }, { "down", on_down },   { "why", on_why },
	{ "go", on_go },         { "progress", on_progress },
	{ "unreached", head_unreached_request },
	{ "grow", head_grow_request }, { "shrink", head_shrink_request },
};

static void handle(struct dvm_head *h, struct head_client *c, json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));

	for (size_t i = 0; op && i < sizeof(requests) / sizeof(*requests); i++)
		if (!strcmp(op, requests[i].op)) {
			requests[i].handle(h, c, request);
			return;
		}
	client_refuse(h, c, request, "unknown request \"%.40s\"",
		      op ? op : "");
}

void dvm_head_client_input(struct dvm_head *h, uint32_t client, const char *line,
			   size_t len, struct dvm_time now)
{
	struct head_client *c = client_find(h, client);
	json_error_t error;
	json_t *request;

	h->now = now;
	if (!c || c->refused)
		return;
	request = json_loadb(line, len, JSON_ALLOW_NUL, &error);
	if (!json_is_object(request))
		client_refuse(h, c, NULL, "not a request: %s",
			      request ? "the JSON value is not an object" : error.text);
	else
		handle(h, c, request);
	json_decref(request);
}
