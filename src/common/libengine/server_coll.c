/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between sessions and libcoll: ranks enter collectives, results are published
 * on the node and answered.
 *
 * libcoll calls server_coll_ops from inside its own calls, also before
 * coll_enter returns. Nothing here calls libcoll from an operation: answering a
 * rank never does, and a session that has to end waits for the settle.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libcoll/fetch.h"
#include "libengine/server_private.h"

/* A published gather and how many of this node's ranks still want it. */
struct gather_result {
	uint64_t offset;
	uint32_t holders;
	struct payload *keep; /* what it lies in, or NULL */
};

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

static void free_entered(struct entered *e)
{
	if (e)
		payload_unref(e->records);
	free(e);
}

static void forget_entered(struct rank_session *ss, struct entered *e)
{
	DL_DELETE(ss->entered, e);
	ss->in_flight -= e->bytes;
	free_entered(e);
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
	server_event(ss->server, PMI_EVENT_ENTER, ss->slot, kind, e->seq);
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

	forget_entered(ss, e);
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

static int hold_gather(struct rank_session *ss, struct gather_result *g)
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

static void put_gather(struct pmi_server *s, struct gather_result *g)
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
	put_gather(ss->server, h->gather);
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
		forget_entered(ss, ss->entered);
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

void collective_forget(struct rank_session *ss, struct entered *e)
{
	forget_entered(ss, e);
}

/* The rank's entry of a collective that has ended, taken out; or NULL. */
static struct entered *take_entered(struct rank_session *ss,
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
	s->ending = true;
	s->held = strdup(reason);
	s->ops->end_step(s->arg, text, cause_exit_code(reason));
}

/*
 * The user is told once a step: a node reports its first failure, and of those
 * that meet on their way to srun one goes on.
 */
void collective_report(struct pmi_server *s, const char *text, const char *reason)
{
	log_debug(s->log, "%s", text);
	if (!s->reported && s->ops->end_step)
		end_step(s, text, reason);
	else if (!s->reported)
		requests_report(s, text);
	s->reported = true;
}

static void report_fault(struct pmi_server *s, enum coll_kind kind,
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
	if (s->ending)
		return !s->endless;
	s->ending = true;
	s->reported = true;
	log_debug(s->log, "%s", text);
	if (s->ops->end_step)
		end_step(s, text, reason);
	else
		s->endless = requests_end_step(s, text, cause_exit_code(reason));
	return !s->endless;
}

/* The rank's collective has failed: say so, or hold the answer back. */
static void fail_entered(struct rank_session *ss, enum coll_kind kind,
			 uint32_t seq, const char *reason)
{
	struct entered *e = find_entered(ss, kind, seq);

	if (!e)
		return;
	e->failed = true;
	if (ss->server->held)
		return;
	answer_fault(ss, e, reason);
	forget_entered(ss, e);
}

/* A program of a rank has ended, and the rank goes on: so does the step. */
static void fail_series(struct pmi_server *s, uint32_t seq, const char *reason)
{
	char text[COLL_REASON_MAX + 64];

	snprintf(text, sizeof(text), "%s failed: %s", coll_kind_name(COLL_PMIX), reason);
	requests_note(s, text);
	pmix_ended(s, seq, NULL, reason);
}

static void fail_all(struct pmi_server *s, enum coll_kind kind, uint32_t seq,
		     const char *reason)
{
	report_fault(s, kind, seq, reason);
	slots_failed(s);
	for (uint32_t i = 0; i < s->nslots; i++)
		fail_entered(&s->sessions[i], kind, seq, reason);
	if (kind == COLL_PMIX)
		pmix_ended(s, seq, NULL, reason);
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
		forget_entered(ss, e);
	}
}

void collective_answer_failed(struct pmi_server *s)
{
	char *reason = s->held;

	s->endless = s->ending;
	s->held = NULL;
	for (uint32_t i = 0; reason && i < s->nslots; i++)
		answer_held(&s->sessions[i], reason);
	pmix_answer_failed(s);
	free(reason);
}

/* The result was there, but this node cannot give it to its ranks. */
static void fail_here(struct pmi_server *s, enum coll_kind kind, uint32_t seq,
		      int error)
{
	char reason[COLL_REASON_MAX];

	snprintf(reason, sizeof(reason), "node %s: %s", server_node_name(s),
		 answer_text(error));
	fail_all(s, kind, seq, reason);
}

static void end_fence(struct pmi_server *s, uint32_t seq,
		      struct payload *result)
{
	int rc = results_publish_fence(&s->results, result, result == s->built);

	s->fence_near = false;
	early_fenced(&s->early, seq);
	if (rc) {
		fail_here(s, COLL_FENCE, seq, rc);
		return;
	}
	for (uint32_t i = 0; i < s->nslots; i++) {
		struct entered *e = take_entered(&s->sessions[i], COLL_FENCE,
						 seq);

		if (e) {
			fetch_keep(&s->sessions[i], e->records);
			answer_ok(&s->sessions[i], &e->rq);
		}
		free_entered(e);
	}
}

/* The stride of the node's first rank that takes part; false: none does. */
static bool gather_stride(const struct pmi_server *s, uint32_t seq,
			  size_t *stride)
{
	for (uint32_t i = 0; i < s->nslots; i++) {
		const struct entered *e;

		DL_FOREACH(s->sessions[i].entered, e)
			if (e->kind == COLL_GATHER && e->seq == seq) {
				*stride = e->stride;
				return true;
			}
	}
	return false;
}

