/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages between the ranks of a step and srun. Requests go up the
 * tree; the root, and a node whose parent has left or is lost, goes to srun
 * directly. Replies come down the same way.
 *
 * Every request that passes here is remembered until its reply has passed: when
 * the way up breaks it is answered with a failure, or sent again when the
 * parent has certainly not dealt with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_control.h"

#define CONTROL_REQUESTS_MAX 16384 /* without reply, at a node */

/* ---- replies on their way down ---- */

/* There is no memory for an answer: nobody waits for it for ever. */
static void unanswered(struct agent *a)
{
	char why[AGENT_WHY_MAX];

	snprintf(why, sizeof(why), "node %s lacks memory for srun's answers",
		 agent_node_name(a, a->step->position));
	agent_tell_kill(a, why);
}

static void send_to(struct agent *a, struct neighbour *n, enum frame_type type,
		    struct payload *frame)
{
	struct payload_vec body;

	payload_vec_init(&body);
	if (payload_vec_add(&body, frame))
		agent_wireup_send_failed(n, -ENOMEM);
	else
		agent_links_send(a, n, type, &body);
	payload_vec_clear(&body);
}

static void deliver_reply(struct agent *a, uint32_t origin,
			  struct payload *frame)
{
	const struct tree_place *place = pmi_server_place(a->server);
	struct neighbour *child;

	if (origin == a->step->position) {
		if (pmi_server_control_input(a->server, frame->data,
					     frame->len) == -ENOMEM)
			unanswered(a);
		return;
	}
	child = agent_neighbour(a, tree_next_hop(place, origin));
	if (child && !child->is_parent)
		send_to(a, child, FRAME_CONTROL_DOWN, frame);
}

static void on_soon(uv_timer_t *timer)
{
	struct agent *a = timer->data;
	struct payload_vec failed = a->control->failed;
	enum control_type type;
	uint32_t origin;

	payload_vec_init(&a->control->failed);
	for (size_t i = 0; i < failed.count; i++) {
		struct payload *p = failed.items[i];

		if (!control_peek(p->data, p->len, &type, &origin))
			deliver_reply(a, origin, p);
	}
	payload_vec_clear(&failed);
}

/* Answer a request with a failure, from the loop. */
static void fail_later(struct agent *a, uint32_t origin, uint32_t id,
		       const char *why)
{
	struct control_msg reply = {
		.type = CONTROL_REPLY,
		.origin = origin,
		.id = id,
		.code = PMI_RC_OTHER,
		.text = (char *)why,
	};
	char room[CONTROL_REPLY_MAX];
	struct payload *p = NULL;
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (!control_pack(&b, &reply))
		p = payload_copy(b.data, b.len);
	if (!p || payload_vec_add(&a->control->failed, p))
		unanswered(a);
	payload_unref(p);
	uv_timer_start(&a->control->soon, on_soon, 0, 0);
}

/* ---- requests without reply yet ---- */

static int remember(struct agent *a, struct payload *frame,
		    struct request **out)
{
	struct agent_control *ctl = a->control;
	struct control_msg msg;
	struct request *r;
	int rc = control_unpack(frame->data, frame->len, &msg);

	if (rc)
		return rc;
	r = ctl->nrequests < CONTROL_REQUESTS_MAX ? calloc(1, sizeof(*r)) :
						    NULL;
	if (r) {
		r->origin = msg.origin;
		r->id = msg.id;
		r->next = ctl->requests;
		ctl->requests = r;
		ctl->nrequests++;
	} else {
		fail_later(a, msg.origin, msg.id,
			   "too many requests wait for srun");
	}
	control_free(&msg);
	*out = r;
	return r ? 0 : -EAGAIN;
}

static void forget(struct agent_control *ctl, struct request **at)
{
	struct request *r = *at;

	*at = r->next;
	ctl->nrequests--;
	payload_unref(r->frame);
	free(r);
}

static void fail_request(struct agent *a, struct request **at, const char *why)
{
	fail_later(a, (*at)->origin, (*at)->id, why);
	forget(a->control, at);
}

/* Forget the request that this is the reply to; false when there is none. */
static bool forget_answered(struct agent_control *ctl, uint32_t origin,
			    uint32_t id)
{
	for (struct request **at = &ctl->requests; *at; at = &(*at)->next) {
		if ((*at)->origin == origin && (*at)->id == id) {
			forget(ctl, at);
			return true;
		}
	}
	return false;
}

