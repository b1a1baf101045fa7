/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks as a request describes them. An invalid task is refused by its index, the
 * key that is wrong, and why; the others of the request are taken.
 *
 *   {"op": "submit", "profile": {"id": TEXT, "cwd": TEXT, "env": {NAME: VALUE}},
 *    "tasks": [{"argv": [TEXT, ...], ...}], "watch": BOOL, "tied": BOOL, "more": BOOL}
 */
#include "dvm/json/json_private.h"

#include <errno.h>
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

static int limit_of_name(const char *name)
{
	int i = 0;

	while (i < DVM_LIMITS && strcmp(name, dvm_limit_names[i]))
		i++;
	return i;
}

/* "umask" and "limits" of a profile. NULL, or the error in them. */
static const char *read_limits(json_t *json, struct dvm_limits *out)
{
	json_t *mask = json_object_get(json, "umask"), *value;
	json_t *limits = json_object_get(json, "limits");
	json_int_t bits = json_integer_value(mask);
	const char *name;

	memset(out, 0, sizeof(*out));
	if (mask && (!json_is_integer(mask) || bits < 0 || bits > 0777))
		return "\"umask\" of a profile must be a number from 0 to 511";
	out->umask = mask ? (uint32_t)bits | DVM_UMASK_GIVEN : 0;
	if (limits && !json_is_object(limits))
		return "\"limits\" of a profile must be an object";
	json_object_foreach(limits, name, value) {
		int i = limit_of_name(name);

		if (i == DVM_LIMITS || !json_is_integer(value))
			return "\"limits\" of a profile: each is the name of a limit, as NOFILE, and a number, or -1 for none";
		out->given |= 1u << i;
		out->soft[i] = json_integer_value(value) < 0 ? DVM_LIMIT_NONE :
			       (uint64_t)json_integer_value(value);
	}
	return NULL;
}

static bool is_directory(const char *name)
{
	return name && name[0] == '/' && strlen(name) < DVM_TEXT_MAX;
}

/* Count a use of the profile for the client, which may name it in later requests. */
static const char *define_profile(struct dvm_head *h, struct head_client *c,
				  json_t *json)
{
	const char *id = json_string_value(json_object_get(json, "id"));
	const char *cwd = json_string_value(json_object_get(json, "cwd"));
	json_t *outputs = json_object_get(json, "outputs"), *input = json_object_get(json, "stdin");
	struct profile_files files = { json_string_value(outputs), { NULL, 0 } };
	char *bytes = NULL;
	struct head_profile *p;
	struct dvm_limits limits;
	const char *why;
	struct buf env;

	if (spec_has_nul(json))
		return "a text of a profile contains a NUL byte";
	if (!id || !is_directory(cwd))
		return "a profile needs an \"id\" and a \"cwd\" that begins with /";
	if (outputs && !is_directory(json_string_value(outputs)))
		return "\"outputs\" of a profile must be the name of a directory that begins with /";
	buf_init(&env, DVM_COMMAND_MAX);
	why = read_env(json_object_get(json, "env"), &env);
	why = why ? why : read_limits(json, &limits);
	if (!why && input && !text_take_bytes(input, &bytes, &files.input.len))
		why = "\"stdin\" of a profile must be a text of at most 1 MiB, each byte as the character of its number";
	files.input.data = bytes;
	if (!why && array_grow(&c->profiles, c->nprofiles, &c->profiles_cap,
			       sizeof(struct head_profile *)))
		why = "out of memory";
	p = why ? NULL : profile_define(h, id, cwd, &env, &limits, &files);
	buf_free(&env);
	free(bytes);
	if (!p)
		return why ? why : "out of memory";
	c->profiles[c->nprofiles++] = p;
	return NULL;
}

/* ---- the request ---- */

