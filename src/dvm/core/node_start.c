/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How parts of a node begin. The node asks the host to start the ranks of a part, and the
 * host reports which ranks it has started. Parts wait for that in the order of their
 * arrival: while the node lacks something (node_lack.c), and while the host has enough
 * starts.
 */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ASKED_MAX 64                      /* limit of the parts that the host is asked to start */
#define ASKED_BYTES ((size_t)4 << 20)     /* and of the bytes of their messages, about */
#define LOOK_MS 1000 /* between two looks at parts that wait, when the host does not answer */

/* ---- parts that wait ---- */

/* `first`: the part waits again, before all others. */
static void wait_for_start(struct dvm_node *n, struct part *p, bool first)
{
	p->start = START_WAITS;
	if (first)
		DL_PREPEND2(n->waits, p, waits_prev, waits_next);
	else
		DL_APPEND2(n->waits, p, waits_prev, waits_next);
}

void part_give_up_start(struct dvm_node *n, struct part *p)
{
	if (p->start != START_WAITS)
		return;
	DL_DELETE2(n->waits, p, waits_prev, waits_next);
	p->start = START_OVER;
	p->left -= p->count - p->started;
	n->ops.give_up(n->arg, p->number);
}

void part_end_unstarted(struct dvm_node *n, struct part *p, const struct node_end *e)
{
	part_give_up_start(n, p);
	part_note_end(p, p->first_rank + p->started, e);
	if (p->left)
		part_fails(n, p);
	else
		part_ranks_over(n, p);
}

/* The signal that ends the part, also its ranks that have not been started; 0: none. */
static int ends_by(const struct part *p)
{
	if (p->signalled == SIGKILL)
		return SIGKILL;
	return p->ending ? SIGTERM : 0;
}

/* Handle a rank that could not be started. */
static void start_failed(struct dvm_node *n, struct part *p, int error)
{
	const int number = ends_by(p);

	wait_for_start(n, p, true);
	if (lack_is(error))
		lack_note(n, p, error);
	if (number)
		part_end_unstarted(n, p, &(struct node_end){ .status = number });
	else if (!lack_is(error))
		part_end_unstarted(n, p, &(struct node_end){
			.status = 126 << 8, .why = strerror(-error) });
}

/* ---- starts ---- */

bool node_wants_pmi(const struct dvm_launch *l)
{
	return l->ranks > 1 || l->pmi;
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

static void ask(struct dvm_node *n, struct part *p, const struct dvm_launch *l)
{
	const struct node_start what = {
		.part = p->number, .first = p->started, .launch = l,
		.message = { p->launch.data, p->launch.len },
		.profile = &p->profile->msg,
	};

	p->asked_bytes = p->launch.len + node_profile_tell(n, p->profile);
	if (!p->started)
		p->end.started_ns = p->held.started_ns = n->now.wall_ns;
	p->start = START_ASKED;
	n->asked++;
	n->asked_bytes += p->asked_bytes;
	n->ops.start(n->arg, &what);
}

/* Start the first part that waits. */
static void try_start(struct dvm_node *n)
{
	struct part *p = n->waits;
	struct dvm_msg m;
	struct cursor c;
	int rc;

	DL_DELETE2(n->waits, p, waits_prev, waits_next);
	cursor_init(&c, p->launch.data, p->launch.len);
	rc = dvm_msg_unpack(&c, &m);
	rc = rc ? rc : open_part(n, p, &m.launch);
	if (rc)
		start_failed(n, p, rc);
	else
		ask(n, p, &m.launch);
}

static bool may_start(const struct dvm_node *n)
{
	return n->asked < ASKED_MAX && n->asked_bytes < ASKED_BYTES && !lack_lasts(n);
}

static void all_started(struct dvm_node *n, struct part *p)
{
	p->start = START_OVER;
	buf_free(&p->launch);
	n->lack = 0;
	n->ops.all_started(n->arg, p->number);
	if (p->limit_s && !p->deadline_ms)
		part_set_deadline(n, p, n->now.ms + (uint64_t)p->limit_s * 1000);
	/*
	 * The message goes with the end of a short task, which has the time of the start,
	 * too.
	 */
	node_say_later(n, p, DVM_STARTED);
}

void dvm_node_started(struct dvm_node *n, uint32_t part, const uint64_t *processes,
		      uint32_t count, int error, struct dvm_time now)
{
	struct part *p = node_part(n, part);

	n->now = now;
	if (!p || p->start != START_ASKED || count > p->count - p->started)
		return;
	n->asked--;
	n->asked_bytes -= p->asked_bytes;
	for (uint32_t i = 0; i < count; i++)
		p->ranks[p->started++] = (struct rank){ processes[i], true };
	p->running += count;
	n->running += count;
	if (error)
		start_failed(n, p, error);
	else
		all_started(n, p);
}

void starts_turn(struct dvm_node *n)
{
	while (n->waits && may_start(n))
		try_start(n);
	lack_turn(n);
}

uint64_t starts_due_ms(const struct dvm_node *n)
{
	if (!n->waits)
		return UINT64_MAX;
	return n->asked ? n->now.ms + LOOK_MS : n->start_ms;
}

/* ---- a new part ---- */

static void free_part(struct part *p)
{
	buf_free(&p->launch);
	free(p->ranks);
	free(p);
}

static struct part *make_part(const struct dvm_launch *l, const struct dvm_bytes *message)
{
	struct part *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	buf_init(&p->launch, DVM_LAUNCH_MAX);
	p->ranks = calloc(l->ranks_here, sizeof(*p->ranks));
	if (p->ranks && !buf_append(&p->launch, message->data, message->len))
		return p;
	free_part(p);
	return NULL;
}

/* 0 or -ENOMEM. */
static int list_part(struct dvm_node *n, struct part *p)
{
	HASH_ADD(hh, n->parts, number, sizeof(p->number), p);
	if (!p->hh.tbl)
		return -ENOMEM;
	HASH_ADD(hh_task, n->by_task, task, sizeof(p->task), p);
	if (p->hh_task.tbl)
		return 0;
	HASH_DELETE(hh, n->parts, p);
	return -ENOMEM;
}

static int add_part(struct dvm_node *n, struct part *p, const struct dvm_launch *l,
		     struct profile *profile)
{
	p->number = n->next_part++;
	p->task = l->task;
	p->instance = l->instance;
	p->profile = profile;
	p->output = l->output;
	p->line = l->line;
	p->first_rank = l->first_rank;
	p->count = p->left = l->ranks_here;
	p->limit_s = l->limit_s;
	p->grace_ms = l->grace_ms;
	p->start_until_ms = lack_until_ms(n, l);
	p->end.task = l->task;
	p->end.instance = l->instance;
	p->end.started_ns = n->now.wall_ns;
	p->keep = l->keep;
	p->held = (struct dvm_held){
		l->task, l->instance, l->nodes, l->node, l->first_rank,
		l->ranks_here, l->cores, l->gpus, n->now.wall_ns,
	};
	if (list_part(n, p))
		return -ENOMEM;
	profile->parts++;
	return 0;
}

int part_launch(struct dvm_node *n, const struct dvm_launch *l,
		const struct dvm_bytes *message)
{
	struct profile *profile = node_profile_find(n, l->profile);
	struct part *p;

	if (!profile)
		return -EPROTO;
	p = make_part(l, message);
	if (!p)
		return -ENOMEM;
	if (add_part(n, p, l, profile)) {
		free_part(p);
		return -ENOMEM;
	}
	wait_for_start(n, p, false);
	if (n->waits == p && may_start(n))
		try_start(n);
	return 0;
}