void control_fail_direct(struct agent *a, const char *why)
{
	struct request **at = &a->control->requests;

	while (*at) {
		if ((*at)->frame)
			at = &(*at)->next;
		else
			fail_request(a, at, why);
	}
}

/* ---- the way up ---- */

bool control_has_parent(const struct agent *a)
{
	const struct neighbour *n = agent_parent(a);

	return n && !n->said_goodbye && n->state != NEIGHBOUR_LEFT &&
	       n->state != NEIGHBOUR_LOST;
}

static void send_to_parent(struct agent *a, struct neighbour *parent,
			   struct payload *frame, struct request *r)
{
	if (r) {
		r->index = parent->control_up;
		r->frame = payload_ref(frame);
	}
	send_to(a, parent, FRAME_CONTROL_UP, frame);
}

static bool goes_direct(const struct agent_control *ctl)
{
	return ctl->direct && ctl->srun == SRUN_UP;
}

bool agent_control_bypass(struct agent *a)
{
	a->control->direct = true;
	agent_control_connect(a);
	return goes_direct(a->control);
}

/* A rank has ended because of what was reported: it has no text. */
static bool is_end(const struct payload *report)
{
	char text[CONTROL_TEXT_MAX + 1];

	return !control_text(report->data, report->len, text) && !text[0];
}

/* Of what all ranks of a failed step say, one of a node is enough. */
static bool goes_on(struct agent *a, enum control_type type,
		    const struct payload *frame)
{
	struct agent_control *ctl = a->control;
	bool *passed;
	bool first;

	if (type == CONTROL_STALL)
		return agent_status_stall_passes(a);
	if (type != CONTROL_ABORT && type != CONTROL_REPORT)
		return true;
	passed = type == CONTROL_ABORT ? &ctl->abort_passed :
		 is_end(frame) ? &ctl->gave_up_passed :
				 &ctl->report_passed;
	first = !*passed;
	*passed = true;
	return first;
}

/* It must not overtake the reason; srun says each but once. */
static void abort_to_srun(struct agent *a, struct payload *frame)
{
	struct agent_control *ctl = a->control;

	if (ctl->report)
		srun_send(a, ctl->report);
	ctl->abort_queued = ctl->srun != SRUN_UP;
	if (ctl->srun == SRUN_LOST)
		agent_tell_kill(a, "srun cannot be reached");
	srun_send(a, frame);
}

static void remember_for_srun(struct agent_control *ctl, enum control_type type,
			      struct payload *frame)
{
	if (type == CONTROL_REPORT && !is_end(frame))
		ctl->report = payload_ref(frame);
	if (type == CONTROL_ABORT)
		ctl->abort = payload_ref(frame);
}

static int pass_up(struct agent *a, enum control_type type,
		   struct payload *frame)
{
	struct neighbour *parent = agent_parent(a);
	struct request *r = NULL;
	int rc;

	if (!goes_on(a, type, frame))
		return 0;
	if (control_has_reply(type)) {
		rc = remember(a, frame, &r);
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
	}
	if (control_has_parent(a) && !goes_direct(a->control)) {
		remember_for_srun(a->control, type, frame);
		send_to_parent(a, parent, frame, r);
	} else if (type == CONTROL_ABORT) {
		abort_to_srun(a, frame);
	} else if (srun_send(a, frame) && r) {
		fail_request(a, &a->control->requests, "srun cannot be reached");
	}
	return 0;
}

void agent_control_send(struct agent *a, const void *data, size_t len)
{
	struct payload *frame = payload_copy_in(a->step->budget, data, len);
	enum control_type type;
	uint32_t origin;
	int rc = 0;

	if (!control_peek(data, len, &type, &origin))
		rc = frame ? pass_up(a, type, frame) : -ENOMEM;
	if (rc && control_has_reply(type))
		unanswered(a);
	else if (rc)
		srun_frame_lost(a, data, len);
	payload_unref(frame);
}

