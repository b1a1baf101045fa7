/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers srun's queries for the status of a node; notices who waits long. */
#include "agent/agent_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_internal.h"
#include "agent/stopped.h"
#include "libpmi/status.h"

#define TICKS_OF_LIMIT 4 /* looks until the first report */
#define STALL_TICK_MAX_MS 15000

struct agent_status {
	uv_prepare_t watch;
	uv_timer_t tick;
	uv_timer_t line;
	bool waiting;        /* something pending has been seen */
	uint64_t progress;   /* pmi_server_ended when it was */
	uint64_t last;       /* loop time of the last look, ms */
	uint64_t counted_ms; /* that it has waited, suspensions left out */
	uint64_t report_ms;  /* of counted_ms: when srun is told next */
	bool expired;        /* srun has been told to give up */
	bool unanswered;     /* srun has been told, and has not asked since */
	uint64_t passed;     /* loop time when one of below was; 0: never */
	uint32_t query;      /* the last one, answered; 0: none */
};

static uint64_t now_ms(const struct agent *a)
{
	return uv_now(loop_uv(a->loop));
}

/* The process of a slot. */
static bool is_stopped(void *arg, uint32_t slot)
{
	pid_t pid = agent_ranks_pid(arg, slot);

	return pid > 0 && process_is_stopped(pid);
}

/* All ranks that live are stopped: the step is suspended, nobody hangs. */
static bool is_suspended(struct agent *a)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < agent_ranks_count(a); i++) {
		if (agent_ranks_pid(a, i) <= 0)
			continue;
		if (!is_stopped(a, i))
			return false;
		live++;
	}
	return live > 0;
}

/* ---- waiting ---- */

static uint64_t shortest_limit(const struct agent *a)
{
	uint64_t stall = a->options.stall_ms, give_up = a->options.collective_ms;

	if (!stall || (give_up && give_up < stall))
		return give_up;
	return stall;
}

static void on_tick(uv_timer_t *timer);

static void start_tick(struct agent *a)
{
	uint64_t ms = shortest_limit(a) / TICKS_OF_LIMIT;

	if (ms > STALL_TICK_MAX_MS)
		ms = STALL_TICK_MAX_MS;
	uv_timer_start(&a->status->tick, on_tick, ms ? ms : 1, 0);
}

/* Before each wait of the loop. */
static void on_watch(uv_prepare_t *prepare)
{
	struct agent *a = prepare->data;
	struct agent_status *st = a->status;
	uint64_t progress;

	if (!pmi_server_pending(a->server)) {
		st->waiting = false; /* the timer finds out */
		return;
	}
	progress = pmi_server_ended(a->server);
	if (st->waiting && progress == st->progress)
		return;
	st->waiting = true;
	st->progress = progress;
	st->counted_ms = 0;
	st->report_ms = a->options.stall_ms;
	st->expired = false;
	st->last = now_ms(a);
	if (shortest_limit(a) && !uv_is_active((uv_handle_t *)&st->tick))
		start_tick(a);
}

static void send_control(struct agent *a, struct control_msg *msg)
{
	struct buf b;

	msg->origin = a->step->position;
	buf_init(&b, CONTROL_FRAME_MAX);
	if (!control_pack(&b, msg))
		agent_control_send(a, b.data, b.len);
	buf_free(&b);
}

static void tell_srun(struct agent *a, bool give_up)
{
	struct control_msg msg = {
		.type = CONTROL_STALL,
		.rank = give_up,
		.code = (int32_t)(a->status->counted_ms / 1000),
	};

	a->status->unanswered = true;
	send_control(a, &msg);
}

/*
 * Nothing comes through when the first node is stopped. Those below it go to srun
 * themselves: they are few, and what srun asks them they pass on to all others.
 */
static void go_around_parent(struct agent *a)
{
	const struct neighbour *parent = agent_parent(a);

	if (a->status->unanswered && parent && parent->position == 0 &&
	    agent_control_bypass(a))
		tell_srun(a, a->status->expired);
}

/* srun has not ended what waits, although it should have. */
static void give_up_alone(struct agent *a)
{
	char why[AGENT_WHY_MAX];

	snprintf(why, sizeof(why),
		 "node %s has waited for %u s (Pmi2xCollectiveTimeout), and srun has not said for whom",
		 agent_node_name(a, a->step->position),
		 (unsigned)(a->status->counted_ms / 1000));
	pmi_server_expire_all(a->server, why);
}

static void look(struct agent *a)
{
	struct agent_status *st = a->status;
	uint64_t limit = a->options.collective_ms;

	if (limit && st->counted_ms >= limit && !st->expired) {
		st->expired = true;
		tell_srun(a, true);
	} else if (limit && st->counted_ms >= 2 * limit + STATUS_WAIT_MS) {
		give_up_alone(a);
	} else if (a->options.stall_ms && st->counted_ms >= st->report_ms) {
		st->report_ms = 2 * st->report_ms;
		tell_srun(a, false);
	}
}

