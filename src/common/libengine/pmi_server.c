/* SPDX-License-Identifier: BSD-3-Clause */
/* The server object and the entry points of its host. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libengine/results.h"

#define OUT_MAX (PMI2_HEADER_LEN + 2 * (size_t)PMI2_BODY_MAX)

/* ---- create, destroy ---- */

static int create_sessions(struct pmi_server *s)
{
	const uint32_t *ranks;

	ranks = layout_ranks_at(s->step->layout, s->step->position, &s->nslots);
	s->sessions = calloc(s->nslots, sizeof(*s->sessions));
	if (!s->sessions)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nslots; i++) {
		struct rank_session *ss = &s->sessions[i];

		ss->server = s;
		ss->slot = i;
		ss->rank = ranks[i];
		buf_init(&ss->input, PMI_INPUT_MAX);
		buf_init(&ss->aside, PMI_INPUT_MAX);
		buf_init(&ss->pending, PMI_PENDING_MAX);
		ss->input.budget = ss->aside.budget = s->step->budget;
		ss->pending.budget = s->step->budget;
	}
	return 0;
}

static bool is_valid(const struct pmi_step *step)
{
	return step->layout && step->jobid && step->node_names &&
	       step->position < layout_nodes(step->layout);
}

static struct pmi_server *new_server(const struct pmi_step *step,
				     struct region_writer *region,
				     const struct pmi_host_ops *ops, void *arg,
				     const struct log_hook *log)
{
	struct pmi_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->step = step;
	s->ops = ops;
	s->arg = arg;
	s->log = log;
	s->fetches.due = UINT64_MAX;
	results_init(&s->results, region);
	early_init(&s->early, step->hash_seed, step->budget);
	pmi_message_init(&s->message);
	buf_init(&s->out, OUT_MAX);
	buf_init(&s->head, PMI_NODE_HEAD_MAX);
	return s;
}

int pmi_server_create(struct pmi_server **out, const struct pmi_step *step,
		      struct region_writer *region,
		      const struct pmi_host_ops *ops, void *arg,
		      const struct log_hook *log)
{
	const struct coll_options options = {
		.tree_width = step->tree_width,
		.piece = step->piece,
		.budget = step->budget,
	};
	struct pmi_server *s;
	int rc;

	if (!is_valid(step))
		return -EINVAL;
	s = new_server(step, region, ops, arg, log);
	if (!s)
		return -ENOMEM;
	rc = create_sessions(s);
	if (!rc)
		rc = coll_create(&s->coll, step->layout, step->position,
				 &options, &engine_coll_ops, s);
	if (!rc && step->preput_len)
		rc = results_publish_records(&s->results, step->preput,
					     step->preput_len);
	if (rc) {
		pmi_server_destroy(s);
		return rc;
	}
	*out = s;
	return 0;
}

void pmi_server_destroy(struct pmi_server *s)
{
	if (!s)
		return;
	s->pmix.service = PMIX_SERVICE_LOST; /* nothing more is sent to it */
	for (uint32_t i = 0; s->sessions && i < s->nslots; i++) {
		rank_drop(&s->sessions[i]);
		requests_drop(&s->sessions[i], true);
		buf_free(&s->sessions[i].input);
		buf_free(&s->sessions[i].aside);
	}
	fetches_free(s);
	if (s->coll)
		coll_destroy(s->coll);
	results_free(&s->results);
	early_free(&s->early);
	payload_unref(s->group_result);
	attrs_free(s);
	pmix_free(s);
	admissions_free(s);
	free(s->sessions);
	free(s->topology.path);
	free(s->held);
	pmi_message_free(&s->message);
	buf_free(&s->out);
	buf_free(&s->head);
	free(s);
}

/* Ranks neither wait for a collective nor leave: what can wait may be done. */
static bool is_quiet(const struct pmi_server *s)
{
	return coll_pending(s->coll) == 0 && !s->leaving;
}

static void leave_closing(struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].state == RANK_CLOSING)
			rank_leave_pmi(&s->sessions[i], "left");
}

