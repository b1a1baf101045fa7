/* SPDX-License-Identifier: BSD-3-Clause */
/* Several DVMs under one name: group.h. */
#include "dvm/cli/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/client.h"
#include "dvm/core/share.h"

static bool is_op(json_t *request, const char *op)
{
	return !strcmp(get_text(request, "op"), op);
}

static bool must_be_idle(json_t *request)
{
	return is_op(request, "down") && !strcmp(get_text(request, "work"), "refuse");
}

bool group_needs_status(json_t *request)
{
	return is_op(request, "submit") || is_op(request, "drain") ||
	       is_op(request, "undrain") || must_be_idle(request);
}

/* ---- whose is it ---- */

static size_t index_of(const struct group *g, uint32_t number)
{
	size_t i = 0;

	while (i < g->count && g->numbers[i] != number)
		i++;
	if (i == g->count || json_is_null(json_array_get(g->status, i)))
		die("the DVM %s.%u is not up", g->name, number);
	return i;
}

static size_t owner_of_task(const struct group *g, json_int_t id)
{
	return index_of(g, (uint32_t)((id - 1) % g->members) + 1);
}

static bool has_node(json_t *status, const char *name)
{
	json_t *node;
	size_t i;

	json_array_foreach(json_object_get(status, "nodes"), i, node)
		if (!strcmp(get_text(node, "name"), name))
			return true;
	return false;
}

/* Index of the DVM that has the node; g->count: none has. */
static size_t owner_of_node(const struct group *g, const char *name)
{
	size_t i = 0;

	while (i < g->count && !has_node(json_array_get(g->status, i), name))
		i++;
	return i;
}

/* ---- the least loaded ---- */

static long long number_or_one(json_t *task, const char *key)
{
	return json_object_get(task, key) ? get_number(task, key) : 1;
}

static double slots_of(json_t *task)
{
	long long ranks = number_or_one(task, "ranks");
	long long cores = number_or_one(task, "cores");

	return ranks > 0 && cores > 0 ? (double)ranks * (double)cores : 1;
}

/* A task on named nodes goes to the DVM of the first. */
static size_t must_go_to(const struct group *g, json_t *task)
{
	json_t *first = json_array_get(json_object_get(task, "place"), 0);
	json_t *on = json_array_get(json_object_get(task, "on"), 0);
	const char *node = json_string_value(on ? on : json_object_get(first, "node"));
	size_t owner = node ? owner_of_node(g, node) : g->count;

	return owner < g->count ? owner : SHARE_ANY;
}

static struct share_task share_of(const struct group *g, json_t *task)
{
	long long seconds = get_number(task, "time"), nodes = get_number(task, "nodes");

	return (struct share_task){
		.slots = slots_of(task), .seconds = seconds > 0 ? (double)seconds : 0,
		.nodes = nodes > 0 ? (uint64_t)nodes : 0, .member = must_go_to(g, task),
	};
}

/* A member's work: each busy slot, and each task that waits, counts `seconds`. */
static struct share_member member_of(json_t *status, double seconds)
{
	struct share_member m = { .up = !json_is_null(status) };
	json_t *node;
	size_t i;

	json_array_foreach(json_object_get(status, "nodes"), i, node)
		if (!strcmp(get_text(node, "state"), "up")) {
			m.nodes++;
			m.slots += (double)get_number(node, "cores");
			m.work += (double)(get_number(node, "cores") -
					   get_number(node, "free"));
		}
	if (m.up)
		m.work += (double)get_number(status, "queued");
	m.work *= seconds;
	return m;
}

/* The member for each task of a request; to be freed. */
static size_t *share(const struct group *g, json_t *list)
{
	size_t count = json_array_size(list), i;
	struct share_member *members = calloc(g->count, sizeof(*members));
	struct share_task *tasks = calloc(count + 1, sizeof(*tasks));
	size_t *to = calloc(count + 1, sizeof(*to));
	json_t *task;
	double seconds;

	if (!members || !tasks || !to)
		die("out of memory");
	json_array_foreach(list, i, task)
		tasks[i] = share_of(g, task);
	seconds = share_mean(tasks, count);
	for (i = 0; i < g->count; i++)
		members[i] = member_of(json_array_get(g->status, i), seconds);
	if (share_out(members, g->count, tasks, count, to))
		die("out of memory");
	free(members);
	free(tasks);
	return to;
}

