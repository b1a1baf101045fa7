/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of collectives, and what else libcoll asks for.
 * 
 * libcoll calls engine_coll_ops from inside its own calls, also before
 * coll_enter returns. Nothing here calls libcoll from an operation: answering a
 * rank never does, and a session that has to end waits for the settle.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "libcoll/fetch.h"
#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libengine/results.h"

/* ---- ends ---- */

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
	collective_report_fault(s, kind, seq, reason);
	for (uint32_t i = 0; i < s->nslots; i++)
		collective_fail(&s->sessions[i], kind, seq, reason);
	if (kind == COLL_PMIX)
		pmix_ended(s, seq, NULL, reason);
}

/* The result was there, but this node cannot give it to its ranks. */
static void fail_here(struct pmi_server *s, enum coll_kind kind, uint32_t seq,
		      int error)
{
	char reason[COLL_REASON_MAX];

	snprintf(reason, sizeof(reason), "node %s: %s", engine_node_name(s),
		 answer_text(error));
	fail_all(s, kind, seq, reason);
}

static void end_fence(struct pmi_server *s, uint32_t seq,
		      struct payload *result)
{
	int rc = results_publish_fence(&s->results, result, result == s->built);

	(void)engine_take_deferred(s, DEFER_TIDY);
	early_fenced(&s->early, seq);
	if (rc) {
		fail_here(s, COLL_FENCE, seq, rc);
		return;
	}
	for (uint32_t i = 0; i < s->nslots; i++) {
		struct entered *e = collective_take(&s->sessions[i], COLL_FENCE,
						 seq);

		if (e) {
			fetch_keep(&s->sessions[i], e->records);
			answer_ok(&s->sessions[i], &e->rq);
		}
		collective_free(e);
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
	if (ss->state == RANK_ACTIVE && collective_hold(ss, g)) {
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
		struct entered *e = collective_take(&s->sessions[i], COLL_GATHER,
						 seq);

		if (e)
			answer_gather(&s->sessions[i], e, g, len);
		free(e);
	}
	collective_unhold(s, g);
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
		engine_event(s, PMI_EVENT_UP, 0, msg->kind, msg->seq);
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

	engine_event(s, PMI_EVENT_UP, 0, kind, seq);
	if (kind == COLL_FENCE)
		image = image_build_fence_in(&memory, parts, error);
	else if (kind == COLL_PMIX)
		image = join(parts, error);
	else
		image = image_build_gather_in(&memory, parts, layout_ranks(l),
					      layout_order(l), error);
	engine_event(s, PMI_EVENT_DOWN, 0, kind, seq);
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
	engine_event(s, PMI_EVENT_DONE, 0, kind, seq);
}

static void on_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct pmi_server *s = arg;
	struct rank_session *ss = &s->sessions[slot];
	struct entered *e;

	if (fault) {
		collective_report_fault(s, COLL_RING, seq, fault->reason);
		collective_fail(ss, COLL_RING, seq, fault->reason);
	} else if ((e = collective_take(ss, COLL_RING, seq))) {
		answer_ring(ss, &e->rq, result);
		free(e);
	}
	engine_event(s, PMI_EVENT_DONE, 0, COLL_RING, seq);
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

const struct coll_ops engine_coll_ops = {
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
