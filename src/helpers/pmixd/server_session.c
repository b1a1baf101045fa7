/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of PMIx: which ranks of this node have a client.
 *
 * | event | `open` | `asked` | `lost` | `ended` |
 * |-|-|-|-|-|
 * | a client comes, and no other client of the rank lives | set | set | | |
 * | the client is refused, or leaves before that | cleared | cleared | | |
 * | libpmix gets the connection | | cleared | cleared | |
 * | the client finalizes | cleared | | | one more |
 * | libpmix reports the end of the client before | cleared, unless the next client has come | | set, unless libpmix has the next client | one more |
 *
 * The exit of the rank's process ends no session here: it sets `gone`.
 *
 * libpmix takes the end of a connection without PMIx_Finalize for the end of the rank,
 * and collectives no longer wait for that rank. A rank may start another program. So
 * the next program of the node is let in when libpmix counts all ranks again that live.
 */
#include "helpers/pmixd/server_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/*
 * From the end of a client to when the agent is told that its rank goes on: by then it
 * has told of the end of a rank (RANK_EXIT_MS of the agent, and a second).
 */
#define LOST_TELL_MS 4000
#define POLLS 64 /* connections that are looked at in one system call */

_Static_assert(PMIX_SOCKET_BYTES == OWNER_BYTES, "a socket in a message");

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

/*
 * Whether a session must wait for `other`, whose rank has not come as far: libpmix is
 * about to tell of its end or, if this rank's last program was killed, the other one's may
 * be killed as well.
 */
static bool follows(const struct client_session *cs, const struct client_session *other)
{
	if (other->gone || other->ended >= cs->ended)
		return false;
	return cs->lost || (other->open && !lives(other));
}

static bool must_wait(const struct job *j, const struct client_session *cs)
{
	uint32_t count;

	layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
	for (uint32_t i = 0; i < count; i++)
		if (follows(cs, &j->sessions[i]))
			return true;
	return cs->open; /* its process has ended, and libpmix has not said how */
}

/*
 * Whether libpmix has closed one of these connections, or is about to. libpmix leaves out
 * the rank from then on, and says so later. One system call for POLLS ranks.
 */
static bool any_hung_up(const struct job *j, const uint32_t *slots, uint32_t count)
{
	struct pollfd fds[POLLS];

	for (uint32_t i = 0; i < count; i++) {
		const struct client_session *cs = &j->sessions[slots[i]];

		fds[i] = (struct pollfd){ cs->open && !cs->asked ? cs->fd : -1, POLLRDHUP, 0 };
	}
	return poll(fds, count, 0) > 0;
}

bool server_any_killed(const struct job *j, const uint32_t *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (j->sessions[slots[i]].lost)
			return true;
	for (uint32_t i = 0; i < count; i += POLLS)
		if (any_hung_up(j, slots + i, count - i < POLLS ? count - i : POLLS))
			return true;
	return false;
}

void server_miss(struct job *j, const uint32_t *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		j->sessions[slots[i]].missed = true;
}

pmix_status_t server_count_clients(struct server *s, const char *nspace, uint32_t count)
{
	pmix_info_t no_data = {
		.key = PMIX_REGISTER_NODATA,
		.value = { .type = PMIX_BOOL, .data.flag = true },
	};

	return s->library->server_register_nspace(nspace, (int)count, &no_data, 1, NULL,
						  NULL);
}

/*
 * Count the ranks that a fence of session `cs` is to wait for: not one whose program of the
 * same number was killed before, for its next one is not in that fence.
 */
static void count_again(struct server *s, struct job *j, const struct client_session *cs)
{
	uint32_t count, left = 0;
	pmix_status_t status;

	layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
	j->miscounted = false;
	for (uint32_t i = 0; i < count; i++) {
		const struct client_session *other = &j->sessions[i];
		bool ahead = other->lost && other->ended > cs->ended;

		j->miscounted |= ahead && !other->gone;
		left += !ahead && !(other->lost && other->gone);
	}
	status = server_count_clients(s, j->nspace.name, left);
	if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
		log_error(s->log, "libpmix %s does not accept a second program on ranks whose first program was killed: %s",
			  s->library->version, s->library->Error_string(status));
}

enum session_turn server_begin_session(struct server *s, const char *nspace, uint32_t rank,
				       int fd, bool waited)
{
	struct job *j = server_job_named(s, nspace);
	struct client_session *cs = j ? session_of(j, rank) : NULL;
	struct owner_peer peer = {};
	int rc;

	if (!cs)
		return SESSION_BEGINS; /* libpmix does not know the rank, and refuses it */
	rc = owner_note_peer(fd, &peer);
	if (!rc && lives(cs) && memcmp(&peer, &cs->peer, sizeof(peer)))
		return waited ? SESSION_REFUSED : SESSION_WAITS; /* not a port used again */
	if (!waited && must_wait(j, cs))
		return SESSION_WAITS;
	cs->open = !rc;
	cs->asked = true;
	cs->fd = fd;
	cs->peer = peer;
	return SESSION_BEGINS;
}

/* The session of a client that libpmix does not have yet, or NULL. */
static struct client_session *asked_session(const struct server *s, int fd, struct job **out)
{
	uint32_t count;

