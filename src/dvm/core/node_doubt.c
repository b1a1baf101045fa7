/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures of parts of a node that are not reported yet: node.h. */
#include "dvm/core/node_private.h"

#include <signal.h>

/* Milliseconds on a machine that is overloaded: */
#define DOUBT_MS 2000        /* between the signals of Slurm to two processes of a step */
#define DOUBT_OTHERS_MS 4000 /* until the failed node reports itself */
#define CONTINUED_MS 60000   /* from Slurm's SIGCONT to SIGTERM, and to the ends by that */

static bool was_continued(const struct dvm_node *n)
{
	return n->continued_ms && n->now.ms - n->continued_ms < CONTINUED_MS;
}

/*
 * True: ended by a signal with which Slurm ends a step, or with a shell's exit code for
 * one.
 */
static bool ended_by_slurm(const struct part *p, int32_t status)
{
	int number = status & 0x7f ? status & 0x7f : (status >> 8 & 0xff) - 128;

	return (number == SIGTERM || number == SIGKILL) && number != p->signalled;
}

static bool is_doubtful(const struct dvm_node *n, const struct part *p,
			const struct node_end *e)
{
	return e->status && !e->why && !p->ending &&
	       (ended_by_slurm(p, e->status) || was_continued(n));
}

static void begin(struct dvm_node *n, struct part *p, enum doubt doubt)
{
	p->doubt = doubt;
	part_set_deadline(n, p, n->now.ms + (doubt == OF_RANK ? DOUBT_MS : DOUBT_OTHERS_MS));
}

void doubt_end(struct dvm_node *n, struct part *p, const struct node_end *e)
{
	if (!p->doubt && is_doubtful(n, p, e))
		begin(n, p, OF_RANK);
}

void doubt_others(struct dvm_node *n, struct part *p)
{
	begin(n, p, OF_OTHERS);
}

void doubt_over(struct dvm_node *n, struct part *p)
{
	p->doubt = NO_DOUBT;
	part_set_deadline(n, p, 0);
	if (p->left)
		part_fails(n, p);
	else
		part_ranks_over(n, p);
}

bool doubt_leave(struct dvm_node *n, struct part *p)
{
	if (p->doubt != OF_OTHERS)
		return true;
	p->doubt = NO_DOUBT;
	part_set_deadline(n, p, 0);
	if (p->left)
		return true;
	part_ranks_over(n, p);
	return false;
}

bool doubt_is_of_others(const struct dvm_node *n, const struct part *p,
			const struct node_failure *f)
{
	return !f->asked && !p->end.status && (p->held.nodes > 1 || was_continued(n));
}

void dvm_node_continued(struct dvm_node *n, struct dvm_time now)
{
	n->continued_ms = now.ms;
}
