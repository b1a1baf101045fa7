/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that only srun can answer: names and spawn, with a later answer; aborts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/names.h"
#include "libpmi/pmix_nspace.h"

#define NO_TEXT "a name or port with a NUL in it"
#define NAMES_ROOM 64 /* bytes of a request without keys */
#define AWAITED_MAX 96 /* bytes of a name or namespace with some words, NUL included */

/* A request that srun has not answered. */
struct srun_request {
	uint32_t id;
	enum control_type type;
	struct rank_session *ss;
	struct rank_request rq;
	request_answered answered; /* of PMIx, which has no rq; or NULL */
	uint64_t pmix; /* its id */
	char awaited[AWAITED_MAX]; /* NAMES: what must come first: of a sentence; or "" */
	UT_hash_handle hh;
};

/* ---- sending ---- */

static int send_control(struct pmi_server *s, struct control_msg *msg)
{
	struct buf b;
	int rc;

	msg->origin = s->step->position;
	buf_init(&b, CONTROL_FRAME_MAX);
	rc = control_pack(&b, msg);
	if (!rc)
		s->ops->control_send(s->arg, b.data, b.len);
	buf_free(&b);
	return rc;
}

/* A text alone, also when there is no memory. */
static int send_text(struct pmi_server *s, struct control_msg *msg)
{
	char room[CONTROL_REPLY_MAX];
	struct buf b;
	int rc;

	msg->origin = s->step->position;
	buf_init_in(&b, room, sizeof(room));
	rc = control_pack(&b, msg);
	if (!rc)
		s->ops->control_send(s->arg, b.data, b.len);
	return rc;
}

static void forget(struct srun_request *r)
{
	struct pmi_server *s = r->ss->server;

	HASH_DEL(s->requests, r);
	r->ss->waits--;
	s->requests_ended++;
	free(r);
}

static struct srun_request *note(struct rank_session *ss,
				 const struct rank_request *rq,
				 enum control_type type)
{
	struct pmi_server *s = ss->server;
	struct srun_request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->id = s->next_request++;
	r->type = type;
	r->ss = ss;
	if (rq)
		r->rq = *rq;
	HASH_ADD(hh, s->requests, id, sizeof(r->id), r);
	if (!r->hh.tbl) {
		free(r);
		return NULL;
	}
	ss->waits++;
	return r;
}

/* Control messages carry texts, not bytes. */
static bool is_text(const struct pmi_field *f)
{
	return strlen(f->value) == f->value_len;
}

/* Send a request; the rank is answered now when that fails. */
static void ask(struct rank_session *ss, const struct rank_request *rq,
		struct control_msg *msg)
{
	struct srun_request *r;
	int rc;

	if (ss->server->srun_lost) {
		answer_error(ss, rq, PMI_RC_FAIL, "srun cannot be reached");
		return;
	}
	if (!rank_may_wait(ss, rq))
		return;
	r = note(ss, rq, msg->type);
	if (!r) {
		answer_error(ss, rq, PMI_RC_NOMEM, "out of memory");
		return;
	}
	msg->id = r->id;
	msg->rank = ss->rank;
	rc = send_control(ss->server, msg);
	if (rc) {
		forget(r);
		answer_error(ss, rq, answer_rc(rc), "%s", answer_text(rc));
	}
}

/* Describes the name, or the processes, that a lookup waits for. */
static void describe_awaited(struct srun_request *r, const void *body, size_t len)
{
	struct names_request names = { 0 };

	if (r->type != CONTROL_NAMES || names_unpack_request(&names, body, len))
		return;
	if (names.op == NAMES_LOOKUP && names.wait && names.count && names.items[0].from.nspace)
		snprintf(r->awaited, sizeof(r->awaited), "processes of %.64s have not come",
			 names.items[0].from.nspace);
	else if (names.op == NAMES_LOOKUP && names.wait && names.count)
		snprintf(r->awaited, sizeof(r->awaited), "nobody has published \"%.64s\"",
			 names.items[0].key);
	free(names.items);
}

int requests_pmix(struct rank_session *ss, enum control_type type, uint64_t id,
		  const void *body, size_t len, request_answered answered)
{
	struct pmi_server *s = ss->server;
	char nspace[PMIX_NSPACE_NAME_MAX + 1];
	struct control_msg msg = {
		.type = type,
		.rank = ss->rank,
		.name = nspace,
		.text = (char *)engine_node_name(s),
		.body = body,
		.body_len = len,
	};
	struct srun_request *r;
	int rc;

	if (s->srun_lost)
		return -ENOTCONN;
	if (ss->waits >= RANK_WAITS_MAX)
		return -ENOSPC;
	r = note(ss, NULL, type);
	if (!r)
		return -ENOMEM;
	ss->spawner |= type == CONTROL_SPAWN;
	r->answered = answered;
	r->pmix = id;
	describe_awaited(r, body, len);
	msg.id = r->id;
	pmix_nspace_name(nspace, s->step->jobid);
	rc = send_control(s, &msg);
	if (rc)
		forget(r);
	return rc;
}

