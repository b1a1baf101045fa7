/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks as a request describes them. One that cannot be is refused by its index, the
 * key that is wrong, and why; the others of the request are taken.
 *
 *   {"op": "submit", "profile": {"id": TEXT, "cwd": TEXT, "env": {NAME: VALUE}},
 *    "tasks": [{"argv": [TEXT, ...], ...}], "watch": BOOL, "tied": BOOL}
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/core/output_path.h"
#include "dvm/core/task_input.h"
#include "libutil/array.h"

#define PLACED_MAX LEDGER_RANKS_MAX /* entries */
/* Bytes of a rank: what all ranks of a task on a node have is a number, too. */
#define MEMORY_MAX (INT64_MAX / LEDGER_RANKS_MAX)

/* A task that is being read. */
struct reading {
	struct dvm_head *h;
	json_t *json;
	struct task_spec spec;
	const char *profile; /* its id, or NULL: the request's */
	uint64_t line;       /* see journal_submit */
	struct head_spawn *spawned; /* NULL: a client wants it */
	bool may_not_fit;    /* nodes that it needs are lost: it waits */
	const char *key;     /* what is wrong, NULL: nothing is */
	bool full;           /* only that the queue has no room now */
	char why[256];
};

__attribute__((format(printf, 3, 4)))
static void wrong(struct reading *r, const char *key, const char *fmt, ...)
{
	va_list ap;

	if (r->key)
		return; /* the first counts */
	r->key = key;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

/* ---- values ---- */

/* In one of its texts, at any depth. */
static bool has_nul(json_t *v)
{
	const char *name;
	json_t *each;
	size_t i;

	if (json_is_string(v))
		return strlen(json_string_value(v)) != json_string_length(v);
	json_array_foreach(v, i, each)
		if (has_nul(each))
			return true;
	json_object_foreach(v, name, each)
		if (has_nul(each))
			return true;
	return false;
}

static uint64_t get_number(struct reading *r, const char *key, uint64_t missing,
			   uint64_t max)
{
	json_t *v = json_object_get(r->json, key);

	if (!v)
		return missing;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max) {
		wrong(r, key, "must be a whole number from 0 to %llu",
		      (unsigned long long)max);
		return missing;
	}
	return (uint64_t)json_integer_value(v);
}

static int32_t get_priority(struct reading *r)
{
	json_t *v = json_object_get(r->json, "priority");
	json_int_t n = json_integer_value(v);

	if (v && (!json_is_integer(v) || n < -PRIORITY_MAX || n > PRIORITY_MAX))
		wrong(r, "priority", "must be a whole number from %d to %d", -PRIORITY_MAX,
		      PRIORITY_MAX);
	return v ? (int32_t)n : 0;
}

static bool get_bool(struct reading *r, const char *key)
{
	json_t *v = json_object_get(r->json, key);

	if (v && !json_is_boolean(v))
		wrong(r, key, "must be true or false");
	return json_is_true(v);
}

static char *get_text(struct reading *r, const char *key)
{
	json_t *v = json_object_get(r->json, key);
	char *copy;

	if (!v)
		return NULL;
	if (!json_is_string(v) || json_string_length(v) >= DVM_TEXT_MAX) {
		wrong(r, key, "must be a text of less than %d bytes", DVM_TEXT_MAX);
		return NULL;
	}
	copy = strdup(json_string_value(v));
	if (!copy)
		wrong(r, key, "out of memory");
	return copy;
}

/* ---- argv ---- */

static void read_argv(struct reading *r)
{
	json_t *argv = json_object_get(r->json, "argv"), *v;
	struct buf b;
	size_t i;
	int rc = 0;

	if (!json_is_array(argv) || !json_array_size(argv)) {
		wrong(r, "argv", "must be a list of texts, the program first");
		return;
	}
	buf_init(&b, DVM_COMMAND_MAX);
	json_array_foreach(argv, i, v) {
		if (!json_is_string(v))
			wrong(r, "argv", "argument %zu is not a text", i);
		else
			rc = rc ? rc : buf_append(&b, json_string_value(v),
						  json_string_length(v) + 1);
	}
	if (rc)
		wrong(r, "argv", "longer than %zu bytes", DVM_COMMAND_MAX);
	else if (b.len && !b.data[0])
		wrong(r, "argv", "the program has no name");
	r->spec.argv = b.data;
	r->spec.argv_len = b.len;
}

