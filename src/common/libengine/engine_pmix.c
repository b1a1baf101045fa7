/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx clients of the node, by way of pmi2x-pmixd (pmix_msg.h): which namespace there
 * is, who is connected, and what all nodes are told. Whatever comes is a stranger's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"

#define EVENTS_MAX 64 /* events kept for a pmixd that does not serve yet */

/* The first client of the node has come. */
static void tell_failed(struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].failed)
			pmix_rank_failed(&s->sessions[i], true);
}

void pmix_free(struct pmi_server *s)
{
	pmix_free_entered(s);
	pmix_free_fetches(s);
	payload_vec_clear(&s->pmix.events);
}

/* ---- messages ---- */

static void nspace_of(const struct pmi_server *s, const char *name,
		      const char *parent, struct pmix_nspace *out)
{
	const struct pmi_step *step = s->step;

	*out = (struct pmix_nspace){
		.name = name,
		.layout = (struct layout *)step->layout,
		.position = step->position,
		.node_names = (const char **)step->node_names,
		.universe_size = step->universe_size,
		.app_sizes = (uint32_t *)step->app_sizes,
		.app_numbers = (uint32_t *)step->app_numbers,
		.napps = step->app_sizes ? step->napps : 0,
		.uid = s->pmix.uid,
		.gid = s->pmix.gid,
		.parent = step->spawner_jobid ? parent : NULL,
		.topology = s->topology.path,
	};
}

static void send_pmi(struct pmi_server *s)
{
	const struct pmix_msg m = { .type = PMIX_MSG_PMI, .rank = PMIX_NO_RANK };

	pmix_send_message(s, &m, NULL);
}

/* Tell pmixd before the process is told: what the process starts comes later. */
void pmix_tell_pmi(struct pmi_server *s)
{
	bool first = !s->pmix.pmi;

	s->pmix.pmi = true;
	if (first && s->pmix.nspace == PMIX_NSPACE_SENT)
		send_pmi(s);
}

static int send_nspace(struct pmi_server *s)
{
	char name[PMIX_NSPACE_NAME_MAX + 1], parent[PMIX_NSPACE_NAME_MAX + 1];
	struct pmix_msg m = { .type = PMIX_MSG_NSPACE, .rank = PMIX_NO_RANK };
	struct payload *data = NULL;
	struct pmix_nspace n;
	struct buf b;
	int rc;

	pmix_nspace_name(name, s->step->jobid);
	pmix_nspace_name(parent, s->step->spawner_jobid);
	nspace_of(s, name, parent, &n);
	buf_init(&b, PMIX_MSG_BYTES_MAX);
	rc = pmix_nspace_pack(&b, &n);
	if (!rc)
		data = payload_take(&b);
	buf_free(&b);
	if (!data)
		return rc ? rc : -ENOMEM;
	m.len = data->len;
	m.number = s->pmix.stall_ms;
	pmix_send_message(s, &m, data);
	payload_unref(data);
	s->pmix.nspace = PMIX_NSPACE_SENT;
	if (s->pmix.pmi)
		send_pmi(s);
	return 0;
}

static int on_hello(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	if (m->number != PMIX_MSG_VERSION) {
		log_error(s->log, "pmi2x-pmixd of node %s has version %u of the protocol, this agent %u: install both from the same release",
			  engine_node_name(s), m->number, PMIX_MSG_VERSION);
		return -EPROTO;
	}
	s->pmix.service = PMIX_SERVICE_HERE;
	if (!topology_want(s))
		return send_nspace(s);
	s->pmix.nspace = PMIX_NSPACE_WAITS;
	return 0;
}

void pmix_topology_known(struct pmi_server *s)
{
	bool waits = s->pmix.nspace == PMIX_NSPACE_WAITS;
	char why[WHY_MAX];

	if (!waits)
		return;
	s->pmix.nspace = PMIX_NSPACE_DUE;
	if (!pmix_is_served(s) || !send_nspace(s))
		return;
	snprintf(why, sizeof(why), "node %s cannot serve PMIx: out of memory",
		 engine_node_name(s));
	pmix_lost(s, why);
}

static void send_event(struct pmi_server *s, struct payload *event)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_EVENT, .rank = PMIX_NO_RANK, .len = event->len,
	};

	pmix_send_message(s, &m, event);
}

/* Keep the event: PMIx clients may start later, and must get it then. */
void pmix_flooded(void *server, struct payload *event)
{
	struct pmi_server *s = server;

	if (!pmix_is_served(s))
		return;
	if (s->pmix.service == PMIX_SERVICE_READY)
		send_event(s, event);
	else if (s->pmix.events.count < EVENTS_MAX)
		(void)payload_vec_add(&s->pmix.events, event);
}