/* The field that holds a published name. */
static const char *name_key(const struct rank_request *rq)
{
	return rq->protocol == PMI_PROTOCOL_1 ? "service" : "name";
}

void requests_publish(struct rank_session *ss, const struct rank_request *rq,
		      const struct pmi_message *m)
{
	struct control_msg msg = {.type = CONTROL_PUBLISH};
	const struct pmi_field *name, *port;

	name = rank_key(ss, rq, m, name_key(rq), CONTROL_TEXT_MAX);
	if (!name)
		return;
	port = rank_value(ss, rq, m, "port", CONTROL_TEXT_MAX);
	if (!port)
		return;
	msg.name = (char *)name->value;
	msg.text = (char *)port->value;
	if (is_text(name) && is_text(port))
		ask(ss, rq, &msg);
	else
		answer_error(ss, rq, PMI_RC_INVALID_ARG, NO_TEXT);
}

/* Send a request that consists of a name. */
static void ask_name(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m, enum control_type type)
{
	struct control_msg msg = {.type = type};
	const struct pmi_field *name;

	name = rank_key(ss, rq, m, name_key(rq), CONTROL_TEXT_MAX);
	if (!name)
		return;
	msg.name = (char *)name->value;
	if (is_text(name))
		ask(ss, rq, &msg);
	else
		answer_error(ss, rq, PMI_RC_INVALID_ARG, NO_TEXT);
}

void requests_unpublish(struct rank_session *ss, const struct rank_request *rq,
			const struct pmi_message *m)
{
	ask_name(ss, rq, m, CONTROL_UNPUBLISH);
}

void requests_lookup(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m)
{
	ask_name(ss, rq, m, CONTROL_LOOKUP);
}

void requests_spawn(struct rank_session *ss, const struct rank_request *rq,
		    const struct spawn_request *spawn)
{
	struct control_msg msg = {.type = CONTROL_SPAWN};
	struct buf body;
	int rc;

	buf_init(&body, CONTROL_BODY_MAX);
	rc = spawn_pack(&body, spawn);
	if (rc) {
		answer_error(ss, rq, PMI_RC_INVALID_ARGS,
			     "the spawn request is over %u bytes",
			     CONTROL_BODY_MAX);
	} else {
		msg.body = body.data;
		msg.body_len = body.len;
		ask(ss, rq, &msg);
	}
	buf_free(&body);
}

void requests_abort(struct rank_session *ss, bool step, int code, const char *text)
{
	struct pmi_server *s = ss->server;
	char cut[CONTROL_TEXT_MAX];
	struct control_msg msg = {
		.type = CONTROL_ABORT,
		.rank = ss->rank,
		.code = code,
		.text = cut,
	};

	snprintf(cut, sizeof(cut), "%s", text);
	snprintf(ss->why, sizeof(ss->why), "rank %u (node %s) aborted%s%.128s",
		 ss->rank, engine_node_name(s), text[0] ? ": " : "", text);
	control_printable(ss->why);
	if (step && send_text(s, &msg))
		log_error(s->log, "%s; the abort could not be reported to srun", ss->why);
}

int requests_end_step(struct pmi_server *s, const char *why, int code)
{
	struct control_msg msg = {
		.type = CONTROL_ABORT,
		.rank = CONTROL_NO_RANK,
		.code = code,
		.text = (char *)why,
	};

	return s->srun_lost ? -ENOTCONN : send_text(s, &msg);
}

void requests_ready(struct pmi_server *s, const char *why_not)
{
	struct control_msg msg = {
		.type = CONTROL_READY,
		.code = why_not ? 1 : 0,
		.text = (char *)why_not,
	};

	if (send_text(s, &msg))
		log_error(s->log, "could not report to srun that rank 0 has started");
}

/* Tell srun that the rank has ended. srun's answer has no content. */
void requests_ended(struct rank_session *ss)
{
	const struct names_request r = { .op = NAMES_ENDED, .range = NAMES_OF_SESSION };
	struct pmi_server *s = ss->server;
	char nspace[PMIX_NSPACE_NAME_MAX + 1];
	struct control_msg msg = {
		.type = CONTROL_NAMES,
		.id = s->next_request++,
		.rank = ss->rank,
		.name = nspace,
		.text = (char *)engine_node_name(s),
	};
	char room[NAMES_ROOM];
	struct buf body;

	pmix_nspace_name(nspace, s->step->jobid);
	buf_init_in(&body, room, sizeof(room));
	if (!names_pack_request(&body, &r)) {
		msg.body = body.data;
		msg.body_len = body.len;
	}
	if (s->srun_lost || send_control(s, &msg))
		log_error(s->log, "could not report to srun that rank %u has ended",
			  ss->rank);
}

