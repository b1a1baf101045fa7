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
#include "agent/step/control_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/step/srun_link.h"

#define REQUESTS_MAX 16384 /* without reply, at a node */
#define NOTES_MAX 16       /* notes that a node passes on */

struct request {
	struct request *next;
	uint32_t origin;
	uint32_t id;
	uint64_t index;        /* among the frames sent to the parent */
	struct payload *frame; /* kept while it is the parent's; else NULL */
};

enum stall_kind {
	STALL_NO_TEXT, /* of a collective of all ranks */
	STALL_TEXT,
	STALL_INSIDE, /* PMI_WAIT_INSIDE */
	STALL_KINDS,
};

struct control_path {
	struct request *requests;
	unsigned nrequests;
	struct payload_vec failed; /* replies that are delivered from the loop */
	uv_timer_t soon;
	bool abort_passed;
	bool report_passed;
	struct payload *notes[NOTES_MAX]; /* the notes that were passed on */
	unsigned nnotes;
	bool gave_up_passed;
	uint64_t stall_passed[STALL_KINDS]; /* loop time when one was; 0: never */
	bool direct;            /* as if there were no parent, while srun is UP */
	struct payload *report; /* went to the parent: why others may abort */
	struct payload *abort;  /* went to the parent */
};

uint64_t control_path_patience(const struct service *s)
{
	uint64_t stall = s->node->options->stall_ms;
	uint64_t give_up = s->node->options->collective_ms;

	return !stall || (give_up && give_up < stall) ? give_up : stall;
}

/* ---- replies on their way down ---- */

/*
 * There is no memory for an answer: end the step, so that no rank waits for that answer
 * forever.
 */
static void unanswered(struct service *s)
{
	char why[NODE_WHY_MAX];

	snprintf(why, sizeof(why), "node %s has no memory for srun's answers",
		 node_own_name(s->node));
	node_kill_step(s->node, why);
}

static void deliver_reply(struct service *s, uint32_t origin,
			  struct payload *frame)
{
	const struct tree_place *place = pmi_server_place(s->server);
	uint32_t next;

	if (origin == s->step->position) {
		if (pmi_server_control_input(s->server, frame->data,
					     frame->len) == -ENOMEM)
			unanswered(s);
		return;
	}
	next = tree_next_hop(place, origin);
	if (next != place->parent)
		peers_send_control(s->peers, next, frame);
}

static void on_soon(uv_timer_t *timer)
{
	struct service *s = timer->data;
	struct payload_vec failed = s->control->failed;
	enum control_type type;
	uint32_t origin;

	payload_vec_init(&s->control->failed);
	for (size_t i = 0; i < failed.count; i++) {
		struct payload *p = failed.items[i];

		if (!control_peek(p->data, p->len, &type, &origin))
			deliver_reply(s, origin, p);
	}
	payload_vec_clear(&failed);
}

/* Answer a request with a failure, from the loop. */
static void fail_later(struct service *s, uint32_t origin, uint32_t id,
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
	if (!p || payload_vec_add(&s->control->failed, p))
		unanswered(s);
	payload_unref(p);
	uv_timer_start(&s->control->soon, on_soon, 0, 0);
}

/* ---- requests without reply yet ---- */

static int remember(struct service *s, struct payload *frame,
		    struct request **out)
{
	struct control_path *ctl = s->control;
	struct control_msg msg;
	struct request *r;
	int rc = control_unpack(frame->data, frame->len, &msg);

	if (rc)
		return rc;
	r = ctl->nrequests < REQUESTS_MAX ? calloc(1, sizeof(*r)) :
						    NULL;
	if (r) {
		r->origin = msg.origin;
		r->id = msg.id;
		r->next = ctl->requests;
		ctl->requests = r;
		ctl->nrequests++;
	} else {
		fail_later(s, msg.origin, msg.id,
			   "too many requests wait for srun");
	}
	control_free(&msg);
	*out = r;
	return r ? 0 : -EAGAIN;
}

static void forget(struct control_path *ctl, struct request **at)
{
	struct request *r = *at;

	*at = r->next;
	ctl->nrequests--;
	payload_unref(r->frame);
	free(r);
}

static void fail_request(struct service *s, struct request **at, const char *why)
{
	fail_later(s, (*at)->origin, (*at)->id, why);
	forget(s->control, at);
}

