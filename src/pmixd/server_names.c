/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients publish and look up: from libpmix to the agent, and the answer back. */
#include <errno.h>
#include <stdlib.h>

#include "pmixd/names.h"
#include "pmixd/server_internal.h"

static void tell(const struct naming *n, pmix_status_t status, pmix_pdata_t *found,
		 size_t count)
{
	if (n->lookup_done)
		n->lookup_done(status, found, count, n->done_arg);
	else
		n->op_done(status, n->done_arg);
}

static struct naming of_event(const struct event *e)
{
	return (struct naming){
		.op_done = e->op_done,
		.lookup_done = e->lookup_done,
		.done_arg = e->done_arg,
	};
}

void server_names_of_nobody(const struct event *e)
{
	const struct naming n = of_event(e);

	tell(&n, PMIX_ERR_NOT_FOUND, NULL, 0);
}

static void end_found(struct naming **at, pmix_status_t status, pmix_pdata_t *found,
		      size_t count)
{
	struct naming *n = *at;

	*at = n->next;
	tell(n, status, found, count);
	free(n);
}

static int end(struct naming **at, pmix_status_t status)
{
	end_found(at, status, NULL, 0);
	return 0;
}

static struct naming *add(struct server *s, const struct job *j, const struct event *e)
{
	struct naming *n = malloc(sizeof(*n));

	if (!n)
		return NULL;
	*n = of_event(e);
	n->next = s->namings;
	n->id = ++s->last_id;
	n->job = j->number;
	s->namings = n;
	return n;
}

int server_names(struct server *s, const struct job *j, const struct event *e)
{
	const struct naming *n = add(s, j, e), nobody = of_event(e);
	struct pmix_msg m = {
		.type = PMIX_MSG_NAMES,
		.nspace = j->number,
		.rank = e->rank,
		.data = e->data,
		.len = e->len,
	};
	int rc;

	if (!n) {
		tell(&nobody, PMIX_ERR_NOMEM, NULL, 0);
		return 0;
	}
	m.id = n->id;
	rc = link_send(s->link, &m);
	return rc ? end(&s->namings, server_status(rc)) : 0;
}

/* ---- answers ---- */

/* libpmix passes on what was found only with success; who looks sees what is missing. */
static int give(const struct server *s, struct naming **at, const struct names_answer *a)
{
	pmix_pdata_t *found;

	if (a->error || !(*at)->lookup_done)
		return end(at, server_status(a->error));
	found = names_found(s->library, a);
	if (!found)
		return end(at, PMIX_ERR_UNPACK_FAILURE);
	end_found(at, PMIX_SUCCESS, found, a->count);
	names_free_found(s->library, found, a->count);
	return 0;
}

int server_named(struct server *s, const struct pmix_msg *m)
{
	struct naming **at = &s->namings;
	struct names_answer a;
	int rc;

	while (*at && (*at)->id != m->id)
		at = &(*at)->next;
	if (!*at)
		return -EPROTO;
	if (m->status)
		return end(at, server_status(m->status));
	rc = names_unpack_answer(&a, m->data, m->len);
	if (rc)
		return end(at, server_status(rc));
	rc = give(s, at, &a);
	free(a.items);
	return rc;
}

void server_fail_namings(struct server *s, uint32_t job)
{
	for (struct naming **at = &s->namings; *at;) {
		if ((*at)->job == job)
			end(at, PMIX_ERROR);
		else
			at = &(*at)->next;
	}
}
