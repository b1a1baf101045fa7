/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that ranks have entered, the space of gathers that they still read, and
 * reports of failures. Their ends: engine_coll_ops.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libengine/results.h"

/* ---- entering ---- */

/*
 * A rank could not enter. Without memory for what it gave, it has missed a
 * collective that others wait in: it has to go, so that they fail.
 */
static void refuse(struct rank_session *ss, const struct rank_request *rq, int error)
{
	answer_error(ss, rq, answer_rc(error), "%s", answer_text(error));
	if (error == -ENOMEM)
		rank_fail(ss, "could not enter a collective: out of memory");
}

void collective_free(struct entered *e)
{
	if (e)
		payload_unref(e->records);
	free(e);
}

void collective_forget(struct rank_session *ss, struct entered *e)
{
	DL_DELETE(ss->entered, e);
	ss->in_flight -= e->bytes;
	collective_free(e);
}

/* Note what a rank enters before libcoll knows: the end may come at once. */
static struct entered *note_entered(struct rank_session *ss,
				    const struct rank_request *rq,
				    enum coll_kind kind, size_t bytes)
{
	struct entered *e;

	if (bytes > rank_room(ss)) {
		answer_error(ss, rq, PMI_RC_NOMEM,
			     "too much data in collectives that have not ended");
		return NULL;
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		refuse(ss, rq, -ENOMEM);
		return NULL;
	}
	e->kind = kind;
	e->seq = coll_entered(ss->server->coll, kind, ss->slot);
	engine_event(ss->server, PMI_EVENT_ENTER, ss->slot, kind, e->seq);
	e->bytes = bytes;
	e->rq = *rq;
	ss->in_flight += bytes;
	DL_APPEND(ss->entered, e);
	return e;
}

struct entered *collective_note_group(struct rank_session *ss,
				      const struct rank_request *rq)
{
	struct entered *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->kind = ENTERED_GROUP;
	e->seq = ss->server->next_group++;
	e->rq = *rq;
	DL_APPEND(ss->entered, e);
	return e;
}

int collective_count(struct rank_session *ss, struct entered *e, size_t bytes)
{
	if (bytes > rank_room(ss))
		return -ENOBUFS;
	e->bytes = bytes;
	ss->in_flight += bytes;
	return 0;
}

/* coll_enter has refused: as if the rank had not asked. */
static void undo_entered(struct rank_session *ss, struct entered *e, int error)
{
	const struct rank_request rq = e->rq;

	collective_forget(ss, e);
	refuse(ss, &rq, error);
}

/* A group's barrier may have to bring it before that fence. */
static void note_records(struct rank_session *ss, struct entered *e,
			 struct payload *records)
{
	e->upto = ss->put;
	e->records = payload_ref(records);
}

/* Takes the reference to `contribution`, which may be NULL. */
static void enter(struct rank_session *ss, const struct rank_request *rq,
		  enum coll_kind kind, struct payload *contribution,
		  size_t stride)
{
	struct entered *e;
	uint32_t seq;
	int rc;

	e = note_entered(ss, rq, kind, contribution ? contribution->len : 0);
	if (e) {
		e->stride = stride;
		if (kind == COLL_FENCE && contribution)
			note_records(ss, e, contribution);
		rc = coll_enter(ss->server->coll, kind, ss->slot, contribution,
				&seq);
		if (rc)
			undo_entered(ss, e, rc);
	}
	payload_unref(contribution);
}

/* Values that a rank has put go with the fence, or stay for the next one. */
void collective_fence(struct rank_session *ss, const struct rank_request *rq)
{
	struct payload *records = NULL;
	int rc = coll_may_enter(ss->server->coll, COLL_FENCE, ss->slot);

	if (!rc && ss->pending.len) {
		records = payload_take(&ss->pending);
		rc = records ? 0 : -ENOMEM;
		ss->put += records ? records->len : 0;
	}
	if (rc)
		refuse(ss, rq, rc);
	else
		enter(ss, rq, COLL_FENCE, records, 0);
}

void collective_gather(struct rank_session *ss, const struct rank_request *rq,
		       struct payload *contribution, size_t stride)
{
	if (contribution)
		enter(ss, rq, COLL_GATHER, contribution, stride);
	else
		refuse(ss, rq, -ENOMEM);
}

void collective_ring(struct rank_session *ss, const struct rank_request *rq,
		     uint32_t count, struct payload *left,
		     struct payload *right)
{
	struct entered *e = NULL;
	uint32_t seq;
	int rc;

	if (left && right)
		e = note_entered(ss, rq, COLL_RING, left->len + right->len);
	else
		refuse(ss, rq, -ENOMEM);
	if (e) {
		rc = coll_enter_ring(ss->server->coll, ss->slot, count, left,
				     right, &seq);
		if (rc)
			undo_entered(ss, e, rc);
	}
	payload_unref(left);
	payload_unref(right);
}

/* ---- space of gathers ---- */

int collective_hold(struct rank_session *ss, struct gather_result *g)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->offset = g->offset;
	h->gather = g;
	HASH_ADD(hh, ss->holds, offset, sizeof(h->offset), h);
	if (!h->hh.tbl) {
		free(h);
		return -ENOMEM;
	}
	g->holders++;
	return 0;
}

