/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node may lack descriptors, processes or memory for the start of a part.
 *
 * A start is tried again when a rank has ended, and each second, for other users of the
 * machine may have what is lacking. A part waits as long as other ranks run here. Parts of
 * tasks over several nodes wait for a limited time, for the parts of two such tasks could
 * wait for each other; so do tasks that a task has spawned, for which it may wait.
 *
 * When nothing else runs and three tries have failed, the node reports so with the ends of
 * the parts that wait (DVM_LACK_IDLE): the head drains it.
 */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TRY_MS 1000
#define IDLE_TRIES 3
#define WAIT_MS 30000 /* limit for parts that do not wait without limit */

bool lack_is(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -EAGAIN || rc == -ENOMEM;
}

static void try_later(struct dvm_node *n, int error)
{
	n->lack = error;
	n->start_ms = n->now.ms + TRY_MS;
	n->freed = false;
}

void lack_note(struct dvm_node *n, const struct part *p, int error)
{
	try_later(n, error);
	n->idle_lacks = n->running > p->running ? 0 : n->idle_lacks + 1;
}

bool lack_lasts(const struct dvm_node *n)
{
	return n->lack && (n->asked || (n->now.ms < n->start_ms && !n->freed));
}

uint64_t lack_until_ms(const struct dvm_node *n, const struct dvm_launch *l)
{
	return l->nodes == 1 && !l->spawned.len ? UINT64_MAX : n->now.ms + WAIT_MS;
}

/* ---- parts that have waited long enough ---- */

/* End the part without a failure. The part may be gone then. */
static void end_lacking(struct dvm_node *n, struct part *p, enum dvm_lack lack)
{
	char why[128];

	snprintf(why, sizeof(why), "the node could not start the task: %s",
		 n->lack ? strerror(-n->lack) : "its fork server does not answer");
	p->end.lack = lack;
	p->end.any_started = p->started > 0;
	part_end_unstarted(n, p, &(struct node_end){ .status = 126 << 8, .why = why });
}

/* True: nothing else runs, and the node has had its tries. The count begins again. */
static bool is_hopeless(struct dvm_node *n)
{
	bool hopeless = n->idle_lacks >= IDLE_TRIES;

	if (hopeless)
		n->idle_lacks = 0;
	return hopeless;
}

void lack_turn(struct dvm_node *n)
{
	const bool hopeless = n->waits && is_hopeless(n);
	struct part *p, *next;

	DL_FOREACH_SAFE2(n->waits, p, next, waits_next)
		if (hopeless)
			end_lacking(n, p, DVM_LACK_IDLE);
		else if (p->start_until_ms <= n->now.ms)
			end_lacking(n, p, DVM_LACK_WAITED);
}

/* ---- processes that lack something between fork and exec ---- */

/* A time limit has not ended the part: the zygote has reported late that it never ran. */
static void forget_limit(struct part *p)
{
	p->end.too_long = false;
	*p->why = '\0';
}

void lack_rank_ended(struct dvm_node *n, struct part *p, const struct node_end *e)
{
	if (!e->lacks) {
		n->freed = true;
		n->idle_lacks = 0;
		return;
	}
	try_later(n, -EAGAIN);
	if ((p->ending && !p->end.too_long) || p->end.status)
		return;
	if (p->end.too_long)
		forget_limit(p);
	p->end.lack = DVM_LACK_CHILD;
	p->end.any_started = p->count > 1;
}