/* `profile`: of the request; `tied`: to this client, 0: to none. */
static struct head_task *submit_one(struct spec_reading *r, json_t *json, const char *profile,
				    uint32_t tied)
{
	const char *own = json_string_value(json_object_get(json, "profile"));
	struct dvm_bytes text = { NULL, 0 };
	struct head_profile *p;
	struct head_task *t;

	spec_read(r, json);
	profile = own ? own : profile;
	p = profile ? profile_find(r->h, profile) : NULL;
	if (!p)
		spec_wrong(r, "profile", "unknown profile %.60s: send the profile with the request",
			   profile ? profile : "");
	if (!r->key && r->h->journal.on) {
		text.data = json_dumps(json, JSON_COMPACT);
		text.len = text.data ? strlen(text.data) : 0;
		if (!text.data)
			spec_wrong(r, "tasks", "out of memory");
	}
	t = submit_read(r, p, tied, &text);
	free((void *)(uintptr_t)text.data);
	return t;
}

static void add_refused(json_t *refused, size_t index, const struct spec_reading *r)
{
	json_array_append_new(refused, json_pack("{s:I,s:s,s:o,s:b}", "index",
		(json_int_t)index, "key", r->key, "why", text_of_name(r->why), "full", r->full));
}

/* `more`: other requests of the same submit follow. */
static void note_request(struct dvm_head *h, struct head_client *c, bool more)
{
	if (more)
		submit_goes_on(h, c);
	else
		submit_complete(h, c);
}

/* Queue the tasks; returns the answer, a new reference. */
static json_t *submit_tasks(struct dvm_head *h, struct head_client *c,
			    json_t *request, json_t *tasks)
{
	const char *profile = json_string_value(json_object_get(
		json_object_get(request, "profile"), "id"));
	bool watch = !json_is_false(json_object_get(request, "watch"));
	bool follow = json_is_true(json_object_get(request, "spawned"));
	bool more = json_is_true(json_object_get(request, "more"));
	uint32_t tied = json_is_true(json_object_get(request, "tied")) ? c->number : 0;
	json_t *ids = json_array(), *refused = json_array(), *json;
	bool full = false;
	size_t i;

	c->watches |= watch;
	json_array_foreach(tasks, i, json) {
		struct spec_reading r = { .h = h };
		struct head_task *t = submit_one(&r, json, profile, tied);

		json_array_append_new(ids, t ? json_integer((json_int_t)t->id) :
					       json_null());
		if (!t) {
			add_refused(refused, i, &r);
			full |= r.full;
			continue;
		}
		if (more)
			submit_await(h, c, t);
		t->follow = follow;
		if (watch)
			(void)task_watch(h, t, c->number);
	}
	note_request(h, c, more && !full);
	return json_pack("{s:s,s:o,s:o}", "ev", "submitted", "ids", ids,
			 "refused", refused);
}

/* Undo these tasks, the last of the queue: none of them counts as submitted. */
static void undo(struct dvm_head *h, json_t *ids)
{
	for (size_t i = json_array_size(ids); i-- > 0;) {
		json_int_t id = json_integer_value(json_array_get(ids, i));
		struct head_task *t = id ? task_find(h, (uint64_t)id) : NULL;

		if (t)
			task_undo(h, t);
	}
}

/* Write all records of the request to the journal, or none. */
static void submit_recorded(struct dvm_head *h, struct head_client *c,
			    json_t *request, json_t *tasks)
{
	json_t *event = NULL;
	uint64_t at;
	int rc = submit_begin(h);

	if (!rc) {
		event = submit_tasks(h, c, request, tasks);
		rc = submit_end(h, &at);
		if (rc)
			undo(h, json_object_get(event, "ids"));
	}
	if (rc) {
		json_decref(event);
		client_refuse(h, c, request, "the journal cannot be written: %s: no task of the request is accepted",
			      strerror(-rc));
		return;
	}
	client_answer_at(h, c, request, event, at);
}

void submit_request(struct dvm_head *h, struct head_client *c, json_t *request)
{
	json_t *tasks = json_object_get(request, "tasks");
	json_t *profile = json_object_get(request, "profile");
	bool starting = !head_is_ready(h); /* some nodes have not registered yet */
	const char *why = NULL;

	if (!json_is_array(tasks))
		why = "\"tasks\" must be a list";
	else if (!starting && json_object_get(profile, "cwd")) /* else sent before */
		why = define_profile(h, c, profile);
	if (starting)
		client_answer(h, c, request, json_pack("{s:s}", "ev", "starting"));
	else if (why)
		client_refuse(h, c, request, "%s", why);
	else
		submit_recorded(h, c, request, tasks);
}
