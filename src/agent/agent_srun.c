/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to srun: made when a frame is for it, or srun is to be able to
 * ask, and closed when nothing needs it any more. What waits for it, and what
 * becomes of that when there can be none.
 */
#include <errno.h>
#include <stdio.h>

#include "agent/agent_control.h"

#define CONTROL_BYTES_MAX ((size_t)256 << 20) /* of what waits for a way up */
#define CONTROL_SRUN_MS 10000      /* srun listens before it launches */

static void on_retry(uv_timer_t *timer);

/* What srun cannot tell the user any more. */
static void log_report(struct agent *a, const void *data, size_t len)
{
	char text[CONTROL_TEXT_MAX + 1];
	enum control_type type;
	uint32_t origin;

	if (!control_peek(data, len, &type, &origin) &&
	    type == CONTROL_REPORT && !control_text(data, len, text) && text[0])
		log_error(a->log, "%s", text);
}

void srun_frame_lost(struct agent *a, const void *data, size_t len)
{
	char text[CONTROL_TEXT_MAX + 1] = "", why[AGENT_WHY_MAX];
	enum control_type type;
	uint32_t origin;

	log_report(a, data, len);
	if (control_peek(data, len, &type, &origin) || type != CONTROL_ABORT)
		return;
	(void)control_text(data, len, text);
	snprintf(why, sizeof(why),
		 "node %s could not tell srun of an abort%s%.300s",
		 agent_node_name(a, a->step->position), text[0] ? ": " : "",
		 text);
	agent_tell_kill(a, why);
}

static int send_frame(struct link *l, struct payload *frame)
{
	struct payload_vec body;
	int rc;

	payload_vec_init(&body);
	rc = payload_vec_add(&body, frame);
	rc = rc ? rc : link_send(l, FRAME_CONTROL_UP, &body);
	payload_vec_clear(&body);
	return rc;
}

static void srun_lost(struct agent *a, const char *why)
{
	struct agent_control *ctl = a->control;

	if (a->stage == AGENT_SERVING)
		log_error(a->log, "%s", why);
	else
		log_debug(a->log, "%s", why); /* the step is over for it */
	ctl->srun = SRUN_LOST;
	for (size_t i = 0; i < ctl->queue.count; i++)
		log_report(a, ctl->queue.items[i]->data,
			   ctl->queue.items[i]->len);
	payload_vec_clear(&ctl->queue);
	control_fail_direct(a, why);
	if (ctl->abort_queued)
		agent_tell_kill(a, why);
	pmi_server_control_lost(a->server, why);
}

static void explain(const struct agent *a, int error,
		    const struct handshake_peer *peer, char why[AGENT_WHY_MAX])
{
	const char *name = agent_node_name(a, a->step->position);
	char us[80];

	snprintf(us, sizeof(us), "node %.64s", name);
	if (error == -EPROTONOSUPPORT)
		handshake_explain(why, AGENT_WHY_MAX, "srun", peer, us,
				  &a->self);
	else
		snprintf(why, AGENT_WHY_MAX, "%s cannot reach srun: %s", us,
			 link_strerror(error));
}

/* `peer` is there when it was proved, or nearly. */
static void srun_attempt_failed(struct agent *a, int error,
				const struct handshake_peer *peer)
{
	struct agent_control *ctl = a->control;
	uint64_t waited = uv_now(loop_uv(a->loop)) - ctl->since;
	bool ended = error == -ECONNREFUSED && a->stage != AGENT_SERVING;
	uint32_t limit = a->options.connect_ms < CONTROL_SRUN_MS ?
				 a->options.connect_ms : CONTROL_SRUN_MS;
	char why[AGENT_WHY_MAX];

	if (waited < limit && !ended && error != -EPROTONOSUPPORT &&
	    error != -EAFNOSUPPORT) {
		uv_timer_start(&ctl->retry, on_retry, ctl->backoff_ms, 0);
		ctl->backoff_ms *= 2;
		return;
	}
	agent_links_answer(a);
	if (ctl->quiet) {
		ctl->srun = SRUN_IDLE;
		return;
	}
	if (ctl->abort_queued && (error == -EMFILE || error == -ENFILE)) {
		ctl->srun = SRUN_LOST;
		agent_give_up(a, "cannot connect to srun", error);
		return;
	}
	explain(a, error, peer, why);
	srun_lost(a, why);
}

static void on_srun_proved(void *arg, struct link *l)
{
	struct agent *a = arg;
	struct agent_control *ctl = a->control;

	ctl->srun = SRUN_UP;
	agent_wireup_met(a, "srun", l);
	for (size_t i = 0; i < ctl->queue.count; i++) {
		struct payload *frame = ctl->queue.items[i];

		if (!send_frame(l, frame))
			continue;
		srun_frame_lost(a, frame->data, frame->len);
		control_fail_direct(a, "no memory to ask srun");
	}
	payload_vec_clear(&ctl->queue);
	ctl->abort_queued = false;
	agent_links_answer(a);
	agent_missing_srun_up(a);
	agent_control_unneeded(a);
}