void collective_unhold(struct pmi_server *s, struct gather_result *g)
{
	if (--g->holders)
		return;
	if (!g->keep)
		results_release(&s->results, g->offset);
	payload_unref(g->keep);
	free(g);
}

static void drop_hold(struct rank_session *ss, struct hold *h)
{
	HASH_DEL(ss->holds, h);
	collective_unhold(ss->server, h->gather);
	free(h);
}

void collective_done(struct rank_session *ss, uint64_t offset)
{
	struct hold *h;

	HASH_FIND(hh, ss->holds, &offset, sizeof(offset), h);
	if (h)
		drop_hold(ss, h);
}

void collective_done_all(struct rank_session *ss)
{
	while (ss->holds)
		drop_hold(ss, ss->holds);
}

void collective_drop(struct rank_session *ss)
{
	collective_done_all(ss);
	while (ss->entered)
		collective_forget(ss, ss->entered);
}

/* ---- ending ---- */

static struct entered *find_entered(const struct rank_session *ss,
				    enum coll_kind kind, uint32_t seq)
{
	struct entered *e;

	DL_FOREACH(ss->entered, e)
		if (e->kind == kind && e->seq == seq)
			break;
	return e;
}

struct entered *collective_find_group(const struct rank_session *ss, uint32_t id)
{
	return find_entered(ss, ENTERED_GROUP, id);
}

/* The rank's entry of a collective that has ended, taken out; or NULL. */
struct entered *collective_take(struct rank_session *ss,
				    enum coll_kind kind, uint32_t seq)
{
	struct entered *e = find_entered(ss, kind, seq);

	if (e) {
		DL_DELETE(ss->entered, e);
		ss->in_flight -= e->bytes;
	}
	return e;
}

/* Without memory for the reason the ranks hear it now. */
static void end_step(struct pmi_server *s, const char *text,
		     const char *reason)
{
	s->held = strdup(reason);
	s->ops->end_step(s->arg, text, cause_exit_code(reason));
}

/* Ranks that wait in their slots hear of it now. */
static void note_failure(struct pmi_server *s, enum failure failure)
{
	s->failure = failure;
	engine_defer(s, DEFER_SLOTS);
}

/*
 * The user is told once a step: a node reports its first failure, and of those
 * that meet on their way to srun one goes on.
 */
void collective_report(struct pmi_server *s, const char *text, const char *reason)
{
	log_debug(s->log, "%s", text);
	if (s->failure != FAILURE_NONE)
		return;
	note_failure(s, s->ops->end_step ? FAILURE_ENDS_STEP : FAILURE_REPORTED);
	if (s->ops->end_step)
		end_step(s, text, reason);
	else
		requests_report(s, text);
}

void collective_report_fault(struct pmi_server *s, enum coll_kind kind,
			 uint32_t seq, const char *reason)
{
	char text[COLL_REASON_MAX + 64];

	snprintf(text, sizeof(text), "%s %u failed: %s", coll_kind_name(kind),
		 seq, reason);
	collective_report(s, text, reason);
}

static void answer_fault(struct rank_session *ss, const struct entered *e,
			 const char *reason)
{
	ss->told = true;
	answer_error(ss, &e->rq, PMI_RC_OTHER, "%s %u failed: %s",
		     coll_kind_name(e->kind), e->seq, reason);
}

bool collective_end_step(struct pmi_server *s, const char *text,
			 const char *reason)
{
	if (s->failure >= FAILURE_ENDS_STEP)
		return s->failure == FAILURE_ENDS_STEP;
	note_failure(s, FAILURE_ENDS_STEP);
	log_debug(s->log, "%s", text);
	if (s->ops->end_step)
		end_step(s, text, reason);
	else if (requests_end_step(s, text, cause_exit_code(reason)))
		s->failure = FAILURE_STEP_LIVES;
	return s->failure == FAILURE_ENDS_STEP;
}

/* The rank's collective has failed: say so, or hold the answer back. */
void collective_fail(struct rank_session *ss, enum coll_kind kind,
			 uint32_t seq, const char *reason)
{
	struct entered *e = find_entered(ss, kind, seq);

	if (!e)
		return;
	e->failed = true;
	if (ss->server->held)
		return;
	answer_fault(ss, e, reason);
	collective_forget(ss, e);
}

static void answer_held(struct rank_session *ss, const char *reason)
{
	struct entered *e, *next;

	DL_FOREACH_SAFE(ss->entered, e, next) {
		if (!e->failed)
			continue;
		if (e->kind == ENTERED_GROUP) {
			rank_fail(ss, "waits for a group's barrier that has failed");
			continue;
		}
		answer_fault(ss, e, reason);
		collective_forget(ss, e);
	}
}

void collective_answer_failed(struct pmi_server *s)
{
	char *reason = s->held;

	if (s->failure == FAILURE_ENDS_STEP)
		s->failure = FAILURE_STEP_LIVES;
	s->held = NULL;
	for (uint32_t i = 0; reason && i < s->nslots; i++)
		answer_held(&s->sessions[i], reason);
	free(reason);
}