/* ---- shape ---- */

static void read_counters(struct reading *r)
{
	json_t *counters = json_object_get(r->json, "counters"), *v;
	const char *name;

	if (counters && !json_is_object(counters))
		wrong(r, "counters", "must be an object: name and number");
	json_object_foreach(counters, name, v) {
		int i = ledger_find_counter(r->h->ledger, name);

		if (i < 0)
			wrong(r, "counters", "this DVM has no counter %.40s: name it when it is started, with --counter",
			      name);
		else if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			 json_integer_value(v) > INT32_MAX)
			wrong(r, "counters", "%.40s must be a number", name);
		else
			r->spec.shape.counters[i] = (uint32_t)json_integer_value(v);
	}
}

/* They follow those that are in it, for ranks share out a part's in order. */
static bool read_set(struct reading *r, json_t *list, uint32_t max,
		     struct dvm_cores *all, uint32_t *count)
{
	uint32_t at = 0;
	json_t *v;
	size_t i;

	if (list && !json_is_array(list)) {
		wrong(r, "place", "cores and GPUs must be lists of numbers");
		return false;
	}
	for (uint32_t n = cores_next(all, 0); n < DVM_CORES_MAX;
	     n = cores_next(all, n + 1))
		at = n + 1;
	json_array_foreach(list, i, v) {
		json_int_t n = json_integer_value(v);

		if (!json_is_integer(v) || n < at || n >= max) {
			wrong(r, "place", "the numbers of cores and GPUs on a node must ascend, also from rank to rank");
			return false;
		}
		cores_add(all, (uint32_t)n);
		at = (uint32_t)n + 1;
	}
	*count = (uint32_t)json_array_size(list);
	return true;
}

static void check_place_keys(struct reading *r, json_t *entry)
{
	const char *key;
	json_t *v;

	json_object_foreach(entry, key, v)
		if (strcmp(key, "node") && strcmp(key, "cores") && strcmp(key, "gpus"))
			wrong(r, "place", "unknown key %.60s", key);
}

/* A rank of this node with these cores; those of its node follow one another. */
static void place_rank(struct reading *r, struct ledger_placement *p, json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "node"));
	uint32_t node = name ? head_find_node(r->h, name) : NODE_NONE;
	struct ledger_part *part = p->count ? &p->parts[p->count - 1] : NULL;
	struct dvm_cores gpus = { { 0 } };
	uint32_t cores, ngpus;

	check_place_keys(r, entry);
	if (node == NODE_NONE) {
		wrong(r, "place", "there is no node %.60s here", name ? name : "");
		return;
	}
	if (!part || part->node != node) {
		for (uint32_t i = 0; i < p->count; i++)
			if (p->parts[i].node == node)
				wrong(r, "place", "the ranks of a node must follow one another");
		part = &p->parts[p->count++];
		part->node = node;
		part->first_rank = r->spec.shape.ranks;
	}
	gpus.words[0] = part->gpus;
	if (!read_set(r, json_object_get(entry, "cores"), DVM_CORES_MAX,
		      &part->cores, &cores) ||
	    !read_set(r, json_object_get(entry, "gpus"), LEDGER_GPUS_MAX, &gpus,
		      &ngpus))
		return;
	part->gpus = gpus.words[0];
	if (r->spec.shape.ranks &&
	    (cores != r->spec.shape.cores || ngpus != r->spec.shape.gpus))
		wrong(r, "place", "all ranks must have the same number of cores and of GPUs");
	r->spec.shape.cores = cores;
	r->spec.shape.gpus = ngpus;
	part->ranks++;
	r->spec.shape.ranks++;
}

static void read_placed(struct reading *r)
{
	json_t *place = json_object_get(r->json, "place"), *entry;
	size_t n = json_array_size(place), i;
	struct ledger_placement *p;

	if (!place)
		return;
	if (!n || n > PLACED_MAX) {
		wrong(r, "place", "must be a list with an entry for each rank");
		return;
	}
	p = calloc(1, sizeof(*p) + n * sizeof(p->parts[0]));
	r->spec.shape.placed = p;
	if (!p) {
		wrong(r, "place", "out of memory");
		return;
	}
	r->spec.shape.ranks = 0;
	json_array_foreach(place, i, entry)
		place_rank(r, p, entry);
}

