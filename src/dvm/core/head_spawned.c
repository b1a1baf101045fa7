/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks that tasks have spawned: each ends with the task that has spawned it, unless that
 * ends well. See head_asks.c.
 */
#include "dvm/core/head_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

void spawned_reply(struct dvm_head *h, uint32_t node, const struct dvm_spawned *a)
{
	const struct dvm_msg m = { .type = DVM_SPAWNED, .spawned = *a };
	char room[DVM_TEXT_MAX + 64];
	struct buf out;

	buf_init_in(&out, room, sizeof(room));
	if (!h->nodes[node].lost && !dvm_msg_pack(&out, &m))
		h->ops.node_send(h->arg, node, out.data, out.len);
}

/* An empty reason: the task is ready. */
void spawned_answer(struct dvm_head *h, struct head_spawn *s, const char *why)
{
	if (s->asks)
		spawned_reply(h, s->node, &(struct dvm_spawned){
			s->parent_id, s->instance, s->token, s->task->id,
			s->task->instance, { why, strlen(why) } });
	s->asks = false;
}

void spawned_free(struct head_spawn *s)
{
	if (s) {
		free(s->about);
		free(s->why_not);
	}
	free(s);
}

/* ---- does it fit? ---- */

/* A ledger of the nodes, with nothing on them. */
static struct ledger *empty_ledger(const struct dvm_head *h)
{
	struct ledger *l;
	int rc = ledger_create(&l);

	if (rc)
		return NULL;
	for (uint32_t i = 0; !rc && i < h->options.nodes; i++) {
		rc = ledger_add_node(l, &h->nodes[i].has);
		if (!rc && (h->nodes[i].lost || h->nodes[i].leaving))
			ledger_lose_node(l, i);
	}
	if (!rc)
		return l;
	ledger_destroy(l);
	return NULL;
}

/* Occupy the task's resources. A spawned task has no counters. */
static int occupy(struct ledger *l, const struct head_task *t)
{
	struct ledger_shape s = *queue_shape(&t->item);
	struct ledger_placement *p = NULL;
	int rc;

	s.placed = task_run(t)->placement;
	s.named = false;
	memset(s.counters, 0, sizeof(s.counters));
	rc = ledger_place(l, &s, &p);
	free(p);
	return rc;
}

bool spawned_fits_beside(const struct dvm_head *h, const struct head_task *parent,
		     const struct ledger_shape *shape)
{
	struct ledger *l = empty_ledger(h);
	bool fits;

	if (!l)
		return true; /* found when it waits */
	for (; parent; parent = parent->spawned ? parent->spawned->parent : NULL)
		(void)occupy(l, parent);
	fits = ledger_fits(l, shape);
	ledger_destroy(l);
	return fits;
}

/* ---- ending ---- */

static void cancel_child(struct dvm_head *h, struct head_spawn *s, const char *how)
{
	char why[128];

	if (s->task->cancelled)
		return;
	snprintf(why, sizeof(why), "its parent, task %llu, %s",
		 (unsigned long long)s->parent_id, how);
	task_set_why(s->task, why);
	task_cancel(h, s->task);
}

void spawned_cancel(struct dvm_head *h, struct head_task *t)
{
	struct head_spawn *s, *next;

	DL_FOREACH_SAFE(task_run(t)->children, s, next)
		cancel_child(h, s, "was cancelled");
}

/* Children of a parent that has ended well go on. */
static void leave_children(struct dvm_head *h, struct head_task *t)
{
	bool well = !task_failed_so_far(t) && !task_run(t)->loss;

	while (task_run(t)->children) {
		struct head_spawn *s = t->run->children;

		DL_DELETE(t->run->children, s);
		s->parent = NULL;
		if (!well)
			cancel_child(h, s, "failed");
	}
}

/*
 * The task has ended before its first rank was ready. A program without PMI may have ended
 * well.
 */
static void answer_end(struct dvm_head *h, const struct head_task *t)
{
	const char *why_not = t->spawned->why_not ? t->spawned->why_not : "";
	const char *why = t->why ? t->why : why_not;
	char text[DVM_TEXT_MAX];

	snprintf(text, sizeof(text), "%.1000s", why_not);
	if (task_failed_so_far(t))
		snprintf(text, sizeof(text), "task %llu ended with exit code %d before its first rank had started PMI%s%.600s",
			 (unsigned long long)t->id, dvm_exit_code(t->status),
			 *why ? ": " : "", why);
	spawned_answer(h, t->spawned, text);
}

void spawned_end(struct dvm_head *h, struct head_task *t)
{
	/*
	 * The parent may wait for names that this task publishes, though it has
	 * published none yet.
	 */
	if (h->ops.names_end && (task_run(t)->asked_names || t->spawned))
		h->ops.names_end(h->arg, t->id, t->instance);
	if (t->run)
		t->run->asked_names = false;
	leave_children(h, t);
	if (!t->spawned)
		return;
	answer_end(h, t);
	if (t->spawned->parent)
		DL_DELETE(t->spawned->parent->run->children, t->spawned);
	t->spawned->parent = NULL;
}
