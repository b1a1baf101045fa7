/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to srun: frames that wait for it, and what happens to them if it cannot be
 * made.
 */
#include "agent/step/srun_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/step/root_services.h"
#include "libpmi/control.h"

#define SRUN_BYTES_MAX ((size_t)256 << 20) /* of what waits for it */
#define SRUN_CONNECT_MS 10000 /* srun listens before it launches */
#define SRUN_BACKOFF_MS 50

/*
 * IDLE -> CONNECTING -> UP -> IDLE (closed by srun; the next frame tries again)
 *             +-> LOST   +--> CLOSING (not needed any more) -> IDLE
 */
enum srun_state {
	SRUN_IDLE,
	SRUN_CONNECTING,
	SRUN_UP,
	SRUN_CLOSING,
	SRUN_LOST,
};

struct srun_link {
	enum srun_state state;
	struct link *link;        /* NULL while there is no attempt */
	uv_timer_t retry;
	uint64_t since;           /* loop time of the first attempt, ms */
	uint32_t backoff_ms;
	struct payload_vec queue; /* frames until it is UP */
	bool quiet;               /* nothing waits for it: a failure is none */
	bool again;               /* needed, though it is CLOSING */
	bool has_abort;           /* in the queue */
};

static void on_retry(uv_timer_t *timer);

/* Logs a report that srun cannot show to the user any more. */
static void log_report(struct service *s, const void *data, size_t len)
{
	char text[CONTROL_TEXT_MAX + 1];
	enum control_type type;
	uint32_t origin;

	if (!control_peek(data, len, &type, &origin) &&
	    (type == CONTROL_REPORT || type == CONTROL_NOTE) && !control_text(data, len, text) && text[0])
		log_error(s->node->log, "%s", text);
}