/* With what there is. */
static void too_large(struct reading *r, const struct ledger_shape *s)
{
	const struct ledger *l = r->h->ledger;
	struct ledger_resources most = { 0 };

	for (uint32_t i = 0; i < ledger_nodes(l); i++) {
		const struct ledger_resources *has = ledger_node_has(l, i);

		most.cores = has->cores > most.cores ? has->cores : most.cores;
		most.gpus = has->gpus > most.gpus ? has->gpus : most.gpus;
		most.memory = has->memory > most.memory ? has->memory : most.memory;
	}
	wrong(r, s->placed ? "place" : "ranks",
	      "%u ranks of %u cores and %u GPUs can never fit on these %u nodes (%u cores): a node has at most %u cores, %u GPUs and %llu MiB",
	      s->ranks, s->cores, s->gpus, ledger_nodes(l), ledger_all_cores(l),
	      most.cores, most.gpus, (unsigned long long)(most.memory >> 20));
}

static void read_shape(struct reading *r)
{
	struct ledger_shape *s = &r->spec.shape;

	s->ranks = (uint32_t)get_number(r, "ranks", 1, 1 << 26);
	s->cores = (uint32_t)get_number(r, "cores", 1, DVM_CORES_MAX);
	s->gpus = (uint32_t)get_number(r, "gpus", 0, LEDGER_GPUS_MAX);
	s->memory = get_number(r, "memory", 0, MEMORY_MAX);
	s->nodes = (uint32_t)get_number(r, "nodes", 0, LEDGER_NODES_MAX);
	s->per_node = (uint32_t)get_number(r, "per_node", 0, 1 << 26);
	s->exclusive = get_bool(r, "exclusive");
	if (!s->ranks)
		wrong(r, "ranks", "must be 1 or more");
	if (s->nodes > s->ranks)
		wrong(r, "nodes", "more nodes than ranks");
	read_counters(r);
	read_placed(r);
	if (!r->key && !r->may_not_fit && !ledger_can_ever(r->h->ledger, s))
		too_large(r, s);
	if (!r->key && r->spawned && !asks_fit_beside(r->h, r->spawned->parent, s))
		wrong(r, "ranks", "%u ranks can never fit beside the task that spawns them: the DVM has %u cores, including those of that task",
		      s->ranks, ledger_all_cores(r->h->ledger));
}

/* ---- the rest ---- */

const char *submit_output_name(enum dvm_output output)
{
	static const char *const names[DVM_OUTPUTS] = {
		[DVM_OUTPUT_TAIL] = "tail", [DVM_OUTPUT_FILE] = "file",
		[DVM_OUTPUT_FORWARD] = "forward", [DVM_OUTPUT_NONE] = "none",
	};

	return names[output];
}

static char *get_path(struct reading *r, const char *key)
{
	char *path = get_text(r, key);
	const char *unknown = path ? output_path_unknown(path) : NULL;

	if (unknown)
		wrong(r, key, "unknown \"%.2s\": there are %%t, %%r, %%i and %%%%", unknown);
	return path;
}

static void read_output(struct reading *r)
{
	json_t *v = json_object_get(r->json, "output");
	const char *name = json_string_value(v);

	r->spec.path = get_path(r, "path");
	r->spec.error = get_path(r, "error");
	r->spec.append = get_bool(r, "append");
	r->spec.output = r->spec.path ? DVM_OUTPUT_FILE : DVM_OUTPUT_TAIL;
	if (!v)
		return;
	for (int i = 0; name && i < DVM_OUTPUTS; i++)
		if (!strcmp(name, submit_output_name((enum dvm_output)i))) {
			r->spec.output = (enum dvm_output)i;
			if (i == DVM_OUTPUT_FILE && !r->spec.path)
				wrong(r, "path", "is needed with \"output\": \"file\"");
			return;
		}
	wrong(r, "output", "must be tail, file, forward or none");
}

