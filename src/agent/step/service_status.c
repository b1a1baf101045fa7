/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers srun's queries for the status of a node, and finds collectives that take long. */
#include "agent/step/service_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/step/control_path.h"
#include "agent/step/ranks.h"
#include "agent/step/srun_link.h"
#include "agent/step/store_status.h"
#include "agent/stopped.h"
#include "libpmi/status.h"
#include "libstore/store.h"

#define TICKS_OF_LIMIT 4 /* looks until the first report */
#define STALL_TICK_MAX_MS 15000
#define MS_PER_S 1000

struct service_status {
	uv_prepare_t watch;
	uv_timer_t tick;
	uv_timer_t line;
	bool waiting;        /* something pending has been seen, */
	bool expires;        /* which Pmi2xCollectiveTimeout ends */
	uint64_t progress;   /* progress_of when it was */
	uint64_t last;       /* loop time of the last look, ms */
	uint64_t counted_ms; /* time that it has waited, suspensions left out */
	uint64_t report_ms;  /* of counted_ms: when srun is told next */
	bool expired;        /* srun has been told to give up */
	bool unanswered;     /* srun was told by way of the parent, and has not asked since */
	uint64_t told_ms;    /* of counted_ms: when it was told last */
	uint32_t query;      /* the last one, answered; 0: none */
};

/* The process of a slot. */
static bool is_stopped(void *arg, uint32_t slot)
{
	pid_t pid = ranks_pid(arg, slot);

	return pid > 0 && process_is_stopped(pid);
}

/* All ranks that live are stopped: the step is suspended, nobody hangs. */
static bool is_suspended(struct service *s)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < ranks_count(s); i++) {
		if (ranks_pid(s, i) <= 0)
			continue;
		if (!is_stopped(s, i))
			return false;
		live++;
	}
	return live > 0;
}

/* ---- waiting ---- */

static void on_tick(uv_timer_t *timer);

static void start_tick(struct service *s)
{
	uint64_t ms = control_path_patience(s) / TICKS_OF_LIMIT;

	if (ms > STALL_TICK_MAX_MS)
		ms = STALL_TICK_MAX_MS;
	uv_timer_start(&s->status->tick, on_tick, ms ? ms : 1, 0);
}

/* A number that changes whenever one of the waits of MPI ends, or the oldest of the store. */
static uint64_t progress_of(const struct service *s)
{
	return pmi_server_ended(s->server) + store_oldest_wait(s->store);
}

/* Before each wait of the loop. */
static void on_watch(uv_prepare_t *prepare)
{
	struct service *s = prepare->data;
	struct service_status *st = s->status;
	uint64_t progress;
	bool expires;

	if (!pmi_server_waits(s->server) && !store_oldest_wait(s->store)) {
		st->waiting = false; /* the timer finds out */
		return;
	}
	progress = progress_of(s);
	expires = pmi_server_expires(s->server);
	if (st->waiting && progress == st->progress && expires == st->expires)
		return;
	st->waiting = true;
	st->expires = expires;
	st->progress = progress;
	st->counted_ms = st->told_ms = 0;
	st->report_ms = s->node->options->stall_ms;
	st->expired = false;
	st->last = node_now(s->node);
	if (control_path_patience(s) && !uv_is_active((uv_handle_t *)&st->tick))
		start_tick(s);
}

/*
 * A wait of the store, where this node has words for it. srun asks all nodes, and so has better ones
 * for a wait for a key of the step.
 */
static void tell_store_wait(const struct service *s, unsigned seconds, char text[PMI_WAIT_TEXT_MAX])
{
	struct store_key_wait key;

	_Static_assert(PMI_WAIT_TEXT_MAX >= STORE_TEXT_MAX, "one text for both");
	text[0] = '\0';
	if (s->node->options->no_srun || !store_waits_for_key(s->store, &key))
		store_tell_wait(s->store, seconds, text);
}

static void tell_srun(struct service *s, bool give_up)
{
	char text[PMI_WAIT_TEXT_MAX];
	struct control_msg msg = {
		.type = CONTROL_STALL,
		.rank = give_up,
		.code = (int32_t)(s->status->counted_ms / 1000),
		.text = text,
	};

	if (pmi_server_waits(s->server))
		pmi_server_tell_wait(s->server, (unsigned)msg.code, text);
	else
		tell_store_wait(s, (unsigned)msg.code, text);
	if (!text[0] && control_path_is_direct(s)) /* the parent, which knows better, is silent */
		pmi_server_tell_own_wait(s->server, (unsigned)msg.code, text);
	s->status->unanswered = !control_path_is_direct(s);
	s->status->told_ms = s->status->counted_ms;
	control_path_send_msg(s, &msg);
}

/*
 * Nothing comes through when the first node is stopped. Nodes below it connect to srun
 * themselves: they are few, and pass srun's questions on to all others.
 */
static void go_around_parent(struct service *s)
{
	const struct tree_place *place = pmi_server_place(s->server);
	struct service_status *st = s->status;

	/* No sooner than the path lets it through. */
	if (st->unanswered && place->parent == 0 &&
	    st->counted_ms - st->told_ms >= control_path_patience(s) / 2 &&
	    control_path_bypass(s))
		tell_srun(s, st->expired);
}

/* srun has not ended what waits, although it should have. */
static void give_up_alone(struct service *s)
{
	char why[NODE_WHY_MAX];

	snprintf(why, sizeof(why),
		 "node %s has waited for %u s (Pmi2xCollectiveTimeout), and srun did not report the missing ranks",
		 node_own_name(s->node),
		 (unsigned)(s->status->counted_ms / 1000));
	pmi_server_expire_all(s->server, why);
}

