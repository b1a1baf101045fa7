/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses to ranks, in the form their protocol wants. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"

static const struct {
	int error;
	int rc;
	const char *text;
} ERRORS[] = {
	{-ENOMEM, PMI_RC_NOMEM, "the agent is out of memory, or holds Pmi2xBufferLimit already"},
	{-ENOBUFS, PMI_RC_NOMEM, "too much data before a fence"},
	{-ENOSPC, PMI_RC_NOMEM,
	 "the results region of the node is full: raise Pmi2xRegionSize"},
	{-EMSGSIZE, PMI_RC_INVALID_LENGTH, "key or value too long"},
	{-EINVAL, PMI_RC_INVALID_VAL, "the value cannot be sent in PMI-1"},
	{-EAGAIN, PMI_RC_OTHER, "too many collectives in flight"},
	{-EFBIG, PMI_RC_NOMEM, "the result is over 2 GiB"},
	{-EKEYREJECTED, PMI_RC_INVALID_KEY, "the keys are chosen to collide"},
	{-EPROTO, PMI_RC_INVALID_ARG, "malformed data"},
};

#define NERRORS (sizeof(ERRORS) / sizeof(ERRORS[0]))

int answer_rc(int error)
{
	for (size_t i = 0; i < NERRORS; i++)
		if (ERRORS[i].error == error)
			return ERRORS[i].rc;
	return PMI_RC_FAIL;
}

const char *answer_text(int error)
{
	for (size_t i = 0; i < NERRORS; i++)
		if (ERRORS[i].error == error)
			return ERRORS[i].text;
	return "internal error";
}

static struct pmi_writer *begin(struct rank_session *ss,
				const struct rank_request *rq,
				const char *name, int rc)
{
	struct pmi_writer *w = &ss->server->writer;

	buf_clear(&ss->server->out);
	pmi_write_begin(w, &ss->server->out, rq->protocol, name);
	if (rq->thrid[0])
		pmi_write_str(w, "thrid", rq->thrid);
	pmi_write_int(w, "rc", rc);
	/* MPICH 5 takes a barrier_out without one for granted, and crashes. */
	if (rq->command->tagged && name == rq->command->response)
		pmi_write_int(w, "tag", rq->tag);
	return w;
}

struct pmi_writer *answer_begin(struct rank_session *ss,
				const struct rank_request *rq, int rc)
{
	return begin(ss, rq, rq->command->response, rc);
}

static void send_out(struct rank_session *ss, const struct passed_fds *fds)
{
	struct pmi_server *s = ss->server;

	if (!rank_is_live(ss))
		return;
	engine_event(s, PMI_EVENT_ANSWER, ss->slot, 0, 0);
	s->ops->client_send(s->arg, ss->slot, s->out.data, s->out.len, fds);
}

void answer_end_fds(struct rank_session *ss, const struct rank_request *rq,
		    const struct passed_fds *fds)
{
	int rc = pmi_write_end(&ss->server->writer);

	if (rc)
		answer_error(ss, rq, answer_rc(rc), "%s", answer_text(rc));
	else
		send_out(ss, fds);
}

void answer_end(struct rank_session *ss, const struct rank_request *rq)
{
	answer_end_fds(ss, rq, NULL);
}

/* Answer a request that came through the slot. */
static void answer_in_slot(struct rank_session *ss, const struct rank_request *rq,
			   int rc, uint64_t offset, uint64_t len, const char *text)
{
	slots_reply(ss->server->slots, ss->slot, rq->cell, rq->ticket, rc,
		    offset, len, text);
	engine_event(ss->server, PMI_EVENT_ANSWER, ss->slot, 0, 0);
	engine_defer(ss->server, DEFER_WAKE);
}

/* As above, of a ring. Errors as slots_reply_ring. */
static int answer_ring_in_slot(struct rank_session *ss, const struct rank_request *rq,
			       const struct slot_neighbours *n)
{
	int rc = slots_reply_ring(ss->server->slots, ss->slot, rq->cell,
				  rq->ticket, n);

	if (rc)
		return rc;
	engine_event(ss->server, PMI_EVENT_ANSWER, ss->slot, 0, 0);
	engine_defer(ss->server, DEFER_WAKE);
	return 0;
}

void answer_ok(struct rank_session *ss, const struct rank_request *rq)
{
	if (rq->ticket) {
		answer_in_slot(ss, rq, PMI_RC_OK, 0, 0, NULL);
		return;
	}
	answer_begin(ss, rq, PMI_RC_OK);
	answer_end(ss, rq);
}

void answer_found(struct rank_session *ss, const struct rank_request *rq,
		  const char *value, size_t len)
{
	struct pmi_writer *w = answer_begin(ss, rq, PMI_RC_OK);

	if (rq->protocol == PMI_PROTOCOL_2)
		pmi_write_bool(w, "found", value != NULL);
	if (value)
		pmi_write_bytes(w, "value", value, len);
	answer_end(ss, rq);
}

void answer_gathered(struct rank_session *ss, const struct rank_request *rq,
		     uint64_t offset, uint64_t len)
{
	struct pmi_writer *w;

	if (rq->ticket) {
		answer_in_slot(ss, rq, PMI_RC_OK, offset, len, NULL);
		return;
	}
	w = answer_begin(ss, rq, PMI_RC_OK);
	pmi_write_int(w, "offset", offset);
	pmi_write_int(w, "length", len);
	answer_end(ss, rq);
}

static const void *bytes_of(const struct payload *p, size_t *len)
{
	*len = p && p->data ? p->len : 0;
	return *len ? p->data : (const void *)"";
}

void answer_ring(struct rank_session *ss, const struct rank_request *rq,
		 const struct coll_ring_result *result)
{
	struct slot_neighbours n = {
		.place = result->rank, .size = result->size,
	};
	struct pmi_writer *w;
	int error;

	n.left = bytes_of(result->left, &n.left_len);
	n.right = bytes_of(result->right, &n.right_len);
	if (rq->ticket) {
		error = answer_ring_in_slot(ss, rq, &n);
		if (error)
			answer_error(ss, rq, answer_rc(error),
				     "the values of the neighbours in the ring: %s",
				     answer_text(error));
		return;
	}
	w = answer_begin(ss, rq, PMI_RC_OK);
	pmi_write_int(w, "ring-count", n.place);
	pmi_write_bytes(w, "ring-left", n.left, n.left_len);
	pmi_write_bytes(w, "ring-right", n.right, n.right_len);
	pmi_write_int(w, "ring-size", n.size);
	answer_end(ss, rq);
}

/* Stock PMI-1 clients end a value at the first space. */
static void join_words(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ')
			*text = '_';
}

static void send_error(struct rank_session *ss, const struct rank_request *rq,
		       int rc, char *text)
{
	const struct command *c = rq->command;
	struct pmi_writer *w;

	w = begin(ss, rq, c->failure ? c->failure : c->response, rc);
	if (rq->protocol == PMI_PROTOCOL_2) {
		pmi_write_str(w, "errmsg", text);
	} else {
		join_words(text);
		/* Old clients look at info, newer ones at rc. */
		pmi_write_str(w, "info", "fail");
		pmi_write_str(w, "msg", text);
	}
	if (pmi_write_end(w))
		rank_fail(ss, "could not be answered: out of memory");
	else
		send_out(ss, NULL);
}

void answer_error(struct rank_session *ss, const struct rank_request *rq,
		  int rc, const char *fmt, ...)
{
	char text[ANSWER_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (rq->ticket)
		answer_in_slot(ss, rq, rc, 0, 0, text);
	else
		send_error(ss, rq, rc, text);
}
