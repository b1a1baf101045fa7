/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients whose last request has no answer. libpmix collects the clients of a node for an
 * operation by itself, and reports the operation when the last one has entered: until then
 * nobody else knows that the others wait.
 */
#include "helpers/pmixd/server_internal.h"

#include <stdlib.h>

#define LOOKS_OF_STALL 4 /* in the time after which a wait is reported */
#define LOOK_MS_MAX 15000

/* Between two looks, which also is how long a request must have waited to count. */
static int64_t period(const struct job *j)
{
	int64_t ms = j->stall_ms / LOOKS_OF_STALL;

	return ms < 1 ? 1 : ms > LOOK_MS_MAX ? LOOK_MS_MAX : ms;
}

static bool any_open(const struct job *j)
{
	uint32_t count;

	layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
	for (uint32_t i = 0; i < count; i++)
		if (j->sessions[i].open)
			return true;
	return false;
}

static bool is_watched(const struct server *s, const struct job *j)
{
	return s->options->asks_since && j->stall_ms && any_open(j);
}

int64_t server_asks_due(const struct server *s)
{
	int64_t first = SERVER_NEVER;

	for (const struct job *j = s->jobs; j; j = j->next)
		if (is_watched(s, j) && j->look_at < first)
			first = j->look_at;
	return first;
}

/* When the client sent the request that waits, as server_now; 0: none does, or is young. */
static int64_t asks_since(const struct server *s, const struct job *j,
			  const struct client_session *cs, int64_t now)
{
	int64_t since = cs->open && !cs->asked ? s->options->asks_since(cs->fd) : 0;

	return since && now - since >= period(j) ? since : 0;
}

static int tell_asks(struct server *s, const struct job *j, const uint32_t *ranks,
		     uint32_t count)
{
	struct pmix_msg m = {
		.type = PMIX_MSG_ASKS, .nspace = j->number, .rank = PMIX_NO_RANK,
		.number = count,
	};
	struct buf b;
	int rc;

	buf_init(&b, PMIX_MSG_BYTES_MAX);
	rc = pmix_members_pack(&b, ranks, count);
	m.data = b.data;
	m.len = b.len;
	rc = rc ? rc : link_send(s->link, &m);
	buf_free(&b);
	return rc;
}

static int look(struct server *s, struct job *j, int64_t now)
{
	uint32_t count, waiting = 0;
	const uint32_t *ranks = layout_ranks_at(j->nspace.layout, j->nspace.position,
						&count);
	uint32_t *list = calloc(count, sizeof(*list));
	bool changed = false;
	int rc = 0;

	if (!list)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		struct client_session *cs = &j->sessions[i];
		int64_t since = asks_since(s, j, cs, now);

		changed |= since != cs->asks_since;
		cs->asks_since = since;
		if (since)
			list[waiting++] = ranks[i];
	}
	if (changed)
		rc = tell_asks(s, j, list, waiting);
	free(list);
	return rc;
}

int server_look_asks(struct server *s, int64_t now)
{
	int rc = 0;

	for (struct job *j = s->jobs; j && !rc; j = j->next) {
		if (!is_watched(s, j) || j->look_at > now)
			continue;
		j->look_at = now + period(j);
		rc = look(s, j, now);
	}
	return rc;
}
