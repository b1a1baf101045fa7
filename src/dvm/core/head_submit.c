/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks as a request describes them. One that cannot be is refused by its index, the
 * key that is wrong, and why; the others of the request are taken.
 *
 *   {"op": "submit", "profile": {"id": TEXT, "cwd": TEXT, "env": {NAME: VALUE}},
 *    "tasks": [{"argv": [TEXT, ...], ...}], "watch": BOOL, "tied": BOOL}
 */
#include "dvm/core/head_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

/* ---- profiles ---- */

static int put_variable(struct buf *b, const char *name, json_t *v)
{
	int rc = !*name || strchr(name, '=') || !json_is_string(v) ? -EINVAL : 0;

	rc = rc ? rc : buf_printf(b, "%s=", name);
	return rc ? rc : buf_append(b, json_string_value(v),
				    json_string_length(v) + 1);
}

static const char *read_env(json_t *env, struct buf *b)
{
	const char *name;
	json_t *v;
	int rc = 0;

	if (env && !json_is_object(env))
		return "\"env\" of a profile must be an object";
	json_object_foreach(env, name, v)
		rc = rc ? rc : put_variable(b, name, v);
	return !rc ? NULL :
	       rc == -EINVAL ? "\"env\" of a profile: a name or value cannot be in an environment" :
			       "\"env\" of a profile is too long";
}

/* Counted for the client, which may name it in later requests. */
static const char *define_profile(struct dvm_head *h, struct head_client *c,
				  json_t *json)
{
	const char *id = json_string_value(json_object_get(json, "id"));
	const char *cwd = json_string_value(json_object_get(json, "cwd"));
	struct head_profile *p;
	struct dvm_limits limits;
	const char *why;
	struct buf env;

	if (spec_has_nul(json))
		return "a text of a profile contains a NUL byte";
	if (!id || !cwd || cwd[0] != '/' || strlen(cwd) >= DVM_TEXT_MAX)
		return "a profile needs an \"id\" and a \"cwd\" that begins with /";
	buf_init(&env, DVM_COMMAND_MAX);
	why = read_env(json_object_get(json, "env"), &env);
	why = why ? why : profile_read_limits(json, &limits);
	if (!why && array_grow(&c->profiles, c->nprofiles, &c->profiles_cap,
			       sizeof(struct head_profile *)))
		why = "out of memory";
	p = why ? NULL : profile_define(h, id, cwd, &env, &limits);
	buf_free(&env);
	if (!p)
		return why ? why : "out of memory";
	c->profiles[c->nprofiles++] = p;
	return NULL;
}

/* ---- the request ---- */

/* One that has been read, and in which nothing is wrong; NULL: something was. */
static struct head_task *queue_one(struct spec_reading *r, struct head_profile *p)
{
	struct head_task *t;
	int error;

	if (r->key) {
		task_spec_free(&r->spec);
		return NULL;
	}
	t = task_submit(r->h, &r->spec, p, &error);
	if (!t) {
		spec_wrong(r, "tasks", "%s", strerror(-error));
		return NULL;
	}
	t->line = r->line;
	t->spawned = r->spawned;
	r->spawned = NULL;
	return t;
}

/* `tied`: to this client, 0: to none. */
static struct head_task *submit_one(struct spec_reading *r, const char *profile,
				    uint32_t tied)
{
	struct head_profile *p;
	struct head_task *t;
	int rc;

	spec_read(r);
	profile = r->profile ? r->profile : profile;
	p = profile ? profile_find(r->h, profile) : NULL;
	if (!p)
		spec_wrong(r, "profile", "unknown profile %.60s: send the profile with the request",
			   profile ? profile : "");
	r->full = !r->key && r->h->nqueued >= r->h->options.max_waiting;
	if (r->full)
		spec_wrong(r, "tasks", "%zu tasks are queued already: wait until some have ended, or start the DVM with a larger --max-queued",
			   r->h->nqueued);
	t = queue_one(r, p);
	if (!t)
		return NULL;
	t->tied = tied;
	rc = journal_submit(r->h, t, r->json);
	if (!rc)
		return t;
	spec_wrong(r, "tasks", "the task cannot be written to the journal: %s", strerror(-rc));
	task_undo(r->h, t);
	return NULL;
}