/*
 * Do deferred work, and the work that this defers in turn: ends of sessions that broke the
 * rules, new entries in slots, requests of other nodes.
 */
static void settle(struct pmi_server *s)
{
	do {
		bool leave = engine_take_deferred(s, DEFER_LEAVE);

		if (leave)
			leave_closing(s);
		if (leave || engine_is_deferred(s, DEFER_SLOTS))
			slots_update(s);
		fetches_look(s);
	} while (engine_is_deferred(s, DEFER_LEAVE) ||
		 engine_is_deferred(s, DEFER_SLOTS));
	payload_unref(s->group_result);
	s->group_result = NULL;
	slots_flush(s);
	if (!s->ops->tidy_later)
		results_tidy(&s->results);
	else if (results_untidy(&s->results) && is_quiet(s))
		s->ops->tidy_later(s->arg, engine_is_deferred(s, DEFER_TIDY));
}

/* ---- ranks ---- */

void pmi_server_client_open(struct pmi_server *s, uint32_t slot)
{
	if (slot < s->nslots)
		rank_open(&s->sessions[slot]);
}

static void swap_input(struct rank_session *ss)
{
	struct buf b = ss->input;

	ss->input = ss->aside;
	ss->aside = b;
}

/* A part of a message is its writer's: the owner's waits for the rest. */
void pmi_server_client_writes(struct pmi_server *s, uint32_t slot, uint32_t pid)
{
	struct rank_session *ss = &s->sessions[slot];

	if (slot >= s->nslots || pid == ss->writer)
		return;
	if (ss->writer == ss->owner)
		swap_input(ss);
	buf_clear(&ss->input);
	if (pid == ss->owner)
		swap_input(ss);
	ss->writer = pid;
}

void pmi_server_client_input(struct pmi_server *s, uint32_t slot,
			     const void *data, size_t len)
{
	if (slot >= s->nslots)
		return;
	rank_input(&s->sessions[slot], data, len);
	if (s->sessions[slot].slot_use == RANK_SLOT_ENTERS)
		engine_defer(s, DEFER_SLOTS);
	settle(s);
}

bool pmi_server_client_refused(const struct pmi_server *s, uint32_t slot)
{
	return slot < s->nslots &&
	       (s->sessions[slot].refused_inits || s->sessions[slot].refused_waits);
}

void pmi_server_client_answer_refused(struct pmi_server *s, uint32_t slot)
{
	if (!pmi_server_client_refused(s, slot))
		return;
	rank_answer_refused(&s->sessions[slot]);
	settle(s);
}

bool pmi_server_client_is_midway(const struct pmi_server *s, uint32_t slot)
{
	return slot < s->nslots && s->sessions[slot].input.len > 0;
}

/* The rank was told that a collective has failed, and has not ended well. */
static void give_up(struct rank_session *ss)
{
	struct pmi_server *s = ss->server;

	if (ss->told && !ss->ended && engine_notices(s, NOTICE_GAVE_UP))
		requests_gave_up(s);
}

/* By SIGPIPE, or with the exit code that a shell or Python makes of it. */
static bool wrote_in_vain(const struct pmi_exit *end)
{
	int status = end ? end->status : 0;

	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGPIPE;
	return WIFEXITED(status) && (WEXITSTATUS(status) == 128 + SIGPIPE ||
				     WEXITSTATUS(status) == 256 - SIGPIPE);
}

/*
 * The task runs programs, one of which has finalized PMI, and it fails: perhaps because
 * the next program printed an error and exited.
 */
static bool may_have_run_another(const struct rank_session *ss, const struct pmi_exit *end)
{
	return end && end->status && !end->by_launcher && end->process && ss->owner &&
	       end->process != ss->owner;
}

