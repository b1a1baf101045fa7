/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of clients: one JSON object a line, {"op": ...}. Each is
 * answered by one {"ev": ...}, which repeats "tag" where the request has one.
 */
#include "dvm/json/json_private.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define SHOWN_MAX 1000 /* in an answer to "ps": tasks that have ended, and others */
#define REASONS_MAX ((size_t)64 << 20) /* bytes of reasons, in an answer to "why" */

/* ---- requests about tasks ---- */

static void answer_done(struct dvm_head *h, struct head_client *c,
			json_t *request, size_t count)
{
	client_answer(h, c, request, json_pack("{s:s,s:I,s:I,s:I,s:I}", "ev", "ok",
					"tasks", (json_int_t)count,
					"ended", (json_int_t)h->done,
					"failed", (json_int_t)h->failed,
					"line", (json_int_t)h->line));
}

/* How many of the tasks that are named by number have ended. */
static size_t count_ended(struct dvm_head *h, json_t *request)
{
	json_t *id;
	size_t i, n = 0;

	json_array_foreach(json_object_get(request, "ids"), i, id) {
		const struct head_task *t = task_find(h, (uint64_t)json_integer_value(id));

		n += !t || t->state == TASK_ENDED;
	}
	return n;
}

/* The answer: "tasks" had not ended, and "over" had. */
static void do_to_tasks(struct dvm_head *h, struct head_client *c, json_t *request,
			task_fn fn)
{
	size_t over = count_ended(h, request), count, unkept;

	if (client_for_tasks(h, c, request, fn, &count, &unkept))
		client_answer(h, c, request, json_pack("{s:s,s:I,s:I}", "ev", "ok", "tasks",
					(json_int_t)(count + unkept - over), "over", (json_int_t)over));
}

/* "queued": only a task that waits. */
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

/* List tasks from index `from` on, until there are `max` in all. */
static void append_list(const struct dvm_head *h, const struct head_task *list,
			json_int_t from, size_t max, json_t *tasks)
{
	const struct head_task *t;

	for (t = list; t && json_array_size(tasks) < max; t = t->next)
		if (--from < 0)
			json_array_append_new(tasks, result_listed(h, t, LIST_COMMAND_MAX));
}

/* List ended tasks from this index on, in the order of their ends. */
static void append_ended(struct dvm_head *h, json_int_t from, json_t *tasks)
{
	journal_hurry(h);
	append_list(h, h->ended, from, json_array_size(tasks) + SHOWN_MAX, tasks);
}

static void on_ps(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_int_t from = json_integer_value(json_object_get(request, "from"));
	json_t *tasks = json_array();
	uint64_t at = 0;

	if (!from) {
		append_list(h, h->running, 0, SHOWN_MAX, tasks);
		append_list(h, h->queued, 0, SHOWN_MAX, tasks);
	}
	if (json_is_true(json_object_get(request, "ended"))) {
		append_ended(h, from, tasks);
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
					result_listed(h, t, SIZE_MAX)), t->end_at);
}

static json_t *reasons_of(struct dvm_head *h, const struct head_task *t)
{
	json_t *list = json_array();
	struct dvm_bytes texts;
	struct buf b;

	buf_init(&b, REASONS_MAX);
	why_reasons(h, t, &b);
	texts = (struct dvm_bytes){ b.data, b.len };
	for (const char *a = b.len ? dvm_texts_next(&texts, NULL) : NULL; a;
	     a = dvm_texts_next(&texts, a))
		json_array_append_new(list, text_of_name(a));
	buf_free(&b);
	return list;
}

/* "told" and "told_pmi" follow, from each node that is asked. */
static void on_why(struct dvm_head *h, struct head_client *c, json_t *request)
{
	struct head_task *t = client_find_task(h, c, request);

	if (!t)
		return;
	journal_hurry(h);
	client_answer_at(h, c, request, json_pack("{s:s,s:o,s:o,s:i}", "ev", "why",
					"task", result_listed(h, t, LIST_COMMAND_MAX),
					"reasons", reasons_of(h, t),
					"asked", (int)why_ask(h, t, c->number)),
			 t->end_at);
}

/* ---- requests about the DVM ---- */

static void on_hello(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_int_t version =
		json_integer_value(json_object_get(request, "version"));

	c->refused = version != DVM_VERSION;
	c->leaves |= json_is_true(json_object_get(request, "looks"));
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
						text_of_name(h->options.name), "build",
						h->options.build, "members",
						(int)h->options.members, "journal",
						text_of_name(h->options.journal ?
							    h->options.journal : "")));
}

static void on_status(struct dvm_head *h, struct head_client *c, json_t *request)
{
	client_answer(h, c, request, result_status(h));
}

