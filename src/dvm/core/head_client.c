/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of the head, and what they ask: one JSON object a line, {"op": ...}. Each is
 * answered by one {"ev": ...}, which repeats "tag" where the request has one.
 */
#include "dvm/core/head_private.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define SHOWN_MAX 1000 /* tasks in an answer to "ps" */

/* ---- clients ---- */

void dvm_head_client_opened(struct dvm_head *h, uint32_t client)
{
	struct head_client *c = calloc(1, sizeof(*c));

	if (!c) {
		client_break_off(h, client);
		return;
	}
	c->number = client;
	HASH_ADD(hh, h->clients, number, sizeof(c->number), c);
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
	client_drop_held(c);
	free(c);
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
	if (task_waits(t) || !json_is_true(json_object_get(request, "queued")))
		task_cancel(h, t);
}

static void signal_one(struct dvm_head *h, struct head_task *t, json_t *request,
		       uint32_t client)
{
	task_signal_parts(h, t, (uint32_t)json_integer_value(
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

static void on_show(struct dvm_head *h, struct head_client *c, json_t *request)
{
	struct head_task *t = client_find_task(h, c, request);

	if (!t)
		return;
	journal_hurry(h);
	client_answer_at(h, c, request, json_pack("{s:s,s:o}", "ev", "task", "task",
					report_listed(h, t, SIZE_MAX)), t->end_at);
}

/* "told" and "told_pmi" follow, from each node that is asked. */
static void on_why(struct dvm_head *h, struct head_client *c, json_t *request)
{
	struct head_task *t = client_find_task(h, c, request);

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

void dvm_head_await_starter(struct dvm_head *h, bool awaited)
{
	h->awaits_starter = awaited;
}

static int count_others(const struct dvm_head *h, const struct head_client *c)
{
	const struct head_client *o;
	int others = h->awaits_starter;

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