/* MPICH shuts PMI_FD down when it finalizes, for all programs of the task. */
static void tell_second_program(struct rank_session *ss, const struct pmi_exit *end)
{
	bool failed = wrote_in_vain(end);
	struct pmi_server *s = ss->server;
	char text[ANSWER_TEXT_MAX];

	if (ss->state != RANK_GONE || ss->before != RANK_FINALIZED ||
	    (!failed && !may_have_run_another(ss, end)) ||
	    !engine_notices(s, NOTICE_SECOND_PROGRAM))
		return;
	snprintf(text, sizeof(text),
		 "%s: a program of the task had closed PMI_FD, as MPICH does for all of them, and %s: start each program by an srun of its own",
		 ss->why,
		 failed ? "the next one could not use it" :
			  "a later one that needs PMI could not use it");
	requests_report(s, text);
}

static bool is_unused(const struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (!rank_is_unused(&s->sessions[i]))
			return false;
	return true;
}

/*
 * The rank has failed, and MPICH without PMI_FD may be the reason. A rank that has finalized
 * PMIx has run another MPI program before: then only MPICH's own exit code counts.
 */
static bool may_lack_fd(const struct rank_session *ss, const struct pmi_exit *end)
{
	bool after_pmix = ss->pmix == RANK_PMIX_FINALIZED &&
			  cause_may_lack_fd(end, WRAPPER_PERHAPS);

	return end->status && !end->by_launcher && (ss->unstarted || after_pmix) &&
	       (end->closed_by || end->lacked_fd) && is_unused(ss->server);
}

/*
 * A wrapper, as csh, has closed PMI_FD before it started a program of MPICH; or it may have
 * closed PMI_FD in that program only. Wrappers are the same on all nodes: the first node
 * reports its first one.
 */
static void tell_closer(struct rank_session *ss, const struct pmi_exit *end)
{
	struct pmi_server *s = ss->server;
	char text[ANSWER_TEXT_MAX];

	if (s->step->position || !end || !may_lack_fd(ss, end) ||
	    !engine_notices(s, NOTICE_CLOSED_FD))
		return;
	if (end->closed_by)
		snprintf(text, sizeof(text),
			 "%s: %s had closed PMI_FD, without which MPICH cannot start: start MPI programs from srun itself or from sh",
			 ss->why, end->closed_by);
	else
		snprintf(text, sizeof(text), "%s: " CAUSE_LACKS_FD, ss->why);
	control_printable(text);
	requests_report(s, text);
}

/* `well`: nobody says that the rank has failed. */
static void process_ended(struct rank_session *ss, const char *how, bool well,
			  const struct pmi_exit *end)
{
	struct pmi_server *s = ss->server;
	bool leaves = !rank_is_finalized(ss);
	bool closed = ss->state == RANK_GONE || (end && end->lived_on);

	pmix_tell_none(s);
	slots_take_own(ss); /* the last entry of its slot counts */
	rank_end(ss, how);
	if (closed)
		tell_second_program(ss, end);
	tell_closer(ss, end);
	if (leaves && s->step->spawned)
		engine_tell_spawner(ss, well);
	else if (ss->spawner)
		requests_ended(ss);
}

void pmi_server_client_hung_up(struct pmi_server *s, uint32_t slot)
{
	if (slot >= s->nslots)
		return;
	slots_take_own(&s->sessions[slot]);
	if (s->sessions[slot].slot_use == RANK_SLOT_ENTERS)
		s->sessions[slot].slot_use = RANK_SLOT_READ;
	engine_defer(s, DEFER_SLOTS);
	settle(s);
}

void pmi_server_client_eof(struct pmi_server *s, uint32_t slot)
{
	if (slot >= s->nslots)
		return;
	if (!rank_is_finalized(&s->sessions[slot]))
		give_up(&s->sessions[slot]);
	slots_take_own(&s->sessions[slot]);
	rank_leave_pmi(&s->sessions[slot], "closed PMI_FD");
	engine_defer(s, DEFER_SLOTS);
	settle(s);
}