static int on_srun_frame(void *arg, struct link *l, enum frame_type type,
			 struct payload *body)
{
	if (type == FRAME_GOODBYE)
		return 0; /* its end follows */
	if (type != FRAME_CONTROL_DOWN)
		return -EPROTO;
	return agent_control_from_above(arg, body);
}

static void begin_connecting(struct agent *a, bool quiet)
{
	struct agent_control *ctl = a->control;

	ctl->quiet = quiet;
	ctl->again = false;
	ctl->srun = SRUN_CONNECTING;
	ctl->since = uv_now(loop_uv(a->loop));
	ctl->backoff_ms = AGENT_BACKOFF_FIRST_MS;
	uv_timer_start(&ctl->retry, on_retry, 0, 0);
}

static void on_srun_end(void *arg, struct link *l, int error)
{
	struct agent *a = arg;
	struct agent_control *ctl = a->control;
	struct handshake_peer peer = *link_peer(l);

	link_close(l);
	ctl->link = NULL;
	if (ctl->srun == SRUN_CONNECTING) {
		srun_attempt_failed(a, error, &peer);
		return;
	}
	ctl->srun = SRUN_IDLE;
	control_fail_direct(a, "lost the connection to srun");
	if (ctl->queue.count || (ctl->again && a->stage == AGENT_SERVING))
		begin_connecting(a, !ctl->queue.count);
}

static void on_retry(uv_timer_t *timer)
{
	static const struct link_ops ops = {
		.proved = on_srun_proved,
		.frame = on_srun_frame,
		.end = on_srun_end,
	};
	struct agent *a = timer->data;
	struct agent_control *ctl = a->control;
	int rc;

	rc = link_connect(&ctl->link, loop_uv(a->loop), &a->self,
			  HANDSHAKE_LAUNCHER, &a->options.launcher,
			  &a->link_options, &ops, a);
	if (rc)
		srun_attempt_failed(a, rc, NULL);
}

void agent_control_connect(struct agent *a)
{
	a->control->again = a->control->srun == SRUN_CLOSING;
	if (a->control->srun == SRUN_IDLE &&
	    a->options.launcher.ss_family != AF_UNSPEC)
		begin_connecting(a, true);
}

bool agent_control_will_connect(const struct agent *a)
{
	return a->stage == AGENT_SERVING &&
	       a->options.launcher.ss_family != AF_UNSPEC &&
	       a->control->srun != SRUN_UP && a->control->srun != SRUN_LOST;
}

void agent_control_unneeded(struct agent *a)
{
	struct agent_control *ctl = a->control;

	if (ctl->srun != SRUN_UP || a->stage != AGENT_SERVING || ctl->direct ||
	    !control_has_parent(a) || agent_missing_asks(a))
		return;
	ctl->srun = SRUN_CLOSING;
	agent_control_leave(a);
}

void agent_control_ask(struct agent *a, const void *data, size_t len)
{
	struct agent_control *ctl = a->control;

	if (ctl->srun == SRUN_UP)
		link_send_bytes(ctl->link, FRAME_CONTROL_UP, data, len);
	else
		agent_control_connect(a);
}

/* On the link, or in the queue for it. 0, -ENOTCONN, or what went wrong. */
static int send_or_keep(struct agent *a, struct payload *frame)
{
	struct agent_control *ctl = a->control;

	if (ctl->srun == SRUN_UP)
		return send_frame(ctl->link, frame);
	if (ctl->srun == SRUN_LOST)
		return -ENOTCONN;
	if (frame->len > CONTROL_BYTES_MAX - ctl->queue.bytes)
		return -ENOBUFS;
	return payload_vec_add(&ctl->queue, frame);
}

int srun_send(struct agent *a, struct payload *frame)
{
	struct agent_control *ctl = a->control;
	int rc = send_or_keep(a, frame);

	if (rc == -ENOTCONN)
		log_report(a, frame->data, frame->len);
	else if (rc)
		srun_frame_lost(a, frame->data, frame->len);
	if (rc)
		return rc;
	if (ctl->srun == SRUN_IDLE) {
		begin_connecting(a, false);
	} else if (ctl->quiet) {
		ctl->quiet = false;
		ctl->since = uv_now(loop_uv(a->loop));
	}
	return 0;
}

/* ---- life ---- */

void agent_control_leave(struct agent *a)
{
	struct link *l = a->control->link;

	if (!l)
		return;
	if (link_is_proved(l)) {
		link_send(l, FRAME_GOODBYE, NULL);
		link_shutdown(l);
	} else {
		link_close(l);
		a->control->link = NULL;
	}
}

bool agent_control_gone(const struct agent *a)
{
	return !a->control->link;
}

int srun_open(struct agent *a)
{
	int rc = uv_timer_init(loop_uv(a->loop), &a->control->retry);

	a->control->retry.data = a;
	return rc;
}

void srun_close(struct agent *a)
{
	link_close(a->control->link);
	a->control->link = NULL;
	agent_close_handle(&a->control->retry);
}
