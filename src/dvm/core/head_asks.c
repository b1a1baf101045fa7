/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of running tasks to the head: names, which the host keeps, and other tasks.
 * One that has been spawned waits in the queue as others do. It ends with the task that
 * has spawned it, unless that ends well; it is not run again.
 */
#include "dvm/core/head_private.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* NULL: this try of it does not run, or not any more. */
static struct head_task *find_running(struct dvm_head *h, uint64_t task,
				      uint32_t instance)
{
	struct head_task *t = task_find(h, task);

	return t && task_runs(t) && t->instance == instance ? t : NULL;
}

void asks_names(struct dvm_head *h, uint32_t node, const struct dvm_names *m)
{
	struct head_task *t = find_running(h, m->task, m->instance);

	if (!t || !h->ops.names)
		return;
	t->asked_names = true;
	h->ops.names(h->arg, node, m);
}

/* ---- answers ---- */

static void refuse(struct dvm_head *h, uint32_t node, const struct dvm_spawn *m,
		   const char *why)
{
	spawned_reply(h, node, &(struct dvm_spawned){ m->task, m->instance, m->token, 0, 0,
						      { why, strlen(why) } });
}

/* Why it never will be is answered when the task has ended, for that knows more. */
void asks_ready(struct dvm_head *h, const struct dvm_ready *m)
{
	struct head_task *t = find_running(h, m->task, m->instance);

	if (!t || !t->spawned)
		return;
	if (!m->why.len)
		spawned_answer(h, t->spawned, "");
	else if (!t->spawned->why_not)
		t->spawned->why_not = strndup(m->why.data, m->why.len);
}

/* ---- spawning ---- */

static struct head_spawn *new_spawn(struct head_task *parent, uint32_t node,
				    const struct dvm_spawn *m)
{
	struct head_spawn *s = calloc(1, sizeof(*s));

	if (s)
		s->about = malloc(m->about.len);
	if (!s || !s->about) {
		spawned_free(s);
		return NULL;
	}
	memcpy(s->about, m->about.data, m->about.len);
	s->about_len = m->about.len;
	s->parent = parent;
	s->parent_id = parent->id;
	s->instance = m->instance;
	s->token = m->token;
	s->node = node;
	s->asks = true;
	return s;
}

/* The child's description, from that of its parent. */
static json_t *describe(const struct head_task *parent, const struct dvm_spawn *m)
{
	const struct task_spec *p = &parent->spec;
	json_t *argv = json_array(), *o;

	for (const char *a = dvm_texts_next(&m->argv, NULL); a;
	     a = dvm_texts_next(&m->argv, a))
		json_array_append_new(argv, json_string(a));
	o = json_pack("{s:o,s:i,s:b,s:i,s:i,s:s,s:s*,s:s*,s:b,s:s*}", "argv", argv,
		      "ranks", (int)m->ranks, "pmi", 1,
		      "priority", p->priority < PRIORITY_MAX ? p->priority + 1 : PRIORITY_MAX,
		      "time", (int)p->limit_s, "output", spec_output_name(p->output),
		      "path", p->path, "error", p->error, "append", p->append,
		      "name", p->name);
	if (json_array_size(argv) == dvm_texts_count(&m->argv))
		return o;
	json_decref(o);
	return NULL;
}

static const char *why_none(struct dvm_head *h, const struct head_task *parent)
{
	if (h->phase != HEAD_SERVES && h->phase != HEAD_DRAINS)
		return "the DVM is going down";
	if (parent->cancelled || parent->loss)
		return "the task that spawns is being cancelled";
	return journal_ready(h) ? NULL : "the journal of the DVM cannot be written";
}

/* Clients that watch the parent watch the child, too. */
static void tell_watchers(struct dvm_head *h, const struct head_task *parent,
			  struct head_task *t)
{
	const struct watcher *w;

	LL_FOREACH(parent->watchers, w) {
		if (task_watch(h, t, w->client))
			continue;
		client_tell(h, w->client, json_pack("{s:s,s:I,s:I}", "ev", "spawned",
						    "id", (json_int_t)t->id, "parent",
						    (json_int_t)parent->id));
	}
}

static void adopt(struct dvm_head *h, struct head_task *parent, struct head_task *t)
{
	t->spawned->task = t;
	DL_APPEND(parent->children, t->spawned);
	t->follow = parent->follow;
	if (t->follow)
		tell_watchers(h, parent, t);
}

void asks_spawn(struct dvm_head *h, uint32_t node, const struct dvm_spawn *m)
{
	struct head_task *parent = find_running(h, m->task, m->instance), *t;
	const char *none = parent ? why_none(h, parent) : "it has ended";
	json_t *json = none ? NULL : describe(parent, m);
	struct head_spawn *s = json ? new_spawn(parent, node, m) : NULL;
	char why[DVM_TEXT_MAX] = "";

	if (!none && !s)
		none = json ? "out of memory" : "an argument is not UTF-8 text";
	t = s ? submit_spawned(h, json, s, why, sizeof(why)) : NULL;
	json_decref(json);
	if (t)
		adopt(h, parent, t);
	else
		refuse(h, node, m, none ? none : why);
}