static void tell_user(struct pmi_server *s, enum control_type type, const char *text)
{
	struct control_msg msg = { .type = type, .text = (char *)text };

	if (s->srun_lost || send_text(s, &msg))
		log_error(s->log, "%s", text);
}

void requests_report(struct pmi_server *s, const char *text)
{
	tell_user(s, CONTROL_REPORT, text);
}

void requests_note(struct pmi_server *s, const char *text)
{
	tell_user(s, CONTROL_NOTE, text);
}

void requests_gave_up(struct pmi_server *s)
{
	struct control_msg msg = {.type = CONTROL_REPORT, .code = 1};

	(void)send_control(s, &msg); /* srun says what it knows all the same */
}

/* ---- answers ---- */

static void answer_done(const struct srun_request *r, const char *text)
{
	bool pmi1 = r->rq.protocol != PMI_PROTOCOL_2;
	struct pmi_writer *w = answer_begin(r->ss, &r->rq, PMI_RC_OK);

	if (r->type == CONTROL_SPAWN) {
		pmi_write_str(w, "jobid", text);
		/* No errcodes: clients then take all of them for 0. */
		pmi_write_int(w, "nerrs", 0);
	} else if (pmi1) {
		pmi_write_str(w, "info", "ok");
		pmi_write_str(w, "msg", "success");
	}
	if (r->type == CONTROL_LOOKUP && !pmi1) {
		pmi_write_bool(w, "found", true);
		/* Slurm's client reads value, MPICH's port. */
		pmi_write_str(w, "value", text);
	}
	if (r->type == CONTROL_LOOKUP)
		pmi_write_str(w, "port", text);
	answer_end(r->ss, &r->rq);
}

static void finish(struct srun_request *r, const struct control_msg *reply)
{
	const char *text = reply->text ? reply->text : "";

	if (r->answered)
		r->answered(r->ss->server, r->type, r->pmix, reply);
	else if (reply->code)
		answer_error(r->ss, &r->rq, reply->code, "%s", text);
	else
		answer_done(r, text);
	forget(r);
}

int requests_reply(struct pmi_server *s, const void *data, size_t len)
{
	struct srun_request *r;
	struct control_msg msg;
	int rc = control_unpack(data, len, &msg);

	if (rc)
		return rc;
	if (msg.type != CONTROL_REPLY || msg.origin != s->step->position) {
		rc = -EPROTO;
	} else {
		/* None: the rank has gone since. */
		HASH_FIND(hh, s->requests, &msg.id, sizeof(msg.id), r);
		if (r)
			finish(r, &msg);
	}
	control_free(&msg);
	return rc;
}

/* pmixd waits for an answer also for a rank that has gone. */
void requests_drop(struct rank_session *ss, bool of_pmix)
{
	const struct control_msg gone = { .code = PMI_RC_FAIL, .text = ss->why };
	struct srun_request *r, *next;

	HASH_ITER(hh, ss->server->requests, r, next) {
		if (r->ss != ss || !r->answered == of_pmix)
			continue;
		if (r->answered)
			r->answered(ss->server, r->type, r->pmix, &gone);
		forget(r);
	}
}

void requests_fail_all(struct pmi_server *s, const char *why)
{
	struct srun_request *r, *next;
	char text[ANSWER_TEXT_MAX];
	const struct control_msg lost = { .code = PMI_RC_FAIL, .text = text };

	snprintf(text, sizeof(text), "srun cannot be reached: %s", why);
	HASH_ITER(hh, s->requests, r, next)
		finish(r, &lost);
}

static const char *request_name(enum control_type type)
{
	switch (type) {
	case CONTROL_SPAWN:
		return "spawn of processes";
	case CONTROL_LOOKUP:
		return "lookup of a name";
	case CONTROL_NAMES:
		return "lookup of a name, or connection";
	default:
		return "request";
	}
}

void requests_tell_wait(const struct pmi_server *s, unsigned seconds,
			char text[PMI_WAIT_TEXT_MAX])
{
	const struct srun_request *r = s->requests; /* in order of their making */
	const char *awaited = r && r->awaited[0] ? r->awaited : "srun has not answered";

	if (!r)
		return;
	if (r->type == CONTROL_SPAWN)
		awaited = "their first process has not started PMI or PMIx";
	snprintf(text, PMI_WAIT_TEXT_MAX, "%s by rank %u (node %s): %u s, %s",
		 request_name(r->type), r->ss->rank, engine_node_name(s), seconds, awaited);
	control_printable(text);
}