static void send_events(struct pmi_server *s)
{
	for (size_t i = 0; i < s->pmix.events.count; i++)
		send_event(s, s->pmix.events.items[i]);
	payload_vec_clear(&s->pmix.events);
}

static int on_ready(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	if (s->pmix.service != PMIX_SERVICE_READY)
		pmix_pass_on_fetches(s);
	s->pmix.service = PMIX_SERVICE_READY;
	send_events(s);
	return 0;
}

static int on_refused(struct pmi_server *s, const struct pmix_msg *m,
		      struct payload *message)
{
	char text[PMIX_MSG_TEXT_MAX + 1], why[COLL_REASON_MAX];

	pmix_copy_text(m, text);
	snprintf(why, sizeof(why), "node %.64s cannot serve PMIx: %.384s",
		 engine_node_name(s), text);
	requests_report(s, why);
	pmix_lost(s, why);
	return 0;
}

static void tell_how_left(const struct rank_session *ss, char why[WHY_MAX])
{
	snprintf(why, WHY_MAX,
		 "the PMIx program of rank %u (node %.64s) has ended without PMIx_Finalize",
		 ss->rank, engine_node_name(ss->server));
}

/*
 * The program that the rank ran before enters nothing more. Ranks that still run it would
 * wait for that, or take what this one enters for it.
 */
static void begin_program(struct rank_session *ss, bool missed)
{
	char why[WHY_MAX];

	if (ss->pmix == RANK_PMIX_ACTIVE)
		tell_how_left(ss, why);
	else
		snprintf(why, sizeof(why),
			 "rank %u (node %.64s) has finalized that PMIx program and started its next one",
			 ss->rank, engine_node_name(ss->server));
	if (ss->pmix != RANK_PMIX_NONE)
		coll_next_series(ss->server->coll, ss->slot,
				 missed || ss->pmix == RANK_PMIX_ACTIVE, why);
}

static int on_lost(struct pmi_server *s, const struct pmix_msg *m,
		   struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);
	char why[WHY_MAX];

	if (!ss || ss->ended || ss->pmix != RANK_PMIX_ACTIVE)
		return 0;
	tell_how_left(ss, why);
	coll_end_series(s->coll, ss->slot, why);
	return 0;
}

/* In a user namespace a process may have another number for its user. */
static int on_user(struct pmi_server *s, const struct pmix_msg *m,
		   struct payload *message)
{
	const struct rank_session *ss = pmix_rank_of(s, m);
	char text[WHY_MAX];

	if (!ss || !engine_notices(s, NOTICE_OTHER_USER))
		return 0;
	snprintf(text, sizeof(text),
		 "rank %u (node %.64s): PMIx refuses its program, which runs as user %u, and the job as user %u: in a user namespace, map the job's user to itself",
		 ss->rank, engine_node_name(s), m->number, s->pmix.uid);
	requests_note(s, text);
	return 0;
}

static int on_connected(struct pmi_server *s, const struct pmix_msg *m,
			struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);
	bool first;

	if (!ss || ss->ended || ss->pmix == RANK_PMIX_LOST)
		return 0;
	first = !pmix_find_client(s);
	begin_program(ss, m->number != 0);
	ss->pmix = RANK_PMIX_ACTIVE;
	ss->pmix_programs++;
	ss->pmix_known = m->len == sizeof(ss->pmix_socket);
	if (ss->pmix_known)
		memcpy(ss->pmix_socket, m->data, m->len);
	engine_started(s, ss);
	if (first)
		tell_failed(s);
	return 0;
}

static int on_finalized(struct pmi_server *s, const struct pmix_msg *m,
			struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);

	if (!ss || ss->pmix != RANK_PMIX_ACTIVE)
		return 0;
	engine_event(s, PMI_EVENT_FINALIZE, ss->slot, 0, 0);
	ss->pmix = RANK_PMIX_FINALIZED;
	s->leaving = true;
	return 0;
}

#define NO_ABORT_TEXT "N/A" /* of Open MPI, which has none */

/*
 * The rank that aborts ends only when it is answered: its end does not come before its
 * reason.
 */
static int on_abort(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	const struct pmix_msg answer = {
		.type = PMIX_MSG_ABORTED, .id = m->id, .rank = PMIX_NO_RANK,
	};
	struct rank_session *ss = pmix_rank_of(s, m);
	char text[PMIX_MSG_TEXT_MAX + 1];

	pmix_copy_text(m, text);
	if (strcmp(text, NO_ABORT_TEXT) == 0)
		text[0] = '\0';
	if (ss)
		requests_abort(ss, true, m->status, text);
	pmix_send_message(s, &answer, NULL);
	return 0;
}

