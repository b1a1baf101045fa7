/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a process may start PMI or PMIx. A rank has one session of each. One process may
 * have both. A second process is refused while a session of the first one lives, also a
 * session of the other interface: the MPI libraries of two processes would each wait for
 * all ranks. A process of PMI is known by its messages; a PMIx client by its socket only,
 * so the host looks which process has that socket, one request at a time. A process that
 * cannot be found is admitted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"

#define NAMED_MAX 16 /* PMIx clients of a node whose process is looked for everywhere */

/* A process that waits for the host's answer. */
struct admission {
	struct admission *next;
	struct rank_session *ss;
	bool pmix;       /* the process starts PMIx; else PMI */
	bool refused;    /* PMIx: the rank's client lives; people want to know who they are */
	bool second_known;
	uint64_t id;     /* PMIx: of the helper's question */
	uint32_t process; /* 0: not known */
	unsigned char socket[PMIX_SOCKET_BYTES]; /* PMIx: of the process; PMI: of the client */
	unsigned char other[PMIX_SOCKET_BYTES];  /* PMIx: of the rank's client */
	int version;     /* PMI: of its init */
	admission_start start; /* PMI: what follows when it is admitted */
	struct rank_request rq; /* PMI: that */
};

/* ---- answers ---- */

static void answer_pmix(struct pmi_server *s, const struct admission *a, int status)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_ADMITTED, .id = a->id, .rank = PMIX_NO_RANK,
		.status = status,
	};

	pmix_send_message(s, &m, NULL);
}

static bool uses_pmix(const struct rank_session *ss)
{
	return ss->pmix == RANK_PMIX_ACTIVE && ss->pmix_known && !ss->ended;
}

static void decide_pmix(struct admission *a, int found)
{
	struct rank_session *ss = a->ss;
	bool another = found > 0 ? (uint32_t)found != ss->owner : found == -ESRCH;
	int status = 0;

	if (rank_uses_pmi(ss) && another) {
		rank_tell_refusal(ss, "PMIx", found > 0 ? (uint32_t)found : 0, "PMI",
				  ss->owner);
		status = -EBUSY;
	}
	answer_pmix(ss->server, a, status);
}

static void decide_pmi(struct admission *a, int found)
{
	struct rank_session *ss = a->ss;
	bool another = found > 0 ? (uint32_t)found != a->process : found == -ESRCH;

	if (!rank_is_live(ss))
		return;
	if (uses_pmix(ss) && another) {
		ss->refused = a->process;
		rank_tell_refusal(ss, "PMI", a->process, "PMIx",
				  found > 0 ? (uint32_t)found : 0);
		answer_error(ss, &a->rq, PMI_RC_INIT, "%s", RANK_TAKEN);
	} else if (!rank_is_taken(ss, a->process)) {
		a->start(ss, &a->rq, a->version, a->process);
	}
}

/* ---- questions ---- */

/* False: nobody can say. */
static bool ask(struct pmi_server *s, const struct admission *a)
{
	uint32_t near = a->pmix && !a->refused ? a->ss->owner : a->process;
	bool all = !a->pmix || a->second_known || s->named < NAMED_MAX;

	if (!s->ops->find_holder)
		return false;
	s->named += a->pmix && all;
	s->ops->find_holder(s->arg, a->second_known ? a->other : a->socket, near, all);
	return true;
}

/*
 * Names both processes of a client that is refused anyway: first the one process, then
 * the other. True: done.
 */
static bool name_both(struct admission *a, int found)
{
	uint32_t process = found > 0 ? (uint32_t)found : 0;

	if (!a->second_known) {
		a->second_known = true;
		a->process = process;
		return false;
	}
	rank_tell_refusal(a->ss, "PMIx", a->process, "PMIx", process);
	answer_pmix(a->ss->server, a, -EBUSY);
	return true;
}

/* True: it waits no more. */
static bool take_answer(struct admission *a, int found)
{
	if (a->refused)
		return name_both(a, found);
	if (a->pmix)
		decide_pmix(a, found);
	else
		decide_pmi(a, found);
	return true;
}

/* Ask for the first that waits, until one is asked for. */
static void ask_next(struct pmi_server *s)
{
	while (s->admissions && !ask(s, s->admissions)) {
		struct admission *a = s->admissions;

		if (!take_answer(a, -ENOSYS))
			continue;
		s->admissions = a->next;
		free(a);
	}
}

static void add(struct pmi_server *s, const struct admission *what)
{
	struct admission *a = malloc(sizeof(*a)), **at = &s->admissions;

	if (!a) {
		struct admission now = *what;

		while (!take_answer(&now, -ENOMEM))
			;
		return;
	}
	*a = *what;
	a->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = a;
	if (s->admissions == a)
		ask_next(s);
}

void admission_found(struct pmi_server *s, int found)
{
	struct admission *a = s->admissions;

	if (!a)
		return;
	if (take_answer(a, found)) {
		s->admissions = a->next;
		free(a);
	}
	ask_next(s);
}

/* ---- who comes ---- */

int admission_on_admit(struct pmi_server *s, const struct pmix_msg *m,
		       struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);
	struct admission a = {
		.ss = ss, .pmix = true, .id = m->id, .refused = m->number != 0,
	};

	if (m->len != (a.refused ? 2 : 1) * (size_t)PMIX_SOCKET_BYTES)
		return -EPROTO;
	if (!ss || (a.refused ? ss->refusal_told : !rank_uses_pmi(ss))) {
		answer_pmix(s, &a, a.refused ? -EBUSY : 0);
		return 0;
	}
	memcpy(a.socket, m->data, PMIX_SOCKET_BYTES);
	if (a.refused)
		memcpy(a.other, (const char *)m->data + PMIX_SOCKET_BYTES,
		       PMIX_SOCKET_BYTES);
	add(s, &a);
	return 0;
}

bool admission_waits(struct rank_session *ss, const struct rank_request *rq, int version,
		     admission_start start)
{
	struct admission a = {
		.ss = ss, .process = ss->writer, .version = version, .start = start,
		.rq = *rq,
	};

	if (!uses_pmix(ss) || !ss->writer ||
	    (ss->state == RANK_ACTIVE && ss->owner == ss->writer))
		return false;
	memcpy(a.socket, ss->pmix_socket, sizeof(a.socket));
	add(ss->server, &a);
	return true;
}

void admissions_free(struct pmi_server *s)
{
	struct admission *a;

	while ((a = s->admissions)) {
		s->admissions = a->next;
		free(a);
	}
}
