/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of other nodes for data of this node's ranks. libpmix answers as soon as the
 * rank has committed something, and never if it does not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/server_internal.h"
#include "helpers/pmixd/upcalls.h"

static int send_fetched(struct server *s, const struct fetch *f, int status,
			const char *text, const void *data, size_t len)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_FETCHED,
		.nspace = f->job,
		.id = f->id,
		.rank = f->rank,
		.status = status,
		.text = text,
		.text_len = text ? strlen(text) : 0,
		.data = data,
		.len = len,
	};

	return link_send(s->link, &m);
}

/* Answer and forget it. */
static int end_fetch(struct server *s, struct fetch **at, int status,
		     const char *text, const void *data, size_t len)
{
	struct fetch *f = *at;
	int rc = send_fetched(s, f, status, text, data, len);

	*at = f->next;
	s->nfetches--;
	free(f);
	return rc;
}

static bool is_here(const struct job *j, uint32_t rank)
{
	return rank < layout_ranks(j->nspace.layout) &&
	       layout_rank_position(j->nspace.layout, rank) == j->nspace.position;
}

/* The answer comes as an event. */
static int ask_library(struct server *s, const struct job *j, const struct fetch *f)
{
	pmix_proc_t proc = { .rank = f->rank };
	struct event *e;

	strncpy(proc.nspace, j->nspace.name, PMIX_MAX_NSLEN);
	e = event_create(EVENT_COMMITTED, &proc);
	if (!e)
		return -ENOMEM;
	e->id = f->dmodex_request;
	if (s->library->server_dmodex_request(&proc, upcalls_committed, e)) {
		event_free(e);
		return -EREMOTEIO;
	}
	if (f->deadline != SERVER_NEVER)
		library_pass(s->library, j->nspace.name);
	return 0;
}

int server_fetch(struct server *s, const struct pmix_msg *m)
{
	struct job *j = server_job(s, m->nspace);
	struct fetch *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	*f = (struct fetch){
		.next = s->fetches,
		.id = m->id,
		.dmodex_request = ++s->last_id,
		.job = m->nspace,
		.rank = m->rank,
		.deadline = server_deadline(m->number),
	};
	s->fetches = f;
	s->nfetches++;
	if (s->nfetches > FETCHES_MAX)
		rc = server_full(s, "requests of other nodes without an answer", FETCHES_MAX);
	else
		rc = j && is_here(j, m->rank) ? ask_library(s, j, f) : -ENOENT;
	return rc ? end_fetch(s, &s->fetches, rc, NULL, NULL, 0) : 0;
}

int server_committed(struct server *s, const struct event *e)
{
	struct fetch **at = &s->fetches;

	while (*at && (*at)->dmodex_request != e->id)
		at = &(*at)->next;
	if (!*at)
		return 0; /* no request waits any more */
	return end_fetch(s, at, e->status ? -ENOENT : 0, NULL, e->data, e->len);
}

int server_gone(struct server *s, const struct pmix_msg *m)
{
	struct fetch **at = &s->fetches;
	int rc = 0;

	while (*at && !rc) {
		if ((*at)->job == m->nspace && (*at)->rank == m->rank)
			rc = end_fetch(s, at, -ECONNRESET, "the rank has ended", NULL,
				       0);
		else
			at = &(*at)->next;
	}
	return rc;
}

void server_forget_fetches(struct server *s, uint32_t job)
{
	for (struct fetch **at = &s->fetches, *f; (f = *at);) {
		if (f->job != job) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		s->nfetches--;
		free(f);
	}
}

/* ---- time ---- */

int server_timeout(const struct server *s, int64_t now)
{
	int64_t first = server_calls_due(s), lost = server_sessions_due(s);
	int64_t look = server_asks_due(s);

	first = lost < first ? lost : first;
	first = look < first ? look : first;
	for (const struct fetch *f = s->fetches; f; f = f->next)
		first = f->deadline < first ? f->deadline : first;
	if (first == SERVER_NEVER)
		return -1;
	return first > now ? (int)(first - now < INT32_MAX ? first - now : INT32_MAX) :
			     0;
}

int server_expire(struct server *s, int64_t now)
{
	struct fetch **at = &s->fetches;
	int rc = server_expire_sessions(s, now);

	rc = rc ? rc : server_look_asks(s, now);
	server_expire_calls(s, now);
	while (*at && !rc) {
		if ((*at)->deadline <= now)
			rc = end_fetch(s, at, -ENOENT, NULL, NULL, 0);
		else
			at = &(*at)->next;
	}
	return rc;
}
