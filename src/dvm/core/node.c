/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of tasks that run on a node. */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX ((size_t)512 << 20) /* bytes of messages of a turn */
#define LATER_MS 10 /* delay of messages for which no process waits */

void node_fail(struct dvm_node *n)
{
	if (!n->failed)
		n->ops.leave(n->arg);
	n->failed = true;
}

void node_send(struct dvm_node *n, const struct dvm_msg *m)
{
	n->send_ms = 0;
	if (dvm_msg_pack(&n->out, m))
		node_fail(n);
}

/* ---- the end of a part ---- */

static void part_free(struct dvm_node *n, struct part *p)
{
	if (p->deadline_ms)
		DL_DELETE(n->timed, p);
	part_give_up_start(n, p);
	n->freed |= p->end.lack != DVM_LACK_CHILD;
	buf_free(&p->launch);
	HASH_DELETE(hh, n->parts, p);
	HASH_DELETE(hh_task, n->by_task, p);
	node_profile_release(n, p->profile);
	free(p->tails[0].bytes);
	free(p->tails[1].bytes);
	free(p->keeps);
	free(p->ranks);
	free(p);
}

void part_end_kept(struct dvm_node *n, struct part *p)
{
	struct dvm_msg m = { .type = DVM_ENDED };

	p->end.why = (struct dvm_bytes){ p->why, strlen(p->why) };
	p->end.out = tail_bytes(&p->tails[0]);
	p->end.err = tail_bytes(&p->tails[1]);
	part_note_files(p);
	m.ended = p->end;
	if (p->spoke)
		node_send_bulk(n, &m);
	else
		node_send(n, &m);
	if (p->keep && kept_add(n->kept, &p->held, &p->end))
		node_fail(n);
	part_free(n, p);
}

static void part_ended(struct dvm_node *n, struct part *p)
{
	n->ops.close_output(n->arg, p->number);
	if (!part_waits_for_files(n, p))
		part_end_kept(n, p);
}

void part_set_deadline(struct dvm_node *n, struct part *p, uint64_t ms)
{
	if (!p->deadline_ms && ms)
		DL_APPEND(n->timed, p);
	if (ms && ms < n->first_ms)
		n->first_ms = ms;
	if (p->deadline_ms && !ms)
		DL_DELETE(n->timed, p);
	p->deadline_ms = ms;
}

void part_ranks_over(struct dvm_node *n, struct part *p)
{
	if (!p->end.ended_ns)
		p->end.ended_ns = n->now.wall_ns;
	part_set_deadline(n, p, 0);
	if (p->pmi)
		n->ops.close_pmi(n->arg, p->number);
	p->waits_for_pmi = p->pmi && p->end.status && !*p->why;
	if (!p->waits_for_pmi)
		part_ended(n, p);
}

static void signal_part(struct dvm_node *n, const struct part *p, int number)
{
	if (p->running || p->start == START_ASKED)
		n->ops.signal(n->arg, p->number, number);
}

/* True: no rank is left of a part that waits for its start, so the part is gone. */
static bool drop_start(struct dvm_node *n, struct part *p, int number)
{
	if (p->start != START_WAITS)
		return false;
	part_give_up_start(n, p);
	if (p->left)
		return false;
	part_note_end(p, p->first_rank, &(struct node_end){ .status = number });
	part_ranks_over(n, p);
	return true;
}

/* End a part with SIGTERM first. The part may be gone then. */
static void end_part(struct dvm_node *n, struct part *p)
{
	if (p->ending || p->doubt)
		return;
	p->ending = true;
	if (drop_start(n, p, SIGTERM))
		return;
	signal_part(n, p, SIGTERM);
	signal_part(n, p, SIGCONT); /* a stopped process would not handle it */
	part_set_deadline(n, p, n->now.ms + (p->grace_ms ? p->grace_ms : 1));
}

void part_note_end(struct part *p, uint32_t rank, const struct node_end *e)
{
	p->end.user_us += e->user_us;
	p->end.system_us += e->system_us;
	if (e->peak_kib > p->end.peak_kib)
		p->end.peak_kib = e->peak_kib;
	if (p->end.status || !e->status)
		return;
	p->end.status = e->status;
	p->end.rank = rank;
	p->end.not_started = e->why != NULL;
	if (e->why && !*p->why)
		strncpy(p->why, e->why, sizeof(p->why) - 1);
}

void node_say(struct dvm_node *n, const struct part *p, enum dvm_msg_type type)
{
	const struct dvm_msg m = {
		.type = type, .started = { p->task, p->instance },
	};

	node_send(n, &m);
}