	for (struct job *j = s->jobs; j; j = j->next) {
		layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
		*out = j;
		for (uint32_t i = 0; i < count; i++)
			if (j->sessions[i].asked && j->sessions[i].fd == fd)
				return &j->sessions[i];
	}
	return NULL;
}

void server_open_session(struct server *s, int fd)
{
	struct job *j;
	struct client_session *cs = asked_session(s, fd, &j);

	if (!cs)
		return;
	cs->asked = false;
	cs->lost = false;
	if (j->miscounted)
		count_again(s, j, cs);
}

void server_drop_session(struct server *s, int fd)
{
	struct job *j;
	struct client_session *cs = asked_session(s, fd, &j);

	if (!cs)
		return;
	cs->asked = false;
	cs->open = false;
}

void server_check_user(struct server *s, const char *nspace, uint32_t rank, uint32_t uid)
{
	const struct job *j = server_job_named(s, nspace);
	struct pmix_msg m = { .type = PMIX_MSG_USER, .rank = rank, .number = uid };

	if (!j || !session_of(j, rank) || j->nspace.uid == uid)
		return;
	m.nspace = j->number;
	(void)link_send(s->link, &m); /* the loop finds a broken link by itself */
}

uint64_t server_ask_admission(struct server *s, const char *nspace, uint32_t rank, int fd,
			      bool refused)
{
	const struct job *j = server_job_named(s, nspace);
	const struct client_session *cs = j ? session_of(j, rank) : NULL;
	unsigned char sockets[2 * PMIX_SOCKET_BYTES];
	struct pmix_msg m = {
		.type = PMIX_MSG_ADMIT, .rank = rank, .number = refused,
		.data = sockets, .len = PMIX_SOCKET_BYTES * (refused ? 2 : 1),
	};
	struct owner_peer peer;

	if (!cs || !(refused || j->pmi) || owner_note_peer(fd, &peer))
		return 0;
	owner_pack(&peer, sockets);
	owner_pack(&cs->peer, sockets + PMIX_SOCKET_BYTES);
	m.nspace = j->number;
	m.id = ++s->last_id;
	return link_send(s->link, &m) ? 0 : m.id;
}

int server_tell_connected(struct server *s, const struct job *j, uint32_t rank)
{
	struct client_session *cs = session_of(j, rank);
	struct pmix_msg m = {
		.type = PMIX_MSG_CONNECTED, .nspace = j->number, .rank = rank,
		.number = cs && cs->missed,
	};
	unsigned char socket[PMIX_SOCKET_BYTES];

	if (cs && cs->open) {
		owner_pack(&cs->peer, socket);
		m.data = socket;
		m.len = sizeof(socket);
	}
	if (cs)
		cs->missed = false;
	return link_send(s->link, &m);
}

void server_end_session(struct job *j, uint32_t rank)
{
	struct client_session *cs = session_of(j, rank);

	if (!cs)
		return;
	cs->ended++;
	cs->open = false;
}

void server_lose_session(struct server *s, struct job *j, uint32_t rank)
{
	struct client_session *cs = session_of(j, rank);
	uint32_t slot;

	if (!cs || cs->lost)
		return;
	slot = (uint32_t)(cs - j->sessions);
	cs->ended++;
	j->miscounted = true;
	if (!cs->asked && lives(cs) && !any_hung_up(j, &slot, 1)) { /* the next program, which has waited long enough */
		count_again(s, j, cs);
		return;
	}
	if (!cs->asked)
		cs->open = false;
	cs->lost = true;
	cs->told = false;
	cs->lost_at = server_now();
}

/* The session has been lost, and the agent does not know: it hears of a rank's end by itself. */
static bool is_untold(const struct client_session *cs)
{
	return cs->lost && !cs->gone && !cs->told;
}

int64_t server_sessions_due(const struct server *s)
{
	int64_t first = SERVER_NEVER;
	uint32_t count;

	for (const struct job *j = s->jobs; j; j = j->next) {
		layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
		for (uint32_t i = 0; i < count; i++)
			if (is_untold(&j->sessions[i]) &&
			    j->sessions[i].lost_at + LOST_TELL_MS < first)
				first = j->sessions[i].lost_at + LOST_TELL_MS;
	}
	return first;
}

static int expire_sessions(struct server *s, struct job *j, int64_t now)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(j->nspace.layout, j->nspace.position,
						&count);
	int rc = 0;

	for (uint32_t i = 0; i < count && !rc; i++) {
		struct client_session *cs = &j->sessions[i];
		const struct pmix_msg m = {
			.type = PMIX_MSG_LOST, .nspace = j->number, .rank = ranks[i],
		};

		if (!is_untold(cs) || cs->lost_at + LOST_TELL_MS > now)
			continue;
		cs->told = true;
		rc = link_send(s->link, &m);
	}
	return rc;
}

int server_expire_sessions(struct server *s, int64_t now)
{
	int rc = 0;

	for (struct job *j = s->jobs; j && !rc; j = j->next)
		rc = expire_sessions(s, j, now);
	return rc;
}

void server_rank_gone(struct job *j, uint32_t rank)
{
	struct client_session *cs = session_of(j, rank);

	if (cs)
		cs->gone = true;
}
