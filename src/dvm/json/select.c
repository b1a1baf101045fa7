/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks that a request of a client names. */
#include "dvm/json/json_private.h"

#include <string.h>

#include <utlist.h>

static size_t for_list(struct dvm_head *h, struct head_task *list, task_fn fn,
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

/* A forgotten task counts as ended. */
static bool is_forgotten(const struct dvm_head *h, json_int_t id)
{
	return id > 0 && (uint64_t)id < h->next_id && head_is_own_id(h, (uint64_t)id);
}

static bool ids_ok(struct dvm_head *h, struct head_client *c,
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

/* As for_list, for the tasks of a name. */
static size_t for_name(struct dvm_head *h, struct head_task *list, const char *name, task_fn fn,
		       json_t *request, uint32_t client)
{
	struct head_task *t, *next;
	size_t n = 0;

	DL_FOREACH_SAFE(list, t, next)
		if (task_texts(t)->name && !strcmp(task_texts(t)->name, name)) {
			fn(h, t, request, client);
			n++;
		}
	return n;
}

bool client_for_tasks(struct dvm_head *h, struct head_client *c, json_t *request,
		      task_fn fn, size_t *count, size_t *unkept)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	json_t *ids = json_object_get(request, "ids"), *id;
	struct head_task *t;
	size_t i;

	*count = *unkept = 0;
	if (json_is_true(json_object_get(request, "all"))) {
		*count = for_list(h, h->queued, fn, request, c->number);
		*count += for_list(h, h->running, fn, request, c->number);
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

struct head_task *client_find_task(struct dvm_head *h, struct head_client *c,
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