void node_say_later(struct dvm_node *n, const struct part *p, enum dvm_msg_type type)
{
	const uint64_t send_ms = n->out.len ? n->send_ms : n->now.ms + LATER_MS;

	node_say(n, p, type);
	n->send_ms = send_ms;
}

void part_fails(struct dvm_node *n, struct part *p)
{
	if (p->ending)
		return;
	p->failing = true;
	node_say(n, p, DVM_FAILING);
	end_part(n, p);
}

/* ---- ends of ranks ---- */

static void rank_ended(struct dvm_node *n, struct part *p, uint32_t slot,
		       const struct node_end *e)
{
	if (p->pmi)
		n->ops.pmi_rank_ended(n->arg, p->number, slot, e->status);
	part_note_end(p, p->first_rank + slot, e);
	if (!--p->left)
		p->end.ended_ns = n->now.wall_ns;
	doubt_end(n, p, e);
	if (p->doubt)
		return;
	if (!p->left)
		part_ranks_over(n, p);
	else if (e->status)
		part_fails(n, p);
}

bool dvm_node_ended(struct dvm_node *n, uint32_t part, uint32_t slot,
		    const struct node_end *end, struct dvm_time now)
{
	struct part *p = node_part(n, part);

	n->now = now;
	if (!p || slot >= p->count || !p->ranks[slot].runs)
		return false;
	p->ranks[slot].runs = false;
	p->running--;
	n->running--;
	lack_rank_ended(n, p, end);
	rank_ended(n, p, slot, end);
	return true;
}

/* ---- input ---- */

struct part *node_part(const struct dvm_node *n, uint32_t number)
{
	struct part *p;

	HASH_FIND(hh, n->parts, &number, sizeof(number), p);
	return p;
}

struct part *node_find_part(const struct dvm_node *n, uint64_t task, uint32_t instance)
{
	struct part *p;

	HASH_FIND(hh_task, n->by_task, &task, sizeof(task), p);
	return p && p->instance == instance ? p : NULL;
}

static void tell_part(struct dvm_node *n, struct part *p)
{
	p->end.told = true;
	if (doubt_leave(n, p))
		end_part(n, p);
}

static void pass_signal_on(struct dvm_node *n, struct part *p, int number)
{
	p->signalled = number;
	signal_part(n, p, number);
	if (number == SIGKILL && !drop_start(n, p, SIGKILL))
		doubt_leave(n, p);
}

static void on_signal(struct dvm_node *n, const struct dvm_signal *m)
{
	struct part *p = node_find_part(n, m->task, m->instance);

	if (!p || (p->keeps && p->keeps->waits))
		return;
	if (m->number)
		pass_signal_on(n, p, (int)m->number);
	else if (p->doubt != OF_RANK && !p->ending)
		tell_part(n, p);
}

static void note_fail(struct part *p, const struct node_failure *f)
{
	if (!p->end.status) {
		p->end.status = f->status;
		p->end.rank = f->rank;
	}
	if (!*p->why || (f->asked && !p->end.too_long))
		snprintf(p->why, sizeof(p->why), "%s", f->why);
}

/*
 * PMI reports more than the exit of a process. A failure while the part is being ended is
 * no reason. An abort of a rank is one, even if another node was the first to report that
 * the task fails.
 */
void dvm_node_pmi_failed(struct dvm_node *n, uint32_t part, const struct node_failure *f,
			 struct dvm_time now)
{
	struct part *p = node_part(n, part);
	bool of_others;

	n->now = now;
	if (!p || (p->ending && !p->failing && !f->asked))
		return;
	of_others = doubt_is_of_others(n, p, f);
	note_fail(p, f);
	if ((f->asked && !doubt_leave(n, p)) || p->doubt)
		return;
	if (of_others)
		doubt_others(n, p);
	else
		part_fails(n, p);
}

void dvm_node_pmi_over(struct dvm_node *n, uint32_t part, struct dvm_time now)
{
	struct part *p = node_part(n, part);

	n->now = now;
	if (p && p->waits_for_pmi)
		part_ended(n, p);
}

static void on_stop(struct dvm_node *n, const struct dvm_stop *m)
{
	struct part *p, *next;

	n->leaving = true;
	for (p = n->parts; p && !m->now; p = next) {
		next = p->hh.next;
		end_part(n, p);
	}
	if (m->now)
		n->ops.leave(n->arg); /* the host kills the rest */
}

