/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of running tasks to the head: names, which the host keeps, and other tasks.
 * One that has been spawned waits in the queue as others do. It ends with the task that
 * has spawned it, unless that ends well; it is not run again.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define TEXT_MAX (8 * DVM_COMMAND_MAX) /* bytes, each at most six as JSON */

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
	t->run->asked_names = true;
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

static const char *why_none(struct dvm_head *h, const struct head_task *parent)
{
	if (h->phase != HEAD_SERVES && h->phase != HEAD_DRAINS)
		return "the DVM is going down";
	if (parent->cancelled || parent->run->loss)
		return "the task that spawns is being cancelled";
	return journal_ready(h) ? NULL : "the journal of the DVM cannot be written";
}

/* Clients that watch the parent watch the child, too. */
static void tell_watchers(struct dvm_head *h, const struct head_task *parent,
			  struct head_task *t)
{
	const struct head_event e = { .type = EVENT_SPAWNED, .spawned = { t->id, parent->id } };
	FOR_EACH_WATCHER(parent, w) {
		if (task_watch(h, t, w.client))
			continue;
		client_tell(h, w.client, &e);
	}
}

static void adopt(struct dvm_head *h, struct head_task *parent, struct head_task *t)
{
	t->spawned->task = t;
	DL_APPEND(parent->run->children, t->spawned);
	t->follow = parent->follow;
	if (t->follow)
		tell_watchers(h, parent, t);
}

void asks_spawn(struct dvm_head *h, uint32_t node, const struct dvm_spawn *m)
{
	struct head_task *parent = find_running(h, m->task, m->instance), *t;
	const char *none = parent ? why_none(h, parent) : "it has ended";
	struct head_spawn *s = none ? NULL : new_spawn(parent, node, m);
	char why[DVM_TEXT_MAX] = "";
	struct buf text;
	int rc;

	buf_init(&text, TEXT_MAX);
	rc = s ? h->ops.format->write_spawned(parent, m, &text) : -ENOMEM;
	if (!none && rc)
		none = rc == -EILSEQ ? "an argument is not UTF-8 text" : "out of memory";
	t = none ? NULL : submit_spawned(h, &(struct dvm_bytes){ text.data, text.len }, s,
					 why, sizeof(why));
	buf_free(&text);
	if (none)
		spawned_free(s);
	if (t)
		adopt(h, parent, t);
	else
		refuse(h, node, m, none ? none : why);
}
