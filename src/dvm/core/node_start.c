/* SPDX-License-Identifier: BSD-3-Clause */
/* How parts of a node begin. */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The cores of the rank, which are taken out of those of the part. */
static void share(struct node_rank *r, struct dvm_cores *cores, uint64_t *gpus,
		  uint32_t each_cores, uint32_t each_gpus)
{
	memset(&r->cores, 0, sizeof(r->cores));
	cores_move(&r->cores, cores, each_cores);
	r->gpus = 0;
	for (; each_gpus; each_gpus--) {
		r->gpus |= *gpus & -*gpus;
		*gpus &= *gpus - 1;
	}
}

/* 0, or a negative errno: the node lacks something. */
static int start_rank(struct dvm_node *n, struct part *p, const struct node_rank *what)
{
	struct rank *r = &p->ranks[what->local];
	struct node_end failed = { .status = 126 << 8 };
	int64_t process = n->ops.start(n->arg, what);

	if (lack_is((int)process))
		return (int)process;
	p->started++;
	r->part = p;
	r->number = p->first_rank + what->local;
	if (process > 0) {
		r->process = process;
		HASH_ADD(hh, n->ranks, process, sizeof(r->process), r);
		return 0;
	}
	failed.why = strerror((int)-process);
	part_note_end(p, r->number, &failed);
	p->left--;
	return 0;
}

static int start_ranks(struct dvm_node *n, struct part *p, const struct dvm_launch *l)
{
	struct node_rank what = {
		.launch = l, .profile = &p->profile->msg, .part = p->number,
	};
	struct dvm_cores cores = l->cores;
	uint64_t gpus = l->gpus;
	uint32_t each_cores = cores_count(&cores) / l->ranks_here;
	uint32_t each_gpus = (uint32_t)__builtin_popcountll(gpus) / l->ranks_here;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < l->ranks_here; i++) {
		what.local = i;
		share(&what, &cores, &gpus, each_cores, each_gpus);
		if (i == p->started)
			rc = start_rank(n, p, &what);
	}
	return rc;
}

static struct part *add_part(struct dvm_node *n, const struct dvm_launch *l,
			     struct profile *profile)
{
	struct part *p = calloc(1, sizeof(*p));

	if (p)
		p->ranks = calloc(l->ranks_here, sizeof(*p->ranks));
	if (!p || !p->ranks) {
		free(p);
		return NULL;
	}
	p->number = n->next_part++;
	p->task = l->task;
	p->instance = l->instance;
	p->profile = profile;
	p->output = l->output;
	p->first_rank = l->first_rank;
	p->count = p->left = l->ranks_here;
	p->grace_ms = l->grace_ms;
	p->end.task = l->task;
	p->end.instance = l->instance;
	p->end.started_ns = n->now.wall_ns;
	p->keep = l->keep;
	p->held = (struct dvm_held){
		l->task, l->instance, l->nodes, l->node, l->first_rank,
		l->ranks_here, l->cores, l->gpus, n->now.wall_ns,
	};
	profile->parts++;
	HASH_ADD(hh, n->parts, number, sizeof(p->number), p);
	HASH_ADD(hh_task, n->by_task, task, sizeof(p->task), p);
	return p;
}

bool node_wants_pmi(const struct dvm_launch *l)
{
	return (l->ranks > 1 || l->pmi) && (l->nodes == 1 || l->places.len);
}

static int open_part(struct dvm_node *n, struct part *p, const struct dvm_launch *l)
{
	int rc = p->output_open ? 0 : n->ops.open_output(n->arg, p->number);

	if (!rc && !p->output_open && p->output == DVM_OUTPUT_FORWARD)
		part_output_begin(n, p, l->window);
	p->output_open = !rc;
	if (rc || p->pmi || !node_wants_pmi(l))
		return rc;
	rc = n->ops.open_pmi(n->arg, p->number, l);
	p->pmi = !rc;
	return rc;
}

/* All ranks have been started, or cannot be for `rc`, a negative errno. */
static void note_started(struct dvm_node *n, struct part *p, const struct dvm_launch *l,
			 int rc)
{
	if (p->delayed)
		part_give_up_start(n, p);
	if (rc || !p->left) {
		p->left = 0;
		part_note_end(p, p->first_rank, &(struct node_end){
			.status = 126 << 8, .why = strerror(-rc) });
		part_ranks_over(n, p);
		return;
	}
	if (l->limit_s)
		part_set_deadline(n, p, n->now.ms + (uint64_t)l->limit_s * 1000);
	/* The end of one that is short goes with it, and says when it started. */
	node_say_later(n, p, DVM_STARTED);
	if (p->end.status)
		part_fails(n, p);
}

int part_start(struct dvm_node *n, struct part *p, const struct dvm_launch *l)
{
	int rc = open_part(n, p, l);

	if (!rc && !p->started)
		p->end.started_ns = p->held.started_ns = n->now.wall_ns;
	rc = rc ? rc : start_ranks(n, p, l);
	if (lack_is(rc))
		return rc;
	note_started(n, p, l, rc);
	return 0;
}

int part_launch(struct dvm_node *n, const struct dvm_launch *l)
{
	struct profile *profile = node_profile_find(n, l->profile);
	struct part *p;
	int rc;

	if (!profile)
		return -EPROTO;
	p = add_part(n, l, profile);
	if (!p)
		return -ENOMEM;
	if (lack_lasts(n))
		return part_delay(n, p, l, 0);
	rc = part_start(n, p, l);
	return rc ? part_delay(n, p, l, rc) : 0;
}