void agent_control_end_step(struct agent *a, const char *why, int code)
{
	const struct control_msg msg = {
		.type = CONTROL_ABORT,
		.origin = a->step->position,
		.rank = CONTROL_NO_RANK,
		.code = code,
		.text = (char *)why,
	};
	char room[CONTROL_REPLY_MAX];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (control_pack(&b, &msg))
		agent_tell_kill(a, why);
	else
		agent_control_send(a, b.data, b.len);
}

int agent_control_from_child(struct agent *a, struct neighbour *child,
			     struct payload *frame)
{
	const struct tree_place *place = pmi_server_place(a->server);
	enum control_type type;
	uint32_t origin;

	if (control_peek(frame->data, frame->len, &type, &origin) ||
	    type >= CONTROL_QUERY || origin <= place->range.first ||
	    origin >= place->range.end ||
	    tree_next_hop(place, origin) != child->position)
		return -EPROTO;
	if (child->said_goodbye && control_has_reply(type))
		return 0; /* it will ask srun itself, see agent_links_leave */
	return pass_up(a, type, frame);
}

int agent_control_from_above(struct agent *a, struct payload *frame)
{
	struct control_msg msg;
	int rc = control_unpack(frame->data, frame->len, &msg);

	if (rc)
		return rc;
	switch (msg.type) {
	case CONTROL_QUERY:
		agent_status_query(a, msg.id, frame);
		break;
	case CONTROL_EXPIRE:
		rc = agent_status_expire(a, &msg);
		break;
	case CONTROL_STARTED:
		rc = agent_missing_started(a, msg.id);
		break;
	case CONTROL_REPLY:
		if (forget_answered(a->control, msg.origin, msg.id))
			deliver_reply(a, msg.origin, frame);
		break;
	default:
		rc = -EPROTO;
	}
	control_free(&msg);
	return rc;
}

void agent_control_unsent(struct agent *a, const struct payload_vec *frame)
{
	struct payload *p = payload_vec_join(frame);
	enum control_type type;
	uint32_t origin;

	/* Requests that wait for a reply are in our own list. */
	if (p && !control_peek(p->data, p->len, &type, &origin) &&
	    !control_has_reply(type)) {
		a->control->abort_queued |= type == CONTROL_ABORT;
		srun_send(a, p);
	}
	payload_unref(p);
}

void agent_control_parent_gone(struct agent *a, bool in_order,
			       uint64_t dealt_with, const char *why)
{
	struct request *r, **at = &a->control->requests;
	int rc;

	/* Who was killed need not have passed it on, and it is said only once. */
	if (!in_order && a->control->abort)
		abort_to_srun(a, a->control->abort);
	while ((r = *at)) {
		struct payload *frame = r->frame;

		if (!frame) {
			at = &r->next;
		} else if (in_order && r->index >= dealt_with) {
			r->frame = NULL;
			rc = srun_send(a, frame);
			payload_unref(frame);
			if (rc)
				fail_request(a, at, "srun cannot be reached");
			else
				at = &r->next;
		} else {
			fail_request(a, at, why);
		}
	}
}

void agent_control_parent_silent(struct agent *a, const char *why)
{
	if (a->control->abort)
		agent_tell_kill(a, why);
}

/* ---- life ---- */

bool agent_control_flushed(const struct agent *a)
{
	const struct agent_control *ctl = a->control;
	const struct request *r = ctl->requests;

	while (r && r->origin == a->step->position)
		r = r->next; /* its ranks have ended */
	return !r && !ctl->queue.count && !ctl->failed.count &&
	       (!ctl->link || !link_queued(ctl->link));
}

int agent_control_open(struct agent *a)
{
	a->control = calloc(1, sizeof(*a->control));
	if (!a->control)
		return -ENOMEM;
	uv_timer_init(loop_uv(a->loop), &a->control->soon);
	a->control->soon.data = a;
	return srun_open(a);
}

void agent_control_close(struct agent *a)
{
	if (!a->control)
		return;
	srun_close(a);
	agent_close_handle(&a->control->soon);
}

void agent_control_free(struct agent *a)
{
	if (!a->control)
		return;
	while (a->control->requests)
		forget(a->control, &a->control->requests);
	payload_vec_clear(&a->control->queue);
	payload_vec_clear(&a->control->failed);
	payload_unref(a->control->report);
	payload_unref(a->control->abort);
	free(a->control);
}
