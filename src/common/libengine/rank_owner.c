/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process has a rank's session of PMI. All copies of PMI_FD are one connection, so
 * a second process would be taken for the first one, and end it. A process that has sent
 * init may do so again; another one may only when the first has finalized or is dead.
 */
#include "libengine/server_private.h"

bool rank_process_lives(const struct rank_session *ss, uint32_t pid,
			char name[PMI_PROCESS_NAME_MAX])
{
	const struct pmi_server *s = ss->server;

	name[0] = '\0';
	return !s->ops->process || s->ops->process(s->arg, pid, name);
}

bool rank_uses_pmi(const struct rank_session *ss)
{
	char name[PMI_PROCESS_NAME_MAX];

	return (IN(ss->state) & (IN(RANK_HANDSHAKE) | IN(RANK_ACTIVE))) && ss->owner &&
	       rank_process_lives(ss, ss->owner, name);
}

bool rank_is_taken(struct rank_session *ss, uint32_t process)
{
	if (!process || process == ss->owner || !rank_uses_pmi(ss))
		return false;
	ss->refused = process;
	rank_tell_refusal(ss, "PMI", process, "PMI", ss->owner);
	return true;
}

bool rank_is_of_refused(const struct rank_session *ss)
{
	return ss->refused && ss->writer == ss->refused;
}

/*
 * A program that was refused may still abort, as MPICH does: the rank is not its own.
 * Its other requests are not, either.
 */
bool rank_is_refused(struct rank_session *ss, const struct rank_request *rq)
{
	if (!rank_is_of_refused(ss) || rq->command->starts)
		return false;
	if (rq->command->handle == rank_handle_abort)
		ss->refused_waits = true;
	else
		answer_error(ss, rq, PMI_RC_INIT, "%s", RANK_TAKEN);
	return true;
}

bool pmi_server_client_refused(const struct pmi_server *s, uint32_t slot)
{
	return slot < s->nslots && s->sessions[slot].refused_waits;
}

/*
 * MPICH to 4.0 reads an answer to its abort, and others exit at once: an answer would then
 * be taken by the process that uses PMI.
 */
void pmi_server_client_answer_refused(struct pmi_server *s, uint32_t slot)
{
	static const struct command abort = { .name = "abort", .response = "abort_result" };
	const struct rank_request rq = { .command = &abort, .protocol = PMI_PROTOCOL_1 };
	char name[PMI_PROCESS_NAME_MAX];
	struct rank_session *ss;

	if (!pmi_server_client_refused(s, slot))
		return;
	ss = &s->sessions[slot];
	ss->refused_waits = false;
	if (rank_is_live(ss) && rank_process_lives(ss, ss->refused, name))
		answer_error(ss, &rq, PMI_RC_INIT, "%s", RANK_TAKEN);
	server_settle(s);
}