/* Forget the request that this is the reply to; false when there is none. */
static bool forget_answered(struct control_path *ctl, uint32_t origin,
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

void control_path_srun_failed(struct service *s, const char *why)
{
	struct request **at = &s->control->requests;

	while (*at) {
		if ((*at)->frame)
			at = &(*at)->next;
		else
			fail_request(s, at, why);
	}
}

/* ---- the way up ---- */

static void send_to_parent(struct service *s, struct payload *frame,
			   struct request *r)
{
	if (r) {
		r->index = peers_sent_up(s->peers);
		r->frame = payload_ref(frame);
	}
	peers_send_control(s->peers, pmi_server_place(s->server)->parent, frame);
}

bool control_path_is_direct(const struct service *s)
{
	return s->control->direct && srun_link_is_up(s);
}

bool control_path_bypass(struct service *s)
{
	s->control->direct = true;
	srun_link_connect(s);
	return control_path_is_direct(s);
}

/* A report without one: a rank has ended because of what was reported. */
static bool has_text(const struct payload *frame)
{
	char text[CONTROL_TEXT_MAX + 1];

	return control_text(frame->data, frame->len, text) || text[0];
}

/* Reports of one kind do not keep back those of another. */
static enum stall_kind stall_kind(const struct payload *frame)
{
	char text[CONTROL_TEXT_MAX + 1];

	if (control_text(frame->data, frame->len, text) || !text[0])
		return STALL_NO_TEXT;
	return strstr(text, PMI_WAIT_INSIDE) ? STALL_INSIDE : STALL_TEXT;
}

/* Passes at most one stall report of a kind of the nodes below to srun in a while. */
static bool stall_goes_on(struct service *s, const struct payload *frame)
{
	uint64_t *passed = &s->control->stall_passed[stall_kind(frame)];
	uint64_t now = node_now(s->node), last = *passed;

	if (last && now - last < control_path_patience(s) / 2)
		return false;
	*passed = now;
	peers_begin(s->peers); /* our own ranks may not have come yet */
	return true;
}

/* Several nodes may send one text. Without memory for one it does not go on. */
static bool note_goes_on(struct control_path *ctl, struct payload *frame)
{
	char text[CONTROL_TEXT_MAX + 1], passed[CONTROL_TEXT_MAX + 1];

	if (ctl->nnotes == NOTES_MAX || control_text(frame->data, frame->len, text))
		return false;
	for (unsigned i = 0; i < ctl->nnotes; i++) {
		const struct payload *note = ctl->notes[i];

		if (!control_text(note->data, note->len, passed) &&
		    !strcmp(text, passed))
			return false;
	}
	ctl->notes[ctl->nnotes++] = payload_ref(frame);
	return true;
}

/* True: pass the message on. One report of a failed step is enough from each node. */
static bool goes_on(struct service *s, enum control_type type,
		    struct payload *frame)
{
	struct control_path *ctl = s->control;
	bool *passed;
	bool first;

	if (type == CONTROL_STALL)
		return stall_goes_on(s, frame);
	if (type == CONTROL_NOTE)
		return note_goes_on(ctl, frame);
	if (type != CONTROL_ABORT && type != CONTROL_REPORT)
		return true;
	passed = type == CONTROL_ABORT ? &ctl->abort_passed :
		 has_text(frame) ? &ctl->report_passed :
				   &ctl->gave_up_passed;
	first = !*passed;
	*passed = true;
	return first;
}

/* The abort must not overtake the reason of the failure; srun prints each reason once. */
static void abort_to_srun(struct service *s, struct payload *frame)
{
	if (s->control->report)
		srun_link_send(s, s->control->report);
	srun_link_send(s, frame);
}

static void remember_for_srun(struct control_path *ctl, enum control_type type,
			      struct payload *frame)
{
	if (type == CONTROL_REPORT && has_text(frame))
		ctl->report = payload_ref(frame);
	if (type == CONTROL_ABORT)
		ctl->abort = payload_ref(frame);
}

static int pass_up(struct service *s, enum control_type type,
		   struct payload *frame)
{
	struct control_path *ctl = s->control;
	struct request *r = NULL;
	int rc;

	if (!goes_on(s, type, frame))
		return 0;
	if (control_has_reply(type)) {
		rc = remember(s, frame, &r);
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
	}
	if (peers_has_parent(s->peers) && !control_path_is_direct(s)) {
		remember_for_srun(ctl, type, frame);
		send_to_parent(s, frame, r);
	} else if (type == CONTROL_ABORT) {
		abort_to_srun(s, frame);
	} else if (srun_link_send(s, frame) && r) {
		fail_request(s, &ctl->requests, "srun cannot be reached");
	}
	return 0;
}

void control_path_send(void *service, const void *data, size_t len)
{
	struct service *s = service;
	struct payload *frame = payload_copy_in(s->step->budget, data, len);
	enum control_type type;
	uint32_t origin;
	int rc = 0;

	if (!control_peek(data, len, &type, &origin))
		rc = frame ? pass_up(s, type, frame) : -ENOMEM;
	if (rc && control_has_reply(type))
		unanswered(s);
	else if (rc)
		srun_link_frame_lost(s, data, len);
	payload_unref(frame);
}

static void end_step(struct service *s, uint32_t rank, const char *why, int code)
{
	const struct control_msg msg = {
		.type = CONTROL_ABORT,
		.origin = s->step->position,
		.rank = rank,
		.code = code,
		.text = (char *)why,
	};
	char room[CONTROL_REPLY_MAX];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (control_pack(&b, &msg))
		node_kill_step(s->node, why);
	else
		control_path_send(s, b.data, b.len);
}

void control_path_end_step(struct service *s, const char *why, int code)
{
	end_step(s, CONTROL_NO_RANK, why, code);
}

void control_path_end_waits(struct service *s, const char *why, int code)
{
	end_step(s, CONTROL_KEY_WAITS, why, code);
}

void control_path_send_msg(struct service *s, struct control_msg *msg)
{
	struct buf b;

	msg->origin = s->step->position;
	buf_init(&b, CONTROL_FRAME_MAX);
	if (!control_pack(&b, msg))
		control_path_send(s, b.data, b.len);
	buf_free(&b);
}

void control_path_ask_started(void *service, uint32_t position)
{
	struct service *s = service;
	const struct control_msg msg = {
		.type = CONTROL_STARTED,
		.origin = s->step->position,
		.id = position,
	};
	struct buf b;

	buf_init(&b, CONTROL_TEXT_MAX);
	if (!control_pack(&b, &msg))
		srun_link_ask(s, b.data, b.len);
	buf_free(&b);
}

int control_path_from_child(void *service, uint32_t child, bool was_left,
			    struct payload *frame)
{
	struct service *s = service;
	const struct tree_place *place = pmi_server_place(s->server);
	enum control_type type;
	uint32_t origin;

	if (control_peek(frame->data, frame->len, &type, &origin) ||
	    type >= CONTROL_QUERY || origin <= place->range.first ||
	    origin >= place->range.end ||
	    tree_next_hop(place, origin) != child)
		return -EPROTO;
	if (was_left && control_has_reply(type))
		return 0; /* the node will ask srun itself: peers_leave */
	return pass_up(s, type, frame);
}

void control_path_reply(struct service *s, uint32_t origin, uint32_t id,
			struct payload *frame)
{
	if (forget_answered(s->control, origin, id))
		deliver_reply(s, origin, frame);
}

void control_path_unsent(void *service, const struct payload_vec *frame)
{
	struct service *s = service;
	struct payload *p = payload_vec_join(frame);
	enum control_type type;
	uint32_t origin;

	/* Requests that wait for a reply are in our own list. */
	if (p && !control_peek(p->data, p->len, &type, &origin) &&
	    !control_has_reply(type))
		srun_link_send(s, p);
	payload_unref(p);
}

/* The parent has not dealt with a request, and will not. */
static bool send_again(struct service *s, struct request *r)
{
	struct payload *frame = r->frame;
	int rc;

	r->frame = NULL;
	rc = srun_link_send(s, frame);
	payload_unref(frame);
	return rc == 0;
}

void control_path_parent_gone(struct service *s, const struct peer_gone *gone)
{
	struct control_path *ctl = s->control;
	struct request *r, **at = &ctl->requests;

	/* Too late: no time is left to connect to srun. */
	if (gone->end == PEER_SILENT && ctl->abort)
		node_kill_step(s->node, gone->why);
	/*
	 * A parent that was killed may not have passed the abort on, and the abort is
	 * said only once.
	 */
	if (!gone->in_order && ctl->abort)
		abort_to_srun(s, ctl->abort);
	while ((r = *at)) {
		if (!r->frame)
			at = &r->next;
		else if (!gone->in_order || r->index < gone->dealt_with)
			fail_request(s, at, gone->why);
		else if (send_again(s, r))
			at = &r->next;
		else
			fail_request(s, at, "srun cannot be reached");
	}
}

void control_path_unneeded(struct service *s)
{
	if (!s->control->direct && peers_has_parent(s->peers) &&
	    !peers_asks(s->peers))
		srun_link_release(s);
}

void control_path_srun_up(struct service *s)
{
	peers_answer(s->peers);
	peers_srun_up(s->peers);
	control_path_unneeded(s);
}

/* ---- life ---- */

bool control_path_is_flushed(const struct service *s)
{
	const struct control_path *ctl = s->control;
	const struct request *r = ctl->requests;

	while (r && r->origin == s->step->position)
		r = r->next; /* its ranks have ended */
	return !r && !ctl->failed.count && srun_link_is_flushed(s);
}

int control_path_open(struct service *s)
{
	int rc;

	s->control = calloc(1, sizeof(*s->control));
	if (!s->control)
		return -ENOMEM;
	payload_vec_init(&s->control->failed);
	rc = uv_timer_init(loop_uv(s->node->loop), &s->control->soon);
	s->control->soon.data = s;
	return rc;
}

void control_path_close(struct service *s)
{
	if (s->control)
		node_close_handle(&s->control->soon);
}

void control_path_free(struct service *s)
{
	if (!s->control)
		return;
	while (s->control->requests)
		forget(s->control, &s->control->requests);
	payload_vec_clear(&s->control->failed);
	for (unsigned i = 0; i < s->control->nnotes; i++)
		payload_unref(s->control->notes[i]);
	payload_unref(s->control->report);
	payload_unref(s->control->abort);
	free(s->control);
}