void pmi_server_client_exit(struct pmi_server *s, uint32_t slot,
			    const struct pmi_exit *end)
{
	struct rank_session *ss;
	char how[CAUSE_MAX];
	bool well;

	if (slot >= s->nslots || s->sessions[slot].ended)
		return;
	ss = &s->sessions[slot];
	well = end ? end->status == 0 : rank_is_finalized(ss);
	cause_text(end, how);
	if (!well)
		give_up(ss);
	/* A process that still has PMI_FD must not wait for an answer. */
	if (rank_is_live(ss))
		s->ops->client_close(s->arg, slot);
	process_ended(ss, how, well, end);
	if (!well && !(end && end->by_launcher))
		pmix_rank_failed(ss, end != NULL);
	engine_defer(s, DEFER_SLOTS);
	settle(s);
}

bool pmi_server_client_is_outlived(const struct pmi_server *s, uint32_t slot,
				   uint32_t process)
{
	const struct rank_session *ss = slot < s->nslots ? &s->sessions[slot] : NULL;

	return ss && ss->finalized && process && ss->owner && process != ss->owner;
}

bool pmi_server_client_end_matters(const struct pmi_server *s, uint32_t slot)
{
	return slot < s->nslots && (!rank_is_finalized(&s->sessions[slot]) ||
				    s->sessions[slot].told);
}

void pmi_server_use_slots(struct pmi_server *s, struct slots *slots,
			  int wake_fd)
{
	s->slots = slots;
	s->wake_fd = wake_fd;
}

void pmi_server_slots_input(struct pmi_server *s)
{
	engine_defer(s, DEFER_SLOTS);
	settle(s);
}

bool pmi_server_tidy(struct pmi_server *s)
{
	return is_quiet(s) && results_tidy(&s->results);
}

/* ---- PMIx ---- */

int pmi_server_pmix_input(struct pmi_server *s, struct payload *message)
{
	int rc = pmix_input(s, message);

	settle(s);
	return rc;
}

void pmi_server_pmix_lost(struct pmi_server *s, const char *why)
{
	pmix_lost(s, why);
	settle(s);
}

void pmi_server_holder_found(struct pmi_server *s, int found)
{
	admission_found(s, found);
	settle(s);
}

/* ---- neighbours ---- */

const struct tree_place *pmi_server_place(const struct pmi_server *s)
{
	return coll_place(s->coll);
}

int pmi_server_node_input(struct pmi_server *s, uint32_t from,
			  const struct coll_msg *msg, struct payload *body)
{
	int rc;

	if (msg->type == COLL_MSG_DOWN)
		engine_event(s, PMI_EVENT_DOWN, 0, msg->kind, msg->seq);
	rc = coll_receive(s->coll, from, msg, body && body->len ? body : NULL);
	settle(s);
	return rc;
}

struct payload *pmi_server_node_room(struct pmi_server *s, uint32_t from,
				     const struct coll_msg *msg, size_t len)
{
	return coll_body_room(s->coll, from, msg, len);
}

void pmi_server_link_up(struct pmi_server *s, uint32_t position)
{
	pmix_tell_none(s);
	coll_link_up(s->coll, position);
	settle(s);
}

void pmi_server_link_lost(struct pmi_server *s, uint32_t position, bool in_order,
			  const char *why)
{
	coll_link_lost(s->coll, position, in_order, why);
	settle(s);
}

/* ---- srun ---- */

int pmi_server_control_input(struct pmi_server *s, const void *data, size_t len)
{
	int rc = requests_reply(s, data, len);

	settle(s);
	return rc;
}

void pmi_server_control_lost(struct pmi_server *s, const char *why)
{
	s->srun_lost = true;
	requests_fail_all(s, why);
	settle(s);
}

/* ---- fetches ---- */

void pmi_server_fetch_due(struct pmi_server *s)
{
	fetches_expire(s);
	settle(s);
}

void pmi_server_answer_failed(struct pmi_server *s)
{
	collective_answer_failed(s);
	pmix_answer_failed(s);
	settle(s);
}

/* ---- topology ---- */

void pmi_server_topology(struct pmi_server *s, const char *path)
{
	topology_known(s, path);
	pmix_topology_known(s);
	settle(s);
}

/* ---- status ---- */

bool pmi_server_used(const struct pmi_server *s)
{
	return s->used;
}

size_t pmi_server_pending(const struct pmi_server *s)
{
	return coll_pending(s->coll);
}
