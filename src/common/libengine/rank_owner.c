/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that has a rank's session of PMI. All copies of PMI_FD are one connection, so
 * a second process would be taken for the first one, and end its session. A process that
 * has sent init may send it again; another process may do so only when the first one has
 * finalized or is dead.
 */
#include <stdio.h>
#include <string.h>

#include <utlist.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"

#define REFUSALS_TOLD 4 /* ranks of a node whose refused process srun names */

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

static void describe(const struct rank_session *ss, uint32_t process, char *text,
		     size_t size)
{
	char name[PMI_PROCESS_NAME_MAX];

	if (!process) {
		snprintf(text, size, "process unknown");
		return;
	}
	(void)rank_process_lives(ss, process, name);
	snprintf(text, size, "%s%sprocess %u", name, name[0] ? ", " : "", process);
}

static void note_more(struct pmi_server *s)
{
	char text[ANSWER_TEXT_MAX];

	snprintf(text, sizeof(text),
		 "node %.64s: more than %d ranks started a second process; its slurmd's log has the others",
		 engine_node_name(s), REFUSALS_TOLD);
	requests_note(s, text);
}

/*
 * Once for a rank: a loop that starts programs is told of its first one. Lines of the first
 * ranks of a node reach srun; lines of the others are in the log.
 */
void rank_tell_refusal(struct rank_session *ss, const char *starts, uint32_t second,
		       const char *uses, uint32_t first)
{
	char a[PMI_PROCESS_NAME_MAX + 24], b[PMI_PROCESS_NAME_MAX + 24];
	char text[ANSWER_TEXT_MAX];

	if (ss->refusal_told)
		return;
	ss->refusal_told = true;
	describe(ss, second, a, sizeof(a));
	describe(ss, first, b, sizeof(b));
	snprintf(text, sizeof(text),
		 "rank %u (node %.64s): a second process started %s while the first one uses %s, and was refused (%s; first %s): a rank runs MPI programs one after the other, not two at a time",
		 ss->rank, engine_node_name(ss->server), starts,
		 strcmp(starts, uses) ? uses : "it", a, b);
	control_printable(text);
	if (ss->server->refusals++ < REFUSALS_TOLD)
		requests_note(ss->server, text);
	else
		log_error(ss->server->log, "%s", text);
	if (ss->server->refusals == REFUSALS_TOLD + 1)
		note_more(ss->server);
}

/* The owner waits for an answer on PMI_FD. */
static bool owner_waits(const struct rank_session *ss)
{
	const struct entered *e;

	DL_FOREACH(ss->entered, e)
		if (!e->rq.ticket)
			return true;
	return ss->waits > 0;
}

/*
 * Two processes read from one connection, so either takes any answer: one of them misses
 * its own, and the ranks of the step cannot all go on.
 */
static void end_shared(struct rank_session *ss)
{
	char a[PMI_PROCESS_NAME_MAX + 24], b[PMI_PROCESS_NAME_MAX + 24];
	char text[ANSWER_TEXT_MAX];

	describe(ss, ss->refused, a, sizeof(a));
	describe(ss, ss->owner, b, sizeof(b));
	snprintf(text, sizeof(text),
		 "rank %u (node %.64s): two programs use PMI at the same time (%s; first %s), and may read each other's answers: start them one after the other, or each by an srun of its own",
		 ss->rank, engine_node_name(ss->server), a, b);
	control_printable(text);
	ss->refused_inits = 0;
	if (!collective_end_step(ss->server, text, text))
		rank_fail(ss, "has two programs that use PMI at the same time");
}

bool rank_is_taken(struct rank_session *ss, uint32_t process)
{
	if (!process || process == ss->owner || !rank_uses_pmi(ss))
		return false;
	ss->refused = process;
	ss->refused_inits++;
	if (owner_waits(ss))
		end_shared(ss);
	return true;
}

/*
 * The owner goes on while a refused process waits for its answer; or that process goes on
 * without it, so it has read an answer to the owner.
 */
bool rank_is_shared(struct rank_session *ss)
{
	char name[PMI_PROCESS_NAME_MAX];

	if (!ss->refused_inits || (ss->writer != ss->owner && ss->writer != ss->refused) ||
	    !rank_process_lives(ss, ss->refused, name))
		return false;
	end_shared(ss);
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

/*
 * The answer to an abort comes late, too: MPICH to 4.0 reads it, and others exit at once, so
 * that the process that uses PMI would take it.
 */
void rank_answer_refused(struct rank_session *ss)
{
	static const struct command init = { .name = "init", .response = "response_to_init" };
	static const struct command abort = { .name = "abort", .response = "abort_result" };
	const struct rank_request rq = {
		.command = ss->refused_inits ? &init : &abort,
		.protocol = PMI_PROTOCOL_1,
	};
	char name[PMI_PROCESS_NAME_MAX];

	if (ss->refused_inits)
		ss->refused_inits--;
	else
		ss->refused_waits = false;
	if (!rank_is_live(ss) || !rank_process_lives(ss, ss->refused, name))
		return;
	if (rq.command == &init)
		rank_tell_refusal(ss, "PMI", ss->refused, "PMI", ss->owner);
	answer_error(ss, &rq, PMI_RC_INIT, "%s", RANK_TAKEN);
}