/* The number of running tasks that this client watches. */
static void on_progress(struct dvm_head *h, struct head_client *c, json_t *request)
{
	const struct head_task *t;
	json_int_t n = 0;

	DL_FOREACH(h->running, t)
		FOR_EACH_WATCHER(t, w)
			n += w.client == c->number;
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

/* WORKS: an unknown word. */
static enum head_work work_of(json_t *request)
{
	static const char *const names[WORKS] = {
		[WORK_REFUSE] = "refuse", [WORK_WAIT] = "wait",
		[WORK_CANCEL] = "cancel", [WORK_KEEP] = "keep",
		[WORK_STOP] = "stop",
	};
	json_t *v = json_object_get(request, "work");
	const char *name = json_string_value(v);
	enum head_work work = WORK_REFUSE;

	if (!v)
		return work;
	while (work < WORKS && (!name || strcmp(name, names[work])))
		work++;
	return work;
}

/*
 * "work": what becomes of tasks that have not ended: "refuse", "wait", "cancel"; "keep": in
 * the journal, for another head; "stop": the same, and what runs is ended at once. "last":
 * only if no other client stays connected.
 */
static void on_down(struct dvm_head *h, struct head_client *c, json_t *request)
{
	enum head_work work = work_of(request);
	size_t n = h->nqueued + h->nrunning;
	int others = head_other_clients(h, c);
	struct head_refusal no;

	if (work == WORKS) {
		client_refuse(h, c, request,
			      "\"work\" must be refuse, wait, cancel, keep or stop");
		return;
	}
	c->leaves = json_is_true(json_object_get(request, "last"));
	if (others && c->leaves)
		client_answer(h, c, request, json_pack("{s:s,s:i}", "ev", "ok", "others", others));
	else if (head_down(h, c, work, &no))
		answer_done(h, c, request, n);
	else
		client_refuse(h, c, request, "%s", no.why);
}

/* ---- nodes ---- */

static void on_unreached(struct dvm_head *h, struct head_client *c, json_t *request)
{
	size_t count;
	struct silent_node *nodes = head_unreached(h, 0, &count);

	client_answer(h, c, request, json_pack("{s:s,s:o}", "ev", "unreached", "nodes",
					       event_nodes(nodes, count)));
	free(nodes);
}

/* "nodes" are names or a number. False: no memory. */
static bool read_names(json_t *request, struct node_names *out, const char ***names)
{
	json_t *nodes = json_object_get(request, "nodes"), *name;
	size_t i;

	*names = NULL;
	out->count = json_is_array(nodes) ? (int64_t)json_array_size(nodes) :
					    json_integer_value(nodes);
	if (json_is_array(nodes))
		*names = calloc(json_array_size(nodes) + 1, sizeof(**names));
	json_array_foreach(nodes, i, name)
		if (*names)
			(*names)[i] = json_string_value(name);
	out->names = *names;
	return *names || !json_is_array(nodes);
}

/* "nodes": names, or a number; "job": the Slurm job of the nodes, if it is another one. */
static bool grow(struct dvm_head *h, struct head_client *c, json_t *request,
		 const struct node_names *n, struct head_refusal *no)
{
	json_t *tag = json_object_get(request, "tag");
	char *text = tag ? json_dumps(tag, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	bool ok = head_grow(h, c, text, n, json_integer_value(json_object_get(request, "job")), no);

	free(text);
	return ok;
}

static void on_grow(struct dvm_head *h, struct head_client *c, json_t *request)
{
	struct head_refusal no = { "out of memory" };
	struct node_names n;
	const char **names;

	if (!read_names(request, &n, &names) || !grow(h, c, request, &n, &no))
		client_refuse(h, c, request, "%s", no.why);
	free(names);
}

/* "nodes": names, or a number; "grace": seconds until what runs there is ended. */
static void on_shrink(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *grace = json_object_get(request, "grace");
	int64_t seconds = json_integer_value(grace);
	struct head_refusal no = { "out of memory" };
	struct node_names n;
	const char **names;

	if (read_names(request, &n, &names) &&
	    head_shrink(h, &n, grace ? &seconds : NULL, &no))
		client_answer(h, c, request, json_pack("{s:s,s:I}", "ev", "ok", "nodes",
						       (json_int_t)n.count));
	else
		client_refuse(h, c, request, "%s", no.why);
	free(names);
}

/* ---- waiting ---- */

static void wait_one(struct dvm_head *h, struct head_task *t, json_t *request,
		     uint32_t client)
{
	(void)task_watch(h, t, client);
}

/*
 * "ids": these tasks; "all": all tasks that have not ended; with "unwaited" also those for
 * which no client has waited. The answer has the number of tasks whose ends follow.
 */
static void on_wait(struct dvm_head *h, struct head_client *c, json_t *request)
{
	bool unwaited = json_is_true(json_object_get(request, "unwaited"));
	size_t count, unkept;

	c->watches = true;
	journal_hurry(h);
	if (unwaited)
		json_object_set_new(request, "all", json_true());
	if (!client_for_tasks(h, c, request, wait_one, &count, &unkept))
		return;
	if (unwaited)
		count += wait_unwaited(h, c);
	client_answer_at(h, c, request, json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I}",
		"ev", "ok", "tasks", (json_int_t)count,
		"ended", (json_int_t)h->done, "failed", (json_int_t)h->failed,
		"line", (json_int_t)h->line, "unkept", (json_int_t)unkept,
		"before", (json_int_t)(unwaited ? c->unkept.tasks : 0),
		"before_failed", (json_int_t)(unwaited ? c->unkept.failed : 0)),
		h->journal.end_at);
}

/* The client has received the ends of tasks; "ids": of these only. */
static void on_waited(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *ids = json_object_get(request, "ids"), *id;
	size_t i;

	if (!ids)
		wait_confirm_all(h, c);
	json_array_foreach(ids, i, id)
		wait_confirm(h, c, (uint64_t)json_integer_value(id));
	client_answer(h, c, request, json_pack("{s:s}", "ev", "ok"));
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
	{ "hello", on_hello },   { "submit", on_submit }, { "wait", on_wait },
	{ "waited", on_waited },
	{ "ps", on_ps },         { "show", on_show },     { "cancel", on_cancel },
	{ "signal", on_signal }, { "status", on_status }, { "drain", on_drain },
	{ "undrain", on_undrain }, { "down", on_down },   { "why", on_why },
	{ "go", on_go },         { "progress", on_progress },
	{ "unreached", on_unreached },
	{ "grow", on_grow }, { "shrink", on_shrink },
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

void dvm_json_request(struct dvm_head *h, uint32_t client, const char *line, size_t len,
		      struct dvm_time now)
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
