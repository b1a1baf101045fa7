/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients: they submit tasks, a few at a time, wait for them, and cancel some. One whose
 * connection ends comes again, and waits for what it was told that it has.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define REQUEST_MAX 4096
#define BATCH_MAX 4
#define RETRY_MS (3 * SECOND)

enum { TAG_SUBMIT = 1, TAG_WAIT };

struct client {
	struct world *w;
	uint32_t number;
	struct link *link;
	const struct head_process *head; /* which has the other end */
	uint64_t connection;
	uint32_t first, batch; /* tasks that were sent, and not answered */
	uint32_t left;         /* tasks that it will submit */
	bool profile;          /* this head has it */
};

static void connect_later(struct client *c, uint64_t ms);

static bool is_own(const struct client *c, uint32_t task)
{
	return c->w->tasks[task].client == c;
}

static bool is_waited_for(const struct client *c, uint32_t task)
{
	const struct world_task *t = &c->w->tasks[task];

	return is_own(c, task) && t->submitted && !t->ended;
}

/* ---- requests ---- */

static void ask(struct client *c, const char *text)
{
	trace(c->w, "client %u: %s", c->number, text);
	link_send(c->link, 1, text, strlen(text));
}

static int put_task(struct client *c, char *out, size_t size, uint32_t task)
{
	struct world *w = c->w;
	uint32_t ranks = draw_once_in(w, 4) ? 2 + (uint32_t)draw(w, 6) : 1;

	w->tasks[task].ranks = ranks;
	return snprintf(out, size, "{\"argv\":[\"k%u\"],\"name\":\"k%u\",\"ranks\":%u,\"retries\":%u%s}",
			task, task, ranks, !w->plan.once && draw_once_in(w, 6) ? 1 : 0,
			ranks > 1 && draw_once_in(w, 2) ? ",\"nodes\":2" :
			draw_once_in(w, 10) ? ",\"time\":20" :
			output_world(w) && draw_once_in(w, 4) ? ",\"output\":\"forward\"" : "");
}

static void submit(struct client *c)
{
	static const char profile[] = "\"id\":\"p\",\"cwd\":\"/\",\"env\":{\"A\":\"b\"}";
	struct world *w = c->w;
	char text[REQUEST_MAX];
	bool tied = draw_once_in(w, 12);
	uint32_t n = 1 + (uint32_t)draw(w, BATCH_MAX);
	int at;

	n = n < c->left ? n : c->left;
	if (c->batch || !n || w->ntasks + n > TASKS_MAX)
		return;
	at = snprintf(text, sizeof(text), "{\"op\":\"submit\",\"tag\":%d,\"tied\":%s,\"profile\":{%s},\"tasks\":[",
		      TAG_SUBMIT, tied ? "true" : "false", c->profile ? "\"id\":\"p\"" : profile);
	c->first = w->ntasks;
	for (uint32_t i = 0; i < n; i++) {
		struct world_task *t = &w->tasks[w->ntasks];

		t->client = c;
		t->tied = tied;
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s", i ? "," : "");
		at += put_task(c, text + at, sizeof(text) - (size_t)at, w->ntasks++);
	}
	snprintf(text + at, sizeof(text) - (size_t)at, "]}");
	c->batch = n;
	c->left -= n;
	ask(c, text);
}

/* "ids" of what it waits for. False: nothing. */
static bool list_unended(const struct client *c, char *out, size_t size)
{
	size_t at = 0;

	for (uint32_t i = 0; i < c->w->ntasks; i++)
		if (is_waited_for(c, i))
			at += (size_t)snprintf(out + at, size - at, "%s%llu", at ? "," : "",
					       (unsigned long long)c->w->tasks[i].id);
	return at;
}

/* The journal may have lost it, and its number may be another task's. */
static void forget_all(struct client *c)
{
	for (uint32_t i = 0; i < c->w->ntasks; i++)
		if (is_waited_for(c, i))
			c->w->tasks[i].submitted = false;
}

static void wait_again(struct client *c)
{
	char ids[REQUEST_MAX / 2], text[REQUEST_MAX];

	if (promise_forgiven(c->w))
		forget_all(c);
	if (!list_unended(c, ids, sizeof(ids)))
		return;
	snprintf(text, sizeof(text), "{\"op\":\"wait\",\"tag\":%d,\"ids\":[%s]}", TAG_WAIT, ids);
	ask(c, text);
}

static void cancel_some(struct client *c)
{
	uint32_t i = (uint32_t)draw(c->w, c->w->ntasks);
	char text[64];

	if (!c->w->ntasks || !is_waited_for(c, i))
		return;
	c->w->tasks[i].cancelled = true;
	snprintf(text, sizeof(text), "{\"op\":\"cancel\",\"ids\":[%llu]}",
		 (unsigned long long)c->w->tasks[i].id);
	ask(c, text);
}

/* ---- answers ---- */

