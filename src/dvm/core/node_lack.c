/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts that a node delays because it lacks descriptors, processes or memory.
 *
 * The parts wait in the order of their arrival. A start is tried when a rank has ended, and
 * each second, for other users of the machine may have what is lacking. A part waits as
 * long as other ranks run here. Parts of tasks over several nodes wait for a limited time,
 * for the parts of two such tasks could wait for each other; so do tasks that a task has
 * spawned, for which it may wait.
 *
 * When nothing else runs and three tries have failed, the node reports so with the ends of
 * the parts that wait (DVM_LACK_IDLE): the head drains it.
 */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY_MS 1000
#define IDLE_TRIES 3
#define WAIT_MS 30000 /* of parts that do not wait without limit */
#define LAUNCH_MAX (2 * DVM_COMMAND_MAX + DVM_PLACES_MAX + DVM_SPAWN_MAX)

/* The start of a part that waits. */
struct delayed {
	struct buf launch;  /* the message */
	uint64_t until_ms;
};

bool lack_is(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -EAGAIN || rc == -ENOMEM;
}

/* Processes that run here, without those of *p. */
static bool others_run(const struct dvm_node *n, const struct part *p)
{
	uint32_t mine = 0;

	for (uint32_t i = 0; i < p->count; i++)
		mine += p->ranks[i].process != 0;
	return HASH_COUNT(n->ranks) > mine;
}

static void note_lack(struct dvm_node *n, const struct part *p, int error)
{
	n->start_ms = n->now.ms + TRY_MS;
	n->freed = false;
	n->idle_lacks = others_run(n, p) ? 0 : n->idle_lacks + 1;
	n->lack = error;
}

/* True: nothing else runs, and the node has had its tries. They begin anew. */
static bool is_hopeless(struct dvm_node *n)
{
	bool hopeless = n->idle_lacks >= IDLE_TRIES;

	if (hopeless)
		n->idle_lacks = 0;
	return hopeless;
}

bool lack_lasts(const struct dvm_node *n)
{
	return n->delayed || (n->now.ms < n->start_ms && !n->freed);
}

bool dvm_node_is_starting(const struct dvm_node *n)
{
	return n->delayed && n->delayed->output_open;
}

/* ---- parts that wait ---- */

static bool waits_without_limit(const struct dvm_launch *l)
{
	return l->nodes == 1 && !l->spawned.len;
}

int part_delay(struct dvm_node *n, struct part *p, const struct dvm_launch *l, int error)
{
	const struct dvm_msg m = { .type = DVM_LAUNCH, .launch = *l };
	struct delayed *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	buf_init(&d->launch, LAUNCH_MAX);
	rc = dvm_msg_pack(&d->launch, &m);
	if (rc) {
		free(d);
		return -ENOMEM;
	}
	d->until_ms = waits_without_limit(l) ? UINT64_MAX : n->now.ms + WAIT_MS;
	p->delayed = d;
	DL_APPEND2(n->delayed, p, delayed_prev, delayed_next);
	if (error)
		note_lack(n, p, error);
	return 0;
}

/* Its ranks have been started, or will not be. */
static void undelay(struct dvm_node *n, struct part *p)
{
	DL_DELETE2(n->delayed, p, delayed_prev, delayed_next);
	buf_free(&p->delayed->launch);
	free(p->delayed);
	p->delayed = NULL;
}

void part_give_up_start(struct dvm_node *n, struct part *p)
{
	if (!p->delayed)
		return;
	undelay(n, p);
	p->left -= p->count - p->started;
}

/* It ends without having failed. The part may be gone then. */
static void end_lacking(struct dvm_node *n, struct part *p, enum dvm_lack lack)
{
	char why[128];

	snprintf(why, sizeof(why), "the node could not start the task: %s",
		 strerror(-n->lack));
	p->end.lack = lack;
	p->end.any_started = p->started > 0;
	part_give_up_start(n, p);
	part_note_end(p, p->first_rank + p->started, &(struct node_end){
		.status = 126 << 8, .why = why });
	if (p->left)
		part_fails(n, p);
	else
		part_ranks_over(n, p);
}

/* ---- tries ---- */

/* False: it still lacks something. */
static bool try_start(struct dvm_node *n, struct part *p)
{
	struct dvm_msg m;
	struct cursor c;
	int rc;

	cursor_init(&c, p->delayed->launch.data, p->delayed->launch.len);
	rc = dvm_msg_unpack(&c, &m);
	rc = rc ? rc : part_start(n, p, &m.launch);
	if (rc)
		note_lack(n, p, rc);
	return !rc;
}

static void end_late(struct dvm_node *n)
{
	struct part *p, *next;

	DL_FOREACH_SAFE2(n->delayed, p, next, delayed_next)
		if (p->delayed->until_ms <= n->now.ms)
			end_lacking(n, p, DVM_LACK_WAITED);
}

static void end_all_idle(struct dvm_node *n)
{
	struct part *p, *next;

	DL_FOREACH_SAFE2(n->delayed, p, next, delayed_next)
		end_lacking(n, p, DVM_LACK_IDLE);
}

void lack_turn(struct dvm_node *n)
{
	while (n->delayed && (n->freed || n->start_ms <= n->now.ms))
		if (!try_start(n, n->delayed))
			break;
	if (n->delayed && is_hopeless(n))
		end_all_idle(n);
	end_late(n);
}

uint64_t lack_due_ms(const struct dvm_node *n)
{
	return n->delayed ? n->start_ms : UINT64_MAX;
}

/* ---- processes that lack something between fork and exec ---- */

void lack_rank_ended(struct dvm_node *n, struct part *p, const struct node_end *e)
{
	if (!e->lacks) {
		n->freed = true;
		n->idle_lacks = 0;
		return;
	}
	n->start_ms = n->now.ms + TRY_MS;
	n->freed = false;
	if (p->ending || p->end.status)
		return;
	p->end.lack = DVM_LACK_CHILD;
	p->end.any_started = p->count > 1;
}