static void check_keys(struct reading *r)
{
	static const char *const known[] = {
		"argv", "ranks", "cores", "gpus", "memory", "nodes", "per_node",
		"exclusive", "counters", "place", "priority", "time", "retries",
		"output", "path", "error", "append", "name", "profile", "line", "number", "pmi",
		"stdin",
	};
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach(r->json, key, v) {
		for (i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (!strcmp(key, known[i]))
				break;
		if (i == sizeof(known) / sizeof(*known))
			wrong(r, key, "unknown key");
		if (has_nul(v) && strcmp(key, "stdin"))
			wrong(r, key, "a text contains a NUL byte");
	}
}

static void read_stdin(struct reading *r)
{
	json_t *v = json_object_get(r->json, "stdin");

	if (v && !task_input_take(v, &r->spec.input, &r->spec.input_len))
		wrong(r, "stdin", "must be a text of at most %zu bytes, each as the character of its number",
		      DVM_INPUT_MAX);
}

static void read_task(struct reading *r)
{
	json_t *profile = json_object_get(r->json, "profile");

	if (!json_is_object(r->json)) {
		wrong(r, "tasks", "must be an object");
		return;
	}
	check_keys(r);
	read_argv(r);
	read_shape(r);
	read_output(r);
	read_stdin(r);
	r->spec.name = get_text(r, "name");
	r->spec.priority = get_priority(r);
	r->spec.limit_s = (uint32_t)get_number(r, "time", 0, INT32_MAX / 1000);
	r->spec.retries = (uint32_t)get_number(r, "retries", 0, RETRIES_MAX);
	r->spec.pmi = get_bool(r, "pmi");
	r->line = get_number(r, "line", 0, INT64_MAX);
	r->spec.number = get_number(r, "number", 0, INT64_MAX);
	r->profile = json_string_value(profile);
	if (profile && !r->profile)
		wrong(r, "profile", "must be a text: the id of a profile that was sent before");
}

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

	if (has_nul(json))
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
static struct head_task *queue_one(struct reading *r, struct head_profile *p)
{
	struct head_task *t;
	int error;

	if (r->key) {
		task_spec_free(&r->spec);
		return NULL;
	}
	t = task_submit(r->h, &r->spec, p, &error);
	if (!t) {
		wrong(r, "tasks", "%s", strerror(-error));
		return NULL;
	}
	t->line = r->line;
	t->spawned = r->spawned;
	r->spawned = NULL;
	return t;
}

/* `tied`: to this client, 0: to none. */
static struct head_task *submit_one(struct reading *r, const char *profile,
				    uint32_t tied)
{
	struct head_profile *p;
	struct head_task *t;
	int rc;

	read_task(r);
	profile = r->profile ? r->profile : profile;
	p = profile ? profile_find(r->h, profile) : NULL;
	if (!p)
		wrong(r, "profile", "unknown profile %.60s: send the profile with the request",
		      profile ? profile : "");
	r->full = !r->key && r->h->nqueued >= r->h->options.max_waiting;
	if (r->full)
		wrong(r, "tasks", "%zu tasks are queued already: wait until some have ended, or start the DVM with a larger --max-queued",
		      r->h->nqueued);
	t = queue_one(r, p);
	if (!t)
		return NULL;
	t->tied = tied;
	rc = journal_submit(r->h, t, r->json);
	if (!rc)
		return t;
	wrong(r, "tasks", "the task cannot be written to the journal: %s", strerror(-rc));
	task_undo(r->h, t);
	return NULL;
}

struct head_task *submit_spawned(struct dvm_head *h, json_t *json,
				 struct head_spawn *spawned, char *why, size_t size)
{
	const struct head_task *parent = spawned->parent;
	struct reading r = { .h = h, .json = json, .spawned = spawned };
	struct head_task *t = submit_one(&r, parent->profile->id, parent->tied);

	if (!t)
		snprintf(why, size, "%s", r.why);
	head_spawn_free(r.spawned);
	return t;
}

/* Replaces the invalid parts of a task that will not be started. */
static void make_fit(struct reading *r)
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
	struct reading r = { .h = h, .json = json, .may_not_fit = h->hopeless_ms };

	read_task(&r);
	if (r.key) {
		snprintf(why, size, "%s: %s", r.key, r.why);
		make_fit(&r);
	}
	return queue_one(&r, p);
}

static void add_refused(json_t *refused, size_t index, const struct reading *r)
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
		struct reading r = { .h = h, .json = json };
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
