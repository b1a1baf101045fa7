/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of PMIx: which ranks of this node have a client. A session begins when the
 * client is let in, and ends when it finalizes or its connection does.
 */
#include "pmixd/server_internal.h"

#include <errno.h>
#include <string.h>

static struct client_session *session_of(const struct job *j, uint32_t rank)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(j->nspace.layout, j->nspace.position,
						&count);

	for (uint32_t i = 0; i < count; i++)
		if (ranks[i] == rank)
			return &j->sessions[i];
	return NULL;
}

/* The other end's socket is there as long as its process holds it. */
static bool lives(const struct client_session *cs)
{
	uint32_t uid;

	return cs->open && owner_of(&cs->peer, &uid) != -ENOENT;
}

bool server_begin_session(struct server *s, const char *nspace, uint32_t rank, int fd)
{
	struct job *j = server_job_named(s, nspace);
	struct client_session *cs = j ? session_of(j, rank) : NULL;
	struct owner_peer peer = {};
	int rc;

	if (!cs)
		return true; /* libpmix knows it no more than this, and refuses it */
	rc = owner_note_peer(fd, &peer);
	if (!rc && lives(cs) && memcmp(&peer, &cs->peer, sizeof(peer)))
		return false; /* not its own port, which is used again */
	cs->open = !rc;
	cs->peer = peer;
	return true;
}

/* Once for a rank: a loop that starts programs is told of its first one. */
void server_refuse_session(struct server *s, const char *nspace, uint32_t rank)
{
	struct job *j = server_job_named(s, nspace);
	struct client_session *cs = j ? session_of(j, rank) : NULL;
	const struct pmix_nspace *n;

	if (!cs || cs->refused)
		return;
	cs->refused = true;
	n = &j->nspace;
	log_error(s->log, "rank %u (node %.64s): a second process started PMIx while the first one uses it, and was refused: a rank runs MPI programs one after the other, not one inside the other",
		  rank, n->node_names[layout_node_id(n->layout, n->position)]);
}

void server_end_session(struct job *j, uint32_t rank, bool finalized)
{
	struct client_session *cs = session_of(j, rank);

	if (cs && (finalized || !lives(cs)))
		cs->open = false;
}