struct head_task *submit_spawned(struct dvm_head *h, json_t *json,
				 struct head_spawn *spawned, char *why, size_t size)
{
	const struct head_task *parent = spawned->parent;
	struct spec_reading r = { .h = h, .json = json, .spawned = spawned };
	struct head_task *t = submit_one(&r, parent->profile->id, parent->tied);

	if (!t)
		snprintf(why, size, "%s", r.why);
	spawned_free(r.spawned);
	return t;
}

/* Replaces the invalid parts of a task that will not be started. */
static void make_fit(struct spec_reading *r)
{
	struct ledger_shape *s = &r->spec.shape;

	free((void *)(uintptr_t)s->placed);
	s->placed = NULL;
	s->ranks = s->ranks ? s->ranks : 1;
	r->key = NULL;
}

struct head_task *submit_again(struct dvm_head *h, json_t *json,
			       struct head_profile *p, char *why, size_t size)
{
	struct spec_reading r = { .h = h, .json = json, .may_not_fit = h->hopeless_ms };

	spec_read(&r);
	if (r.key) {
		snprintf(why, size, "%s: %s", r.key, r.why);
		make_fit(&r);
	}
	return queue_one(&r, p);
}

static void add_refused(json_t *refused, size_t index, const struct spec_reading *r)
{
	json_array_append_new(refused, json_pack("{s:I,s:s,s:o,s:b}", "index",
		(json_int_t)index, "key", r->key, "why", report_name(r->why), "full", r->full));
}

/* Queue them; the answer, a new reference. */
static json_t *submit_tasks(struct dvm_head *h, struct head_client *c,
			    json_t *request, json_t *tasks)
{
	const char *profile = json_string_value(json_object_get(
		json_object_get(request, "profile"), "id"));
	bool watch = !json_is_false(json_object_get(request, "watch"));
	bool follow = json_is_true(json_object_get(request, "spawned"));
	uint32_t tied = json_is_true(json_object_get(request, "tied")) ? c->number : 0;
	json_t *ids = json_array(), *refused = json_array(), *json;
	size_t i;

	c->watches |= watch;
	json_array_foreach(tasks, i, json) {
		struct spec_reading r = { .h = h, .json = json };
		struct head_task *t = submit_one(&r, profile, tied);

		json_array_append_new(ids, t ? json_integer((json_int_t)t->id) :
					       json_null());
		if (!t) {
			add_refused(refused, i, &r);
			continue;
		}
		t->follow = follow;
		if (watch)
			(void)task_watch(h, t, c->number);
	}
	return json_pack("{s:s,s:o,s:o}", "ev", "submitted", "ids", ids,
			 "refused", refused);
}

/* None of these, which are the last, has been submitted. */
static void undo(struct dvm_head *h, json_t *ids)
{
	for (size_t i = json_array_size(ids); i-- > 0;) {
		json_int_t id = json_integer_value(json_array_get(ids, i));
		struct head_task *t = id ? task_find(h, (uint64_t)id) : NULL;

		if (t)
			task_undo(h, t);
	}
}

static void note_line(struct dvm_head *h)
{
	if (h->queued && h->queued->prev->line > h->line)
		h->line = h->queued->prev->line;
}

/* All or nothing of it comes into the journal. */
static void submit_recorded(struct dvm_head *h, struct head_client *c,
			    json_t *request, json_t *tasks)
{
	json_t *event = NULL;
	uint64_t at;
	int rc = journal_begin_request(h);

	if (!rc) {
		event = submit_tasks(h, c, request, tasks);
		rc = journal_end_request(h, &at);
		if (rc)
			undo(h, json_object_get(event, "ids"));
	}
	if (rc) {
		json_decref(event);
		client_refuse(h, c, request, "the journal cannot be written: %s: no task of the request is accepted",
			      strerror(-rc));
		return;
	}
	note_line(h);
	client_answer_at(h, c, request, event, at);
}

void submit_request(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *tasks = json_object_get(request, "tasks");
	json_t *profile = json_object_get(request, "profile");
	bool starting = !head_is_ready(h); /* not all its nodes have come up */
	const char *why = NULL;

	if (!json_is_array(tasks))
		why = "\"tasks\" must be a list";
	else if (!starting && json_object_get(profile, "cwd")) /* else it was sent before */
		why = define_profile(h, c, profile);
	if (starting)
		client_answer(h, c, request, json_pack("{s:s}", "ev", "starting"));
	else if (why)
		client_refuse(h, c, request, "%s", why);
	else
		submit_recorded(h, c, request, tasks);
}