static void on_submitted(struct client *c, json_t *event)
{
	json_t *ids = json_object_get(event, "ids"), *id;
	size_t i;

	json_array_foreach(ids, i, id) {
		uint32_t task = c->first + (uint32_t)i;

		if (!json_is_integer(id))
			continue; /* too few nodes are left for it */
		promise_id(c->w, task, (uint64_t)json_integer_value(id));
		c->w->tasks[task].submitted = true;
		c->w->tasks[task].submitted_ms = c->w->ms;
	}
	c->profile = true;
	c->batch = 0;
}

static uint32_t count_unended(const struct client *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->w->ntasks; i++)
		n += is_waited_for(c, i);
	return n;
}

/* The head does not know all that it waits for. */
static void on_missing(struct client *c)
{
	if (promise_forgiven(c->w))
		forget_all(c);
	else
		failed(c->w, "a head does not know what client %u was told that it has", c->number);
}

/* After an error to a submit none of its tasks is taken. Others replace them. */
static void on_error(struct client *c, json_t *event)
{
	json_int_t tag = json_integer_value(json_object_get(event, "tag"));

	if (tag == TAG_WAIT)
		on_missing(c);
	if (tag != TAG_SUBMIT)
		return;
	c->left += c->batch;
	c->batch = 0;
}

static void on_ok(struct client *c, json_t *event)
{
	if (json_integer_value(json_object_get(event, "tag")) == TAG_WAIT &&
	    json_integer_value(json_object_get(event, "tasks")) < count_unended(c))
		on_missing(c);
}

static void on_ended(struct client *c, json_t *event)
{
	json_t *tasks = json_object_get(event, "tasks"), *t;
	size_t i;

	json_array_foreach(tasks, i, t) {
		uint32_t task = task_of_name(json_string_value(json_object_get(t, "name")));
		json_t *ended = json_array_get(json_object_get(t, "t"), 3);

		promise_ended(c->w, task, json_integer_value(json_object_get(t, "code")),
			      c->connection);
		promise_failure(c->w, task, json_integer_value(json_object_get(t, "code")),
				(uint32_t)json_integer_value(json_object_get(t, "instance")));
		promise_reason(c->w, c->head, task, json_string_value(json_object_get(t, "why")),
			       (uint64_t)(json_number_value(ended) * 1000 + 0.5));
	}
}

static void take_line(struct client *c, const char *line, size_t len)
{
	json_t *event = json_loadb(line, len, 0, NULL);
	const char *ev = json_string_value(json_object_get(event, "ev"));

	trace(c->w, "client %u hears %.*s", c->number, (int)len - 1, line);
	if (!ev)
		failed(c->w, "client %u hears what is no event", c->number);
	else if (!strcmp(ev, "submitted"))
		on_submitted(c, event);
	else if (!strcmp(ev, "ended"))
		on_ended(c, event);
	else if (!strcmp(ev, "error"))
		on_error(c, event);
	else if (!strcmp(ev, "ok"))
		on_ok(c, event);
	else if (!strcmp(ev, "output") && c->head == c->w->published)
		head_client_reads(c->w->published);
	json_decref(event);
}

static void on_answer(void *arg, const void *data, size_t len)
{
	const char *line = data, *end = line + len, *next;

	for (; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next + 1 : end;
		take_line(arg, line, (size_t)(next - line));
	}
}

/* ---- life ---- */

/* The head may have taken what this client has sent: the client will not know. */
static void on_head_ended(void *arg, const char *why)
{
	struct client *c = arg;

	trace(c->w, "client %u has lost the head: %s", c->number, why);
	c->link = NULL;
	c->left += c->batch;
	c->batch = 0;
	connect_later(c, draw(c->w, RETRY_MS));
}

static void on_connect(struct world *w, void *arg, uint64_t number)
{
	struct client *c = arg;
	struct head_process *h = w->published;
	const struct link_end mine = { CLIENT_MACHINE, on_answer, on_head_ended, c };

	if (!h || !head_takes_clients(h) || !is_reachable(w, CLIENT_MACHINE, head_machine(h))) {
		connect_later(c, RETRY_MS);
		return;
	}
	c->link = head_take_client(h, &mine);
	c->head = h;
	c->connection = ++w->next_connection;
	c->profile = false;
	wait_again(c);
}

static void connect_later(struct client *c, uint64_t ms)
{
	after(c->w, ms + 1, on_connect, c, 0);
}

static bool is_done(const struct client *c)
{
	return !count_unended(c) && !c->left && !c->batch;
}

bool clients_are_done(const struct world *w)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		if (!is_done(w->clients[i]))
			return false;
	return true;
}

static void on_time(struct world *w, void *arg, uint64_t number)
{
	struct client *c = arg;

	if (c->link && draw_once_in(w, 10))
		cancel_some(c);
	else if (c->link && c->left)
		submit(c);
	after(w, draw(w, c->left ? 20 * SECOND : 60 * SECOND), on_time, c, 0);
}

void clients_start(struct world *w)
{
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct client *c = calloc(1, sizeof(*c));

		if (!c)
			abort();
		c->w = w;
		c->number = i;
		c->left = w->plan.tasks / CLIENTS;
		w->clients[i] = c;
		connect_later(c, draw(w, 10 * SECOND));
		after(w, draw(w, 20 * SECOND), on_time, c, 0);
	}
}

void clients_free(struct world *w)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		free(w->clients[i]);
}
