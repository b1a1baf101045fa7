/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives messages and events to who handles them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/notify.h"
#include "helpers/pmixd/server_internal.h"
#include "libio/clock.h"

int server_create(struct server **out, const struct server_options *o,
		  const struct library *library, struct events *events,
		  struct link *link, const struct log_hook *log)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = o;
	s->library = library;
	s->events = events;
	s->link = link;
	s->log = log;
	*out = s;
	return 0;
}

bool server_is_ready(const struct server *s)
{
	return s->jobs != NULL;
}

void server_old_client(struct server *s)
{
	s->old_client = true;
	for (struct job *j = s->jobs; j; j = j->next)
		collect_old_client(j->collect);
}

int64_t server_now(void)
{
	return (int64_t)clock_ms(CLOCK_MONOTONIC);
}

int server_full(struct server *s, const char *what, uint32_t max)
{
	if (!s->full_told)
		log_error(s->log, "a PMIx client is refused: there are %u %s, which is the limit",
			  max, what);
	s->full_told = true;
	return -ENOSPC;
}

int64_t server_deadline(uint32_t ms)
{
	return ms == EVENT_NO_TIMEOUT ? SERVER_NEVER : server_now() + ms;
}

struct job *server_job(const struct server *s, uint32_t number)
{
	struct job *j = s->jobs;

	while (j && j->number != number)
		j = j->next;
	return j;
}

struct job *server_job_named(const struct server *s, const char *name)
{
	struct job *j = s->jobs;

	while (j && strcmp(j->nspace.name, name))
		j = j->next;
	return j;
}

pmix_status_t server_status(int error)
{
	switch (error) {
	case 0:
		return PMIX_SUCCESS;
	case -ENOENT:
		return PMIX_ERR_NOT_FOUND;
	case -ETIMEDOUT:
		return PMIX_ERR_TIMEOUT;
	case -ENOTSUP:
	case -ENOSYS:
		return PMIX_ERR_NOT_SUPPORTED;
	case -ENOMEM:
		return PMIX_ERR_NOMEM;
	case -EEXIST:
		return PMIX_ERR_DUPLICATE_KEY;
	case -EINVAL:
		return PMIX_ERR_BAD_PARAM;
	case -ENOSPC:
	case -ENOBUFS:
	case -EMSGSIZE:
		return PMIX_ERR_OUT_OF_RESOURCE;
	case -ENOTCONN:
		return PMIX_ERR_UNREACH;
	case -ECONNRESET:
		return PMIX_ERR_LOST_CONNECTION;
	default:
		return PMIX_ERROR;
	}
}

void server_answer(const struct callback *callback, pmix_status_t status, char *data,
		   size_t len)
{
	if (callback->infos)
		callback->infos(status, NULL, 0, callback->arg, NULL, NULL);
	else if (callback->status)
		callback->status(status, callback->arg);
	else if (callback->found)
		callback->found(status, NULL, 0, callback->arg);
	else if (callback->spawned)
		callback->spawned(status, NULL, callback->arg);
	else if (callback->data)
		callback->data(status, data, len, callback->arg, data ? free : NULL, data);
}

/* ---- what the agent is told ---- */

static int tell(struct server *s, const struct job *j, const struct event *e,
		enum pmix_msg_type type)
{
	const struct pmix_msg m = {
		.type = type,
		.nspace = j->number,
		.rank = e->rank,
		.data = e->data,
		.len = e->len,
	};

	return link_send(s->link, &m);
}

/* ---- messages ---- */

/*
 * Delivers an event of another node: an event that is invalid may be of another
 * release.
 */
static int deliver(const struct server *s, const struct pmix_msg *m)
{
	int rc = notify_deliver(s->library, m->data, m->len);

	if (rc)
		log_error(s->log, "an event of another node cannot be read: %s",
			  strerror(-rc));
	return 0;
}

/*
 * Tell libpmix of a rank's death, so that it notifies clients that asked for it, on all
 * nodes.
 */