/* ---- submit ---- */

static json_t *part(json_t *parts, size_t i, json_t *request)
{
	if (json_is_null(json_array_get(parts, i)))
		json_array_set_new(parts, i, json_copy(request));
	return json_array_get(parts, i);
}

/* Each is told all of the profile once. */
static void add_profile(struct group *g, size_t i, json_t *request)
{
	json_t *given = json_object_get(request, "profile");

	if (json_object_get(given, "cwd")) {
		json_decref(g->profile);
		g->profile = json_incref(given);
		memset(g->told, 0, g->count * sizeof(*g->told));
	}
	if (g->profile && !g->told[i])
		json_object_set(request, "profile", g->profile);
	g->told[i] = true;
}

static json_t *begin_part(struct group *g, json_t *parts, size_t i, json_t *request)
{
	json_t *p = json_array_get(parts, i);

	if (!json_is_null(p))
		return p;
	p = part(parts, i, request);
	json_object_set_new(p, "tasks", json_array());
	json_array_set_new(g->indexes, i, json_array());
	add_profile(g, i, p);
	return p;
}

static void split_tasks(struct group *g, json_t *request, json_t *parts)
{
	json_t *tasks = json_object_get(request, "tasks"), *task, *p;
	size_t *to = share(g, tasks), i;

	json_decref(g->indexes);
	g->indexes = make_nulls(g->count);
	if (json_object_get(request, "more")) /* each must know that no more come, or do */
		for (i = 0; i < g->count; i++)
			if (!json_is_null(json_array_get(g->status, i)))
				begin_part(g, parts, i, request);
	json_array_foreach(tasks, i, task) {
		if (to[i] == g->count)
			die("lost all DVMs of %s", g->name);
		p = begin_part(g, parts, to[i], request);
		json_array_append(json_object_get(p, "tasks"), task);
		json_array_append_new(json_array_get(g->indexes, to[i]),
				      json_integer((json_int_t)i));
	}
	free(to);
}

/* ---- others ---- */

static void to_all(struct group *g, json_t *request, json_t *parts)
{
	for (size_t i = 0; i < g->count; i++)
		if (!json_is_null(json_array_get(g->status, i)))
			part(parts, i, request);
}

static void by_ids(struct group *g, json_t *request, json_t *parts)
{
	json_t *id, *p;
	size_t i, to;

	if (json_is_true(json_object_get(request, "all")) || json_object_get(request, "name")) {
		to_all(g, request, parts);
		return;
	}
	json_array_foreach(json_object_get(request, "ids"), i, id) {
		to = owner_of_task(g, json_integer_value(id));
		p = json_array_get(parts, to);
		if (json_is_null(p)) {
			p = part(parts, to, request);
			json_object_set_new(p, "ids", json_array());
		}
		json_array_append(json_object_get(p, "ids"), id);
	}
}

static void by_id(struct group *g, json_t *request, json_t *parts)
{
	part(parts, owner_of_task(g, get_number(request, "id")), request);
}

static void by_node(struct group *g, json_t *request, json_t *parts)
{
	const char *name = get_text(request, "node");
	size_t owner = owner_of_node(g, name);

	if (owner == g->count)
		die("there is no node %s here", name);
	part(parts, owner, request);
}

static void one_must_be_named(struct group *g, json_t *request, json_t *parts)
{
	die("%s is the name of %u DVMs: choose one with --dvm %s.1 to %s.%u", g->name,
	    g->members, g->name, g->name, g->members);
}

/* None goes where one would refuse. */
static void down(struct group *g, json_t *request, json_t *parts)
{
	long long running = 0, queued = 0;
	json_t *status;
	size_t i;

	json_array_foreach(g->status, i, status) {
		running += get_number(status, "running");
		queued += get_number(status, "queued");
	}
	if (must_be_idle(request) && running + queued)
		die("%lld task%s not ended (%lld running, %lld queued): use --wait or --cancel",
		    running + queued, running + queued == 1 ? " has" : "s have", running, queued);
	to_all(g, request, parts);
}