static void look(struct service *s)
{
	struct service_status *st = s->status;
	uint64_t limit = st->expires ? s->node->options->collective_ms : 0;

	if (limit && st->counted_ms >= limit && !st->expired) {
		st->expired = true;
		tell_srun(s, true);
	} else if (limit && st->counted_ms >= 2 * limit + STATUS_WAIT_MS) {
		give_up_alone(s);
	} else if (s->node->options->stall_ms && st->counted_ms >= st->report_ms) {
		st->report_ms = 2 * st->report_ms;
		tell_srun(s, false);
	}
}

/* A gap means that this process could not run: neither could the ranks. */
static void on_tick(uv_timer_t *timer)
{
	struct service *s = timer->data;
	struct service_status *st = s->status;
	uint64_t now = node_now(s->node), passed = now - st->last;
	uint64_t longest = 2 * (control_path_patience(s) / TICKS_OF_LIMIT) + 1000;

	st->last = now;
	if (!st->waiting || s->leaving)
		return;
	if (!is_suspended(s))
		st->counted_ms += passed < longest ? passed : longest;
	go_around_parent(s);
	look(s);
	start_tick(s);
}

/* ---- queries ---- */

/* srun can only ask whoever has connected to it. */
static void on_line(uv_timer_t *timer)
{
	struct service *s = timer->data;

	if (!s->leaving)
		srun_link_connect(s);
}

void service_status_no_parent(struct service *s)
{
	if (s->status && !s->leaving)
		uv_timer_start(&s->status->line, on_line, STATUS_LINE_MS, 0);
}

/* How long the node's ranks have waited, in whole milliseconds over 0. */
static uint32_t age_ms(struct service *s)
{
	const struct service_status *st = s->status;
	uint64_t age;

	if (!pmi_server_pending(s->server))
		return 0;
	age = 1;
	if (st->waiting && progress_of(s) == st->progress)
		age = 1 + st->counted_ms + (is_suspended(s) ?
						0 : node_now(s->node) - st->last);
	return age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
}

static int pack_links(const struct service *s, struct buf *b)
{
	static const enum status_link links[] = {
		[NEIGHBOUR_WAITING] = STATUS_LINK_WAITING,
		[NEIGHBOUR_UP] = STATUS_LINK_UP,
		[NEIGHBOUR_LEFT] = STATUS_LINK_LEFT,
		[NEIGHBOUR_LOST] = STATUS_LINK_LOST,
	};
	uint32_t count = peers_count(s->peers);
	int rc = pack_u32(b, count);

	for (uint32_t i = 0; !rc && i < count; i++) {
		struct peer_status p = peers_status(s->peers, i);

		rc = status_pack_link(b, p.position, p.is_parent,
				      links[p.state], p.queued);
	}
	return rc;
}

/* In whole seconds; what has just begun is none. A wait of MPI comes before one of the store. */
static int pack_waits(struct service *s, struct buf *out)
{
	const struct service_status *st = s->status;
	char text[PMI_WAIT_TEXT_MAX] = "";
	uint32_t seconds = 0;
	bool of_mpi;

	if (st->waiting)
		seconds = (uint32_t)((st->counted_ms + (is_suspended(s) ? 0 :
							node_now(s->node) - st->last)) / MS_PER_S);
	if (seconds)
		pmi_server_tell_wait(s->server, seconds, text);
	of_mpi = text[0];
	if (seconds && !of_mpi)
		tell_store_wait(s, seconds, text);
	return store_status_pack(s, text, !of_mpi, seconds, out);
}

int service_status_pack(struct service *s, struct buf *out)
{
	struct node_status status;
	int rc = pmi_server_status(s->server, is_stopped, s, &status);

	if (rc)
		return rc;
	status.age_ms = age_ms(s);
	rc = status_pack(out, &status);
	rc = rc ? rc : pack_links(s, out);
	rc = rc ? rc : pack_waits(s, out);
	free(status.runs);
	return rc;
}

static void send_status(struct service *s, uint32_t query)
{
	struct control_msg msg = { .type = CONTROL_STATUS, .id = query };
	struct buf b;

	buf_init(&b, STATUS_NODE_MAX);
	if (!service_status_pack(s, &b)) {
		msg.body = b.data;
		msg.body_len = b.len;
		control_path_send_msg(s, &msg);
	}
	buf_free(&b);
}

/* A node answers also before any rank has used PMI. */
void service_status_query(struct service *s, uint32_t query, struct payload *frame)
{
	struct service_status *st = s->status;

	if (s->leaving || st->query == query)
		return;
	st->unanswered = false;
	st->query = query;
	peers_begin(s->peers);
	peers_send_down(s->peers, frame);
	send_status(s, query);
}

int service_status_expire(struct service *s, const struct control_msg *order)
{
	if (order->rank >= COLL_KINDS)
		return -EPROTO;
	pmi_server_expire(s->server, order->rank, order->id, order->text);
	return 0;
}

/* ---- life ---- */

int service_status_open(struct service *s)
{
	struct service_status *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	s->status = st;
	rc = uv_prepare_init(loop_uv(s->node->loop), &st->watch);
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &st->tick);
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &st->line);
	if (rc)
		return rc;
	st->watch.data = st->tick.data = st->line.data = s;
	if (pmi_server_place(s->server)->parent == TREE_NONE)
		service_status_no_parent(s);
	return uv_prepare_start(&st->watch, on_watch);
}

void service_status_close(struct service *s)
{
	if (!s->status)
		return;
	node_close_handle(&s->status->watch);
	node_close_handle(&s->status->tick);
	node_close_handle(&s->status->line);
}

void service_status_free(struct service *s)
{
	free(s->status);
}