void srun_link_frame_lost(struct service *s, const void *data, size_t len)
{
	char text[CONTROL_TEXT_MAX + 1] = "", why[NODE_WHY_MAX];
	enum control_type type;
	uint32_t origin;

	log_report(s, data, len);
	if (control_peek(data, len, &type, &origin) || type != CONTROL_ABORT)
		return;
	(void)control_text(data, len, text);
	snprintf(why, sizeof(why),
		 "node %s could not report an abort to srun%s%.300s",
		 node_own_name(s->node), text[0] ? ": " : "", text);
	node_kill_step(s->node, why);
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

static void srun_lost(struct service *s, const char *why)
{
	struct srun_link *srun = s->srun;

	if (!s->leaving)
		log_error(s->node->log, "%s", why);
	else
		log_debug(s->node->log, "%s", why); /* the step is over for it */
	srun->state = SRUN_LOST;
	for (size_t i = 0; i < srun->queue.count; i++)
		log_report(s, srun->queue.items[i]->data,
			   srun->queue.items[i]->len);
	payload_vec_clear(&srun->queue);
	s->srun_ops->failed(s, why);
	if (srun->has_abort)
		node_kill_step(s->node, why);
	pmi_server_control_lost(s->server, why);
}

static void explain(const struct service *s, int error,
		    const struct handshake_peer *peer, char why[NODE_WHY_MAX])
{
	const char *name = node_own_name(s->node);
	char us[80];

	snprintf(us, sizeof(us), "node %.64s", name);
	if (error == -EPROTONOSUPPORT)
		handshake_explain(why, NODE_WHY_MAX, "srun", peer, us,
				  &s->node->self);
	else
		snprintf(why, NODE_WHY_MAX, "%s cannot reach srun: %s", us,
			 link_strerror(error));
}

/* `peer` is there when it was proved, or nearly. */
static void srun_attempt_failed(struct service *s, int error,
				const struct handshake_peer *peer)
{
	struct srun_link *srun = s->srun;
	uint64_t waited = node_now(s->node) - srun->since;
	bool ended = error == -ECONNREFUSED && s->leaving;
	uint32_t limit = s->node->options->connect_ms < SRUN_CONNECT_MS ?
				 s->node->options->connect_ms : SRUN_CONNECT_MS;
	char why[NODE_WHY_MAX];

	if (waited < limit && !ended && error != -EPROTONOSUPPORT &&
	    error != -EAFNOSUPPORT) {
		uv_timer_start(&srun->retry, on_retry, srun->backoff_ms, 0);
		srun->backoff_ms *= 2;
		return;
	}
	peers_answer(s->peers);
	if (srun->quiet) {
		srun->state = SRUN_IDLE;
		return;
	}
	if (srun->has_abort && (error == -EMFILE || error == -ENFILE)) {
		srun->state = SRUN_LOST;
		node_give_up(s->node, "cannot connect to srun", error);
		return;
	}
	explain(s, error, peer, why);
	srun_lost(s, why);
}

static void on_srun_proved(void *arg, struct link *l)
{
	struct service *s = arg;
	struct srun_link *srun = s->srun;

	srun->state = SRUN_UP;
	node_met(s->node, "srun", l);
	for (size_t i = 0; i < srun->queue.count; i++) {
		struct payload *frame = srun->queue.items[i];

		if (!send_frame(l, frame))
			continue;
		srun_link_frame_lost(s, frame->data, frame->len);
		s->srun_ops->failed(s, "no memory to ask srun");
	}
	payload_vec_clear(&srun->queue);
	srun->has_abort = false;
	s->srun_ops->up(s);
}

static int on_srun_frame(void *arg, struct link *l, enum frame_type type,
			 struct payload *body)
{
	struct service *s = arg;

	if (type == FRAME_GOODBYE)
		return 0; /* its end follows */
	return type == FRAME_CONTROL_DOWN ? s->srun_ops->frame(s, body) : -EPROTO;
}

static void begin_connecting(struct service *s, bool quiet)
{
	struct srun_link *srun = s->srun;

	srun->quiet = quiet;
	srun->again = false;
	srun->state = SRUN_CONNECTING;
	srun->since = node_now(s->node);
	srun->backoff_ms = SRUN_BACKOFF_MS;
	uv_timer_start(&srun->retry, on_retry, 0, 0);
}

static void on_srun_end(void *arg, struct link *l, int error)
{
	struct service *s = arg;
	struct srun_link *srun = s->srun;
	struct handshake_peer peer = *link_peer(l);

	link_close(l);
	srun->link = NULL;
	if (srun->state == SRUN_CONNECTING) {
		srun_attempt_failed(s, error, &peer);
		return;
	}
	srun->state = SRUN_IDLE;
	s->srun_ops->failed(s, "lost the connection to srun");
	if (srun->queue.count || (srun->again && !s->leaving))
		begin_connecting(s, !srun->queue.count);
}

static void on_retry(uv_timer_t *timer)
{
	static const struct link_ops ops = {
		.proved = on_srun_proved,
		.frame = on_srun_frame,
		.end = on_srun_end,
	};
	struct service *s = timer->data;
	struct srun_link *srun = s->srun;
	int rc;

	rc = link_connect(&srun->link, loop_uv(s->node->loop), &s->node->self,
			  HANDSHAKE_SRUN, &s->node->options->launcher,
			  &s->node->link_options, &ops, s);
	if (rc)
		srun_attempt_failed(s, rc, NULL);
}

void srun_link_connect(struct service *s)
{
	struct srun_link *srun = s->srun;

	srun->again = srun->state == SRUN_CLOSING;
	if (srun->state == SRUN_IDLE &&
	    s->node->options->launcher.ss_family != AF_UNSPEC)
		begin_connecting(s, true);
}

bool srun_link_will_connect(void *service)
{
	const struct service *s = service;

	return !s->leaving &&
	       s->node->options->launcher.ss_family != AF_UNSPEC &&
	       s->srun->state != SRUN_UP && s->srun->state != SRUN_LOST;
}

bool srun_link_is_up(const struct service *s)
{
	return s->srun->state == SRUN_UP;
}

void srun_link_release(struct service *s)
{
	if (s->srun->state != SRUN_UP || s->leaving)
		return;
	s->srun->state = SRUN_CLOSING;
	srun_link_leave(s);
}

void srun_link_ask(struct service *s, const void *data, size_t len)
{
	if (s->srun->state == SRUN_UP)
		link_send_bytes(s->srun->link, FRAME_CONTROL_UP, data, len);
	else
		srun_link_connect(s);
}

static bool is_abort(const struct payload *frame)
{
	enum control_type type;
	uint32_t origin;

	return !control_peek(frame->data, frame->len, &type, &origin) &&
	       type == CONTROL_ABORT;
}

/* In the queue. 0, -ENOBUFS or -ENOMEM. */
static int keep(struct srun_link *srun, struct payload *frame)
{
	int rc = -ENOBUFS;

	if (frame->len <= SRUN_BYTES_MAX - srun->queue.bytes)
		rc = payload_vec_add(&srun->queue, frame);
	srun->has_abort |= !rc && is_abort(frame);
	return rc;
}

/* Drop the frame: there is no srun. */
static int cannot_send(struct service *s, struct payload *frame)
{
	log_report(s, frame->data, frame->len);
	if (is_abort(frame))
		node_kill_step(s->node, "srun cannot be reached");
	return -ENOTCONN;
}

int srun_link_send(struct service *s, struct payload *frame)
{
	const struct agent_host *host = s->node->host;
	struct srun_link *srun = s->srun;
	int rc;

	if (host->control)
		return host->control(host->arg, frame);
	if (s->node->options->no_srun) {
		rc = root_services_send(s, frame);
		if (rc)
			srun_link_frame_lost(s, frame->data, frame->len);
		return rc;
	}
	if (srun->state == SRUN_LOST)
		return cannot_send(s, frame);
	rc = srun->state == SRUN_UP ? send_frame(srun->link, frame) :
				      keep(srun, frame);
	if (rc) {
		srun_link_frame_lost(s, frame->data, frame->len);
		return rc;
	}
	if (srun->state == SRUN_IDLE) {
		begin_connecting(s, false);
	} else if (srun->quiet) {
		srun->quiet = false;
		srun->since = node_now(s->node);
	}
	return 0;
}

/* ---- life ---- */

bool srun_link_is_flushed(const struct service *s)
{
	const struct srun_link *srun = s->srun;

	return !srun->queue.count && (!srun->link || !link_queued(srun->link)) &&
	       root_services_is_flushed(s);
}

void srun_link_leave(struct service *s)
{
	struct link *l = s->srun->link;

	if (!l)
		return;
	if (link_is_proved(l)) {
		link_send(l, FRAME_GOODBYE, NULL);
		link_shutdown(l);
	} else {
		link_close(l);
		s->srun->link = NULL;
	}
}

bool srun_link_is_gone(const struct service *s)
{
	return !s->srun->link;
}

int srun_link_open(struct service *s)
{
	int rc;

	s->srun = calloc(1, sizeof(*s->srun));
	if (!s->srun)
		return -ENOMEM;
	payload_vec_init(&s->srun->queue);
	rc = uv_timer_init(loop_uv(s->node->loop), &s->srun->retry);
	s->srun->retry.data = s;
	return rc;
}

void srun_link_close(struct service *s)
{
	if (!s->srun)
		return;
	link_close(s->srun->link);
	s->srun->link = NULL;
	node_close_handle(&s->srun->retry);
}

void srun_link_free(struct service *s)
{
	if (s->srun)
		payload_vec_clear(&s->srun->queue);
	free(s->srun);
}