static int on_event(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	struct payload *event = payload_slice(message, message->len - m->len, m->len);
	int rc = event ? coll_flood(s->coll, event) : -ENOMEM;

	engine_use(s);
	payload_unref(event);
	if (rc)
		log_error(s->log, "node %s cannot send a PMIx event of %zu bytes to the other nodes: %s",
			  engine_node_name(s), m->len, strerror(-rc));
	return 0;
}

static int on_log(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message)
{
	char text[PMIX_MSG_TEXT_MAX + 1];

	pmix_copy_text(m, text);
	log_line(s->log, m->number <= LOG_LEVEL_DEBUG ? m->number : LOG_LEVEL_DEBUG,
		 "node %s: %s", engine_node_name(s), text);
	return 0;
}

static const struct {
	int (*handle)(struct pmi_server *s, const struct pmix_msg *m,
		      struct payload *message);
	bool first; /* comes before all others, and no more later */
} messages[PMIX_MSG_TYPES] = {
	[PMIX_MSG_HELLO] = { on_hello, true },
	[PMIX_MSG_READY] = { on_ready },
	[PMIX_MSG_REFUSED] = { on_refused },
	[PMIX_MSG_CONNECTED] = { on_connected },
	[PMIX_MSG_FINALIZED] = { on_finalized },
	[PMIX_MSG_LOST] = { on_lost },
	[PMIX_MSG_ASKS] = { pmix_on_asks },
	[PMIX_MSG_USER] = { on_user },
	[PMIX_MSG_ADMIT] = { admission_on_admit },
	[PMIX_MSG_ENTER] = { pmix_on_enter },
	[PMIX_MSG_FETCH] = { pmix_on_fetch },
	[PMIX_MSG_FETCHED] = { pmix_on_fetched },
	[PMIX_MSG_NAMES] = { pmix_on_names },
	[PMIX_MSG_SPAWN] = { pmix_on_spawn },
	[PMIX_MSG_ABORT] = { on_abort },
	[PMIX_MSG_EVENT] = { on_event },
	[PMIX_MSG_LOG] = { on_log },
};

/* ---- the host's calls ---- */

void pmi_server_use_pmix(struct pmi_server *s, uint32_t uid, uint32_t gid,
			 uint32_t stall_ms)
{
	s->pmix.stall_ms = stall_ms;
	s->pmix.service = PMIX_SERVICE_EXPECTED;
	s->pmix.uid = uid;
	s->pmix.gid = gid;
}

void pmi_server_no_pmix(struct pmi_server *s, const char *why)
{
	s->pmix.none = why;
}

/* Ranks that use PMI are waited for by others that do. */
void pmix_tell_none(struct pmi_server *s)
{
	if (s->pmix.none && !s->used)
		coll_expire(s->coll, COLL_PMIX, coll_ended(s->coll, COLL_PMIX),
			    s->pmix.none);
}

int pmix_input(struct pmi_server *s, struct payload *message)
{
	struct pmix_msg m;
	int rc = -EPROTO;

	if (s->pmix.service == PMIX_SERVICE_LOST)
		return 0;
	if (pmix_msg_unpack(&m, message->data, message->len) ==
		    (int64_t)message->len &&
	    m.nspace == 0 && messages[m.type].handle &&
	    messages[m.type].first == (s->pmix.service < PMIX_SERVICE_HERE))
		rc = messages[m.type].handle(s, &m, message);
	return rc;
}

/* A pmixd that serves no more has lost its clients, too. */
static void lose_ranks(struct pmi_server *s, const char *why)
{
	for (uint32_t i = 0; i < s->nslots; i++) {
		struct rank_session *ss = &s->sessions[i];

		if (ss->pmix == RANK_PMIX_ACTIVE && !ss->ended)
			pmix_lose_rank(ss, why);
	}
}

static bool any_rank_left(const struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (!s->sessions[i].ended)
			return true;
	return false;
}

void pmix_lost(struct pmi_server *s, const char *why)
{
	bool came = s->pmix.service >= PMIX_SERVICE_HERE;

	if (!pmix_is_served(s))
		return;
	s->pmix.service = PMIX_SERVICE_LOST;
	if (came && any_rank_left(s)) {
		coll_expire(s->coll, COLL_PMIX, coll_ended(s->coll, COLL_PMIX), why);
		lose_ranks(s, why);
	}
	pmix_fail_fetches(s, why);
	pmix_free(s);
}