static void answer_gather(struct rank_session *ss, const struct entered *e,
			  struct gather_result *g, uint64_t len)
{
	/* A rank that has finalized meanwhile will never give the space back. */
	if (ss->state == RANK_ACTIVE && hold_gather(ss, g)) {
		answer_error(ss, &e->rq, PMI_RC_NOMEM, "%s",
			     answer_text(-ENOMEM));
		return;
	}
	answer_gathered(ss, &e->rq, g->offset, len);
}

static void answer_gathers(struct pmi_server *s, uint32_t seq,
			   struct gather_result *g, uint64_t len)
{
	g->holders = 1; /* ours, so that an early done= leaves it alone */
	for (uint32_t i = 0; i < s->nslots; i++) {
		struct entered *e = take_entered(&s->sessions[i], COLL_GATHER,
						 seq);

		if (e)
			answer_gather(&s->sessions[i], e, g, len);
		free(e);
	}
	put_gather(s, g);
}

static void end_gather(struct pmi_server *s, uint32_t seq,
		       struct payload *result)
{
	struct gather_result *g;
	uint64_t len;
	size_t stride;
	int rc = -ENOMEM;

	if (!gather_stride(s, seq, &stride))
		return;
	g = calloc(1, sizeof(*g));
	if (g)
		rc = results_publish_gather(&s->results, result, result == s->built,
					    layout_ranks(s->step->layout), stride,
					    &g->offset, &len, &g->keep);
	if (rc) {
		free(g);
		fail_here(s, COLL_GATHER, seq, rc);
		return;
	}
	answer_gathers(s, seq, g, len);
}

/* ---- what libcoll asks for ---- */

static void on_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
	struct pmi_server *s = arg;

	if (msg->type == COLL_MSG_UP && !msg->more)
		server_event(s, PMI_EVENT_UP, 0, msg->kind, msg->seq);
	buf_clear(&s->head);
	if (coll_msg_pack(&s->head, msg))
		s->ops->node_break(s->arg, position);
	else
		s->ops->node_send(s->arg, position, msg, s->head.data,
				  s->head.len, body);
}

static struct payload *image_memory(void *arg, size_t len)
{
	struct pmi_server *s = arg;

	return results_room(&s->results, len);
}

static struct payload *on_room(void *arg, enum coll_kind kind, uint32_t seq,
			       size_t size)
{
	struct pmi_server *s = arg;

	if (kind == COLL_PMIX) /* no rank maps it */
		return payload_new_in(s->step->budget, size);
	return results_place(&s->results, size);
}

static int on_extend(void *arg, struct payload *room, size_t len)
{
	struct pmi_server *s = arg;

	return results_extend(&s->results, room, len);
}

static struct payload *join(const struct payload_vec *parts, int *error)
{
	*error = -ENOMEM;
	return payload_vec_join(parts);
}

static struct payload *on_combine(void *arg, enum coll_kind kind, uint32_t seq,
				  const struct payload_vec *parts, int *error)
{
	struct pmi_server *s = arg;
	const struct layout *l = s->step->layout;
	const struct image_memory memory = { image_memory, s };
	struct payload *image;

	server_event(s, PMI_EVENT_UP, 0, kind, seq);
	if (kind == COLL_FENCE)
		image = image_build_fence_in(&memory, parts, error);
	else if (kind == COLL_PMIX)
		image = join(parts, error);
	else
		image = image_build_gather_in(&memory, parts, layout_ranks(l),
					      layout_order(l), error);
	server_event(s, PMI_EVENT_DOWN, 0, kind, seq);
	s->built = image;
	return image;
}

static void on_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct pmi_server *s = arg;

	if (fault && fault->series)
		fail_series(s, seq, fault->reason);
	else if (fault)
		fail_all(s, kind, seq, fault->reason);
	else if (kind == COLL_FENCE)
		end_fence(s, seq, result);
	else if (kind == COLL_PMIX)
		pmix_ended(s, seq, result, NULL);
	else
		end_gather(s, seq, result);
	s->built = NULL;
	server_event(s, PMI_EVENT_DONE, 0, kind, seq);
}

static void on_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct pmi_server *s = arg;
	struct rank_session *ss = &s->sessions[slot];
	struct entered *e;

	if (fault) {
		report_fault(s, COLL_RING, seq, fault->reason);
		fail_entered(ss, COLL_RING, seq, fault->reason);
	} else if ((e = take_entered(ss, COLL_RING, seq))) {
		answer_ring(ss, &e->rq, result);
		free(e);
	}
	server_event(s, PMI_EVENT_DONE, 0, COLL_RING, seq);
}

static void on_complete_subset(void *arg, uint32_t slot, uint64_t id,
			       struct payload *result, const char *why)
{
	struct pmi_server *s = arg;

	if (id & PMIX_SUBSET_ID)
		pmix_subset_ended(s, (uint32_t)id, result, why);
	else
		group_ended(&s->sessions[slot], (uint32_t)id, result, why);
}

static int on_fetch_asked(void *arg, uint64_t token,
			  const struct coll_fetch *what)
{
	return what->op == FETCH_PMIX ? pmix_fetch_asked(arg, token, what) :
				       fetch_asked(arg, token, what);
}

static void on_fetched(void *arg, uint64_t id, const struct coll_fetched *end)
{
	if (id & PMIX_FETCH_ID)
		pmix_fetch_ended(arg, id, end);
	else
		fetch_ended(arg, id, end);
}

const struct coll_ops server_coll_ops = {
	.send = on_send,
	.combine = on_combine,
	.room = on_room,
	.extend = on_extend,
	.complete = on_complete,
	.complete_ring = on_complete_ring,
	.complete_subset = on_complete_subset,
	.fetch_asked = on_fetch_asked,
	.fetched = on_fetched,
	.flooded = pmix_flooded,
};