/* A gap means that this process could not run: neither could the ranks. */
static void on_tick(uv_timer_t *timer)
{
	struct agent *a = timer->data;
	struct agent_status *st = a->status;
	uint64_t now = now_ms(a), passed = now - st->last;
	uint64_t longest = 2 * (shortest_limit(a) / TICKS_OF_LIMIT) + 1000;

	st->last = now;
	if (!st->waiting || a->stage != AGENT_SERVING)
		return;
	if (!is_suspended(a))
		st->counted_ms += passed < longest ? passed : longest;
	go_around_parent(a);
	look(a);
	start_tick(a);
}

bool agent_status_stall_passes(struct agent *a)
{
	struct agent_status *st = a->status;
	uint64_t now = now_ms(a);

	if (st->passed && now - st->passed < shortest_limit(a) / 2)
		return false;
	st->passed = now;
	agent_wireup_begin(a); /* our own ranks may not have come yet */
	return true;
}

/* ---- queries ---- */

/* srun can only ask whoever has connected to it. */
static void on_line(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	if (a->stage == AGENT_SERVING)
		agent_control_connect(a);
}

void agent_status_no_parent(struct agent *a)
{
	if (a->status && a->stage == AGENT_SERVING)
		uv_timer_start(&a->status->line, on_line, STATUS_LINE_MS, 0);
}

/* What the node's ranks wait for, in whole milliseconds over 0. */
static uint32_t age_ms(struct agent *a)
{
	const struct agent_status *st = a->status;
	uint64_t age;

	if (!pmi_server_pending(a->server))
		return 0;
	age = 1;
	if (st->waiting && pmi_server_ended(a->server) == st->progress)
		age = 1 + st->counted_ms + (is_suspended(a) ?
						0 : now_ms(a) - st->last);
	return age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
}

static int pack_links(const struct agent *a, struct buf *b)
{
	static const enum status_link links[] = {
		[NEIGHBOUR_WAITING] = STATUS_LINK_WAITING,
		[NEIGHBOUR_UP] = STATUS_LINK_UP,
		[NEIGHBOUR_LEFT] = STATUS_LINK_LEFT,
		[NEIGHBOUR_LOST] = STATUS_LINK_LOST,
	};
	const struct neighbour *all = a->links->all;
	int rc = pack_u32(b, a->links->count);

	for (uint32_t i = 0; !rc && i < a->links->count; i++)
		rc = status_pack_link(b, all[i].position, all[i].is_parent,
				      links[all[i].state],
				      agent_neighbour_queued(&all[i]));
	return rc;
}

static void send_status(struct agent *a, uint32_t query)
{
	struct control_msg msg = { .type = CONTROL_STATUS, .id = query };
	struct node_status status;
	struct buf b;

	if (pmi_server_status(a->server, is_stopped, a, &status))
		return;
	status.age_ms = age_ms(a);
	buf_init(&b, STATUS_NODE_MAX);
	if (!status_pack(&b, &status) && !pack_links(a, &b)) {
		msg.body = b.data;
		msg.body_len = b.len;
		send_control(a, &msg);
	}
	buf_free(&b);
	free(status.runs);
}

static void pass_to_children(struct agent *a, const struct payload *frame)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		struct neighbour *n = &a->links->all[i];

		if (!n->is_parent)
			agent_links_send_bytes(a, n, FRAME_CONTROL_DOWN,
					       frame->data, frame->len);
	}
}

/* Also nodes where nothing of PMI has happened yet can be asked. */
void agent_status_query(struct agent *a, uint32_t query, struct payload *frame)
{
	struct agent_status *st = a->status;

	if (a->stage != AGENT_SERVING || st->query == query)
		return;
	st->unanswered = false;
	st->query = query;
	agent_wireup_begin(a);
	pass_to_children(a, frame);
	send_status(a, query);
}

int agent_status_expire(struct agent *a, const struct control_msg *order)
{
	if (order->rank >= COLL_KINDS)
		return -EPROTO;
	pmi_server_expire(a->server, order->rank, order->id, order->text);
	return 0;
}

/* ---- life ---- */

int agent_status_open(struct agent *a)
{
	struct agent_status *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	a->status = st;
	rc = uv_prepare_init(loop_uv(a->loop), &st->watch);
	rc = rc ? rc : uv_timer_init(loop_uv(a->loop), &st->tick);
	rc = rc ? rc : uv_timer_init(loop_uv(a->loop), &st->line);
	if (rc)
		return rc;
	st->watch.data = st->tick.data = st->line.data = a;
	if (!agent_parent(a))
		agent_status_no_parent(a);
	return uv_prepare_start(&st->watch, on_watch);
}

void agent_status_close(struct agent *a)
{
	if (!a->status)
		return;
	agent_close_handle(&a->status->watch);
	agent_close_handle(&a->status->tick);
	agent_close_handle(&a->status->line);
}

void agent_status_free(struct agent *a)
{
	free(a->status);
}