json_t *group_split(struct group *g, json_t *request)
{
	static const struct way {
		const char *op;
		void (*split)(struct group *g, json_t *request, json_t *parts);
	} ways[] = {
		{ "submit", split_tasks }, { "wait", by_ids }, { "cancel", by_ids },
		{ "signal", by_ids },      { "show", by_id },  { "why", by_id },
		{ "drain", by_node },      { "undrain", by_node }, { "down", down },
		{ "grow", one_must_be_named }, { "shrink", one_must_be_named },
	};
	json_t *parts = make_nulls(g->count);

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (is_op(request, ways[i].op)) {
			ways[i].split(g, request, parts);
			return parts;
		}
	to_all(g, request, parts);
	return parts;
}

/* ---- answers ---- */

/* Numbers are added, lists continued; of the rest the first counts. */
static void add_answer(json_t *sum, json_t *answer)
{
	const char *key;
	json_t *value, *old;

	json_object_foreach(answer, key, value) {
		old = json_object_get(sum, key);
		if (json_is_integer(value) && json_is_integer(old))
			json_integer_set(old, json_integer_value(old) +
						      json_integer_value(value));
		else if (json_is_array(value) && json_is_array(old))
			json_array_extend(old, value);
		else if (!old)
			json_object_set(sum, key, value);
	}
}

static void name_nodes(const struct group *g, size_t i, json_t *answer)
{
	json_t *node;
	size_t n;

	json_array_foreach(json_object_get(answer, "nodes"), n, node)
		json_object_set_new(node, "dvm", json_sprintf("%s.%u", g->name,
							      g->numbers[i]));
}

/* The members that are not up any more. */
static json_t *gone(const struct group *g, json_t *answers)
{
	json_t *names = json_array();
	size_t i = 0;

	for (uint32_t number = 1; number <= g->members; number++) {
		bool here = i < g->count && g->numbers[i] == number;

		if (!here || json_is_null(json_array_get(answers, i)))
			json_array_append_new(names, json_sprintf("%s.%u", g->name, number));
		i += here;
	}
	return names;
}

static json_t *join_status(struct group *g, json_t *answers)
{
	json_t *sum = json_object(), *answer;
	size_t i;

	json_array_foreach(answers, i, answer) {
		name_nodes(g, i, answer);
		add_answer(sum, answer);
	}
	json_object_set_new(sum, "dvm", json_string(g->name));
	json_object_set_new(sum, "gone", gone(g, answers));
	return sum;
}

static void join_part(json_t *sum, json_t *indexes, json_t *answer)
{
	const char *error = json_is_null(answer) ? "lost the DVM of the task" :
							 get_text(answer, "why");
	json_t *refused = json_object_get(sum, "refused"), *index, *r;
	json_t *ids = json_object_get(answer, "ids");
	size_t i;

	json_array_foreach(indexes, i, index) {
		if (ids)
			json_array_set(json_object_get(sum, "ids"),
				       (size_t)json_integer_value(index),
				       json_array_get(ids, i));
		else
			json_array_append_new(refused, json_pack("{s:O,s:s,s:s}",
				"index", index, "key", "", "why", error));
	}
	json_array_foreach(json_object_get(answer, "refused"), i, r) {
		index = json_array_get(indexes, (size_t)get_number(r, "index"));
		json_object_set(r, "index", index);
		json_array_append(refused, r);
	}
}

static json_t *join_submitted(struct group *g, json_t *request, json_t *answers)
{
	size_t tasks = json_array_size(json_object_get(request, "tasks")), i;
	json_t *sum = json_pack("{s:s,s:o,s:o}", "ev", "submitted", "ids", make_nulls(tasks),
				"refused", json_array());
	json_t *answer;

	json_array_foreach(answers, i, answer)
		join_part(sum, json_array_get(g->indexes, i), answer);
	return sum;
}

json_t *group_join(struct group *g, json_t *request, json_t *answers)
{
	json_t *sum, *answer;
	size_t i;

	if (is_op(request, "submit"))
		return join_submitted(g, request, answers);
	json_array_foreach(answers, i, answer)
		if (!strcmp(get_text(answer, "ev"), "error"))
			die("%s.%u: %s", g->name, g->numbers[i], get_text(answer, "why"));
	if (is_op(request, "status"))
		return join_status(g, answers);
	sum = json_object();
	json_array_foreach(answers, i, answer)
		add_answer(sum, answer);
	return sum;
}
