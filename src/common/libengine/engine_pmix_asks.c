/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of the node's PMIx clients that have no answer, of which only pmixd knows: libpmix
 * waits for the other clients of the node.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libengine/engine.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libutil/rankset.h"

#define LIST_MAX 256 /* bytes of a list of ranks */

static void note(struct pmi_server *s, const uint32_t *ranks, uint32_t count)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		s->sessions[i].pmix_asks = false;
	s->pmix.unanswered = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct rank_session *ss = pmix_own_rank(s, ranks[i]);

		if (!ss)
			continue;
		ss->pmix_asks = true;
		s->pmix.unanswered++;
	}
	s->pmix.asks_told++;
}

/* The list is empty without a client that waits: pmix_members_pack would mean all by that. */
int pmix_on_asks(struct pmi_server *s, const struct pmix_msg *m,
		 struct payload *message)
{
	uint32_t *ranks = NULL, count = 0;
	struct cursor c;
	int rc;

	cursor_init(&c, m->data, m->len);
	rc = pmix_members_unpack(&c, &ranks, &count, s->nslots);
	if (!rc && (count != m->number || !cursor_done(&c)))
		rc = -EPROTO;
	if (!rc)
		note(s, ranks, count);
	free(ranks);
	return rc;
}

static bool is_client(const struct rank_session *ss)
{
	return ss->pmix == RANK_PMIX_ACTIVE && !ss->ended;
}

/* Clients that wait, or those that do not, into `ranks` (NULL: count only). */
static uint32_t list_clients(const struct pmi_server *s, bool asks, uint32_t *ranks)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->nslots; i++) {
		const struct rank_session *ss = &s->sessions[i];

		if (!is_client(ss) || ss->pmix_asks != asks)
			continue;
		if (ranks)
			ranks[count] = ss->rank;
		count++;
	}
	return count;
}

bool pmix_some_ask(const struct pmi_server *s)
{
	return s->pmix.unanswered && list_clients(s, true, NULL) &&
	       list_clients(s, false, NULL);
}

/* "rank 3", "ranks 0-2". */
static void name_clients(const struct pmi_server *s, bool asks, uint32_t *ranks,
			 char text[LIST_MAX])
{
	uint32_t count = list_clients(s, asks, ranks);
	int n = snprintf(text, LIST_MAX, "rank%s ", count > 1 ? "s" : "");

	rankset_format(ranks, count, text + n, LIST_MAX - (size_t)n);
}

void pmix_tell_asks(const struct pmi_server *s, unsigned seconds,
		    char text[PMI_WAIT_TEXT_MAX])
{
	uint32_t *ranks = pmix_some_ask(s) ? calloc(s->nslots, sizeof(*ranks)) : NULL;
	char late[LIST_MAX], waiting[LIST_MAX];

	if (!ranks)
		return;
	name_clients(s, false, ranks, late);
	name_clients(s, true, ranks, waiting);
	snprintf(text, PMI_WAIT_TEXT_MAX,
		 "PMIx on node %s: %u s" PMI_WAIT_INSIDE "%s: the last request of %s has no answer",
		 engine_node_name(s), seconds, late, waiting);
	free(ranks);
}