static int take(struct dvm_node *n, const struct dvm_msg *m, const struct dvm_bytes *bytes)
{
	switch (m->type) {
	case DVM_PROFILE:
		return node_profile_add(n, &m->profile);
	case DVM_FORGET:
		node_profile_forget(n, m->profile.number);
		return 0;
	case DVM_NODES:
		return node_names_add(n, &m->nodes);
	case DVM_LAUNCH:
		return part_launch(n, &m->launch, bytes);
	case DVM_SIGNAL:
		on_signal(n, &m->signal);
		return 0;
	case DVM_ASK:
		node_tell(n, &m->ask);
		return 0;
	case DVM_LEAVE:
		n->leaving = true;
		return 0;
	case DVM_CREDIT:
		node_credit(n, &m->credit);
		return 0;
	case DVM_ADOPT:
		node_adopt(n);
		return 0;
	case DVM_DONE:
		node_done(n, &m->started);
		return 0;
	case DVM_STOP:
		on_stop(n, &m->stop);
		return 0;
	default:
		return -EPROTO;
	}
}

int dvm_node_input(struct dvm_node *n, const void *data, size_t len,
		   struct dvm_time now)
{
	struct dvm_bytes bytes;
	struct dvm_msg m;
	struct cursor c;
	int rc = 0;

	n->now = now;
	cursor_init(&c, data, len);
	while (!rc && cursor_left(&c)) {
		bytes.len = cursor_left(&c);
		bytes.data = (const char *)data + len - bytes.len;
		rc = dvm_msg_unpack(&c, &m);
		bytes.len -= cursor_left(&c);
		rc = rc ? rc : take(n, &m, &bytes);
	}
	return rc;
}

void dvm_node_register(struct dvm_node *n, const struct dvm_register *r)
{
	const struct dvm_msg m = { .type = DVM_REGISTER, .reg = *r };

	n->is = *r;
	node_send(n, &m);
}

/* ---- turns ---- */

/* The part may be gone then. */
static void deadline_reached(struct dvm_node *n, struct part *p)
{
	if (p->doubt) {
		doubt_over(n, p);
	} else if (p->ending) {
		part_set_deadline(n, p, 0);
		signal_part(n, p, SIGKILL);
	} else {
		p->end.too_long = true;
		strcpy(p->why, "the time limit of the task was reached");
		end_part(n, p);
	}
}

static void check_deadlines(struct dvm_node *n)
{
	struct part *p, *next;

	if (n->first_ms > n->now.ms)
		return;
	DL_FOREACH_SAFE(n->timed, p, next)
		if (p->deadline_ms <= n->now.ms)
			deadline_reached(n, p);
	n->first_ms = UINT64_MAX;
	DL_FOREACH(n->timed, p)
		if (p->deadline_ms < n->first_ms)
			n->first_ms = p->deadline_ms;
}

/* Milliseconds until the next deadline, or until messages are due; -1: none. */
static int next_deadline(const struct dvm_node *n)
{
	uint64_t first = n->out.len ? n->send_ms : UINT64_MAX, left;

	if (starts_due_ms(n) < first)
		first = starts_due_ms(n);
	if (n->timed && n->first_ms < first)
		first = n->first_ms;
	if (first == UINT64_MAX)
		return -1;
	left = first > n->now.ms ? first - n->now.ms : 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

static void send_now(struct dvm_node *n, struct buf *b)
{
	n->ops.send(n->arg, b->data, b->len);
	buf_clear(b);
}

int dvm_node_turn(struct dvm_node *n, struct dvm_time now)
{
	n->now = now;
	check_deadlines(n);
	starts_turn(n);
	if (n->out.len && n->send_ms <= n->now.ms)
		send_now(n, &n->out);
	node_bulk_turn(n);
	if (n->leaving && !n->parts && !n->bulk) {
		n->leaving = false;
		n->ops.leave(n->arg);
	}
	return next_deadline(n);
}

void dvm_node_send_rest(struct dvm_node *n)
{
	struct bulk_frame *f;

	if (n->out.len)
		send_now(n, &n->out);
	DL_FOREACH(n->bulk, f)
		n->ops.send(n->arg, f->messages.data, f->messages.len);
	node_bulk_drop(n);
}

/* ---- life ---- */

int dvm_node_create(struct dvm_node **out, const struct dvm_node_ops *ops, void *arg)
{
	struct dvm_node *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->kept = kept_create();
	if (!n->kept) {
		free(n);
		return -ENOMEM;
	}
	n->ops = *ops;
	n->arg = arg;
	n->first_ms = UINT64_MAX;
	buf_init(&n->out, OUT_MAX);
	*out = n;
	return 0;
}

void dvm_node_destroy(struct dvm_node *n)
{
	struct part *p, *next;

	if (!n)
		return;
	HASH_ITER(hh, n->parts, p, next)
		part_free(n, p);
	node_profiles_forget(n);
	node_names_forget(n);
	kept_destroy(n->kept);
	buf_free(&n->out);
	node_bulk_drop(n);
	free(n);
}