static int tell_death(struct server *s, const struct job *j, uint32_t rank)
{
	struct notification n = {
		.code = PMIX_ERR_PROC_ABORTED,
		.source.rank = rank,
		.range = PMIX_RANGE_NAMESPACE,
	};
	struct event e = { .rank = rank };
	struct info_list infos = {};
	int rc;

	strncpy(n.source.nspace, j->nspace.name, PMIX_MAX_NSLEN);
	info_add_proc(&infos, PMIX_EVENT_AFFECTED_PROC, j->nspace.name, rank);
	n.info = infos.items;
	n.ninfo = infos.count;
	rc = infos.failed ? -ENOMEM : notify_pack(s->library, &n, &e.data, &e.len);
	rc = rc ? rc : notify_deliver(s->library, e.data, e.len);
	rc = rc ? rc : tell(s, j, &e, PMIX_MSG_EVENT);
	info_free(&infos);
	free(e.data);
	return rc;
}

static int gone(struct server *s, const struct pmix_msg *m)
{
	struct job *j = server_job(s, m->nspace);
	int rc = server_gone(s, m);

	if (j)
		server_rank_gone(j, m->rank);
	return rc || !j || !m->number ? rc : tell_death(s, j, m->rank);
}

static int meet_pmi(struct server *s, const struct pmix_msg *m)
{
	struct job *j = server_job(s, m->nspace);

	if (j)
		j->pmi = true;
	return 0;
}

int server_message(struct server *s, const struct pmix_msg *m, struct payload *message)
{
	switch (m->type) {
	case PMIX_MSG_NSPACE:
		return server_add_job(s, m);
	case PMIX_MSG_DROP:
		return server_drop_job(s, m);
	case PMIX_MSG_ENDED:
		return server_ended(s, m, message);
	case PMIX_MSG_FETCHED:
		return server_fetched(s, m);
	case PMIX_MSG_FETCH:
		return server_fetch(s, m);
	case PMIX_MSG_NAMED:
		return server_named(s, m);
	case PMIX_MSG_SPAWNED:
		return server_spawned(s, m);
	case PMIX_MSG_ABORTED:
		return server_aborted(s, m);
	case PMIX_MSG_GONE:
		return gone(s, m);
	case PMIX_MSG_PMI:
		return meet_pmi(s, m);
	case PMIX_MSG_EVENT:
		return deliver(s, m);
	default:
		return -EPROTO;
	}
}

/* ---- events ---- */

/* The namespace is not served here, or no more: answer libpmix with an error. */
static int of_nobody(struct server *s, struct event *e)
{
	int rc = e->type == EVENT_GET ? server_keep_remote_nspace(s, e->nspace) : -ENOENT;

	if (!rc)
		return server_get(s, NULL, e);
	server_answer(&e->callback, server_status(rc), NULL, 0);
	return 0;
}

int server_event(struct server *s, struct event *e)
{
	bool crosses = e->xns && e->type != EVENT_GROUP;
	struct job *j = crosses ? server_job_of(s, e) : server_job_named(s, e->nspace);

	if (!j)
		return of_nobody(s, e);
	if (crosses)
		return server_xns_enter(s, j, e);
	switch (e->type) {
	case EVENT_CONNECTED:
		return server_tell_connected(s, j, e->rank);
	case EVENT_FINALIZED:
		server_end_session(j, e->rank);
		return tell(s, j, e, PMIX_MSG_FINALIZED);
	case EVENT_LOST:
		server_lose_session(s, j, e->rank);
		return 0;
	case EVENT_ABORT:
		return server_abort(s, j, e);
	case EVENT_NOTIFY:
		return tell(s, j, e, PMIX_MSG_EVENT);
	case EVENT_FENCE:
	case EVENT_GROUP:
	case EVENT_CONNECT:
		return server_enter(s, j, e);
	case EVENT_GET:
		return server_get(s, j, e);
	case EVENT_NAMES:
	case EVENT_SPAWN:
		return server_ask(s, j, e);
	case EVENT_COMMITTED:
		return server_committed(s, e);
	}
	return -EINVAL;
}
