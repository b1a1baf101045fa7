/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The object of the server engine, and what its files share beside rank.h, request.h,
 * pending.h, pmix_bridge.h and results.h. The contract is pmi_server.h.
 *
 *   pmi_server.c       the host's entry points, and the settle after each
 *   engine.c       what all files ask the object for
 *   rank.c         the state of a rank's session
 *   rank_session.c messages out of bytes, dispatch
 *   rank_end.c     ends of a session and of a rank
 *   rank_args.c    what a request must have
 *   rank_records.c records that no fence has taken
 *   rank_commands.c handlers of what both protocols have alike
 *   rank_pmi1.c    the commands of PMI-1, one table
 *   rank_pmi2.c    the commands of PMI-2, one table
 *   rank_extension.c handlers of the commands that the extension adds
 *   rank_owner.c   which process has a rank's connection
 *   rank_admission.c whether a process may start PMI or PMIx beside another one
 *   spawner.c      what srun hears of a spawned step's ranks
 *   answer.c       responses in the form of either protocol
 *   engine_slots.c what ranks enter through shared memory
 *   engine_status.c what people and tools are told
 *   engine_coll.c  collectives that ranks have entered
 *   engine_coll_ops.c what libcoll asks for, and ends of collectives
 *   engine_group.c barriers of groups of ranks
 *   engine_fetch.c values of one rank, asked for by another
 *   group_kvs.c    values that a group has exchanged and the step has not fenced
 *   engine_pmix.c  messages of who serves the node's PMIx clients
 *   engine_pmix_send.c messages to it
 *   engine_pmix_asks.c which clients wait inside it
 *   engine_pmix_ranks.c ranks as PMIx clients
 *   engine_pmix_enter.c what clients enter together
 *   engine_pmix_fetch.c what one asks of another
 *   engine_pmix_names.c what they publish and spawn
 *   results.c      results of collectives: in the region or in the heap
 *   attrs.c        node and job attributes
 *   topology.c     the node's topology as a file
 *   requests.c     what srun answers: names, spawn; aborts and reports
 *
 * No file calls one that calls it, also by way of others: work that a lower file must cause
 * above waits for the settle, or is a function that it was given.
 */
#pragma once

/* An item that could not be added has no table; the default ends the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libengine/group_kvs.h"
#include "libengine/pmix_bridge.h"
#include "libengine/results.h"
#include "libengine/pmi_server.h"
#include "libpmi/message.h"

struct admission;
struct attr_wait;
struct rank_session;
struct engine_attr;
struct srun_request;
struct topology_wait;

/* The node's topology (topology.c). */
struct topology {
	struct topology_wait *waits;
	char *path;    /* NULL: there is none (yet) */
	bool wanted;   /* the host has been asked, */
	bool answered; /* and the holder has answered */
};

/*
 * Work that a call of the host's has caused and that must not be done in the middle of
 * it. The settle at its end does it, in this order (pmi_server.c).
 */
enum deferred {
	DEFER_LEAVE,    /* sessions are CLOSING: libcoll learns that they are gone */
	DEFER_SLOTS,    /* look into the slots */
	DEFER_WAKE,     /* ranks are answered in their slots: wake them */
	DEFER_TIDY,     /* ranks have put something: tidy soon, until the fence has ended */
};

/* The first failure of the node, and its consequence for the step. */
enum failure {
	FAILURE_NONE,
	FAILURE_REPORTED,   /* srun was told, and the step goes on */
	FAILURE_ENDS_STEP,  /* the host was asked to end the step, */
	FAILURE_STEP_LIVES, /* but cannot, or has not */
};

/* Lines that srun gets once a step. */
enum notice {
	NOTICE_GAVE_UP,        /* a rank has ended for the reported failure */
	NOTICE_SECOND_PROGRAM, /* a process found PMI_FD closed */
	NOTICE_CLOSED_FD,      /* a process closed PMI_FD, or may have lacked it, and started no PMI */
	NOTICE_GROUP_REFUSED,
	NOTICE_OTHER_NUMBER,   /* a program takes itself for another rank */
	NOTICE_OTHER_USER,     /* libpmix refuses a client that says so */
};

struct pmi_server {
	const struct pmi_step *step;
	const struct pmi_host_ops *ops;
	void *arg;
	const struct log_hook *log;
	struct coll *coll;
	struct results results;
	struct early early;
	struct payload *group_result; /* taken last, during a host call */
	uint32_t next_group;
	struct slots *slots; /* NULL: ranks enter over their sockets */
	int wake_fd;         /* with slots */
	struct rank_session *sessions;
	uint32_t nslots;
	struct engine_attr *attrs;
	struct attr_wait *attr_waits;
	uint64_t attr_waits_ended;
	struct topology topology;
	struct pmix_server pmix;
	struct admission *admissions; /* oldest first: the host is asked for that */
	uint32_t named;               /* see NAMED_MAX */
	uint32_t refusals;            /* processes that have been refused, one a rank */
	struct {
		uint64_t next; /* of the ids of asks */
		size_t waits;
		uint64_t due;  /* of the timer; UINT64_MAX: it is not set */
	} fetches;
	struct srun_request *requests;
	uint64_t requests_ended;
	uint32_t next_request;
	struct pmi_message message; /* the one being handled */
	struct buf out;             /* the answer being written */
	struct buf head;            /* of the message being sent */
	const struct payload *built; /* by this node, while it is published */
	struct pmi_writer writer;
	bool used;        /* a rank has started PMI */
	bool leaving;     /* since then ranks have only finalized or ended */
	uint32_t unstarted; /* ranks that have ended without starting PMI or PMIx */
	bool ready;       /* srun was told that rank 0 has started */
	bool srun_lost;
	unsigned deferred; /* of enum deferred, a bit each */
	unsigned noticed;  /* of enum notice, a bit each */
	enum failure failure;
	char *held;       /* why: no rank gets this answer; NULL: they do */
};

/* ---- engine.c ---- */

const char *engine_node_name(const struct pmi_server *s);
/* The number of the command by which a rank was spawned, or -1. */
int engine_appnum(const struct pmi_server *s, uint32_t rank);
/* For traces; costs a branch when there is none. */
static inline void engine_event(struct pmi_server *s, enum pmi_event event,
				uint32_t slot, enum coll_kind kind,
				uint32_t seq)
{
	if (s->ops->event)
		s->ops->event(s->arg, event, slot, kind, seq);
}
/* Leave work to the settle. */
void engine_defer(struct pmi_server *s, enum deferred work);
bool engine_is_deferred(const struct pmi_server *s, enum deferred work);
/* Takes it off the list. False: it was not on it. */
bool engine_take_deferred(struct pmi_server *s, enum deferred work);
/* True the first time for each notice. */
bool engine_notices(struct pmi_server *s, enum notice notice);
/* A process uses PMI or PMIx. */
void engine_use(struct pmi_server *s);

/* ---- spawner.c ---- */

/* A rank has sent init. */
void engine_started(struct pmi_server *s, const struct rank_session *ss);
/*
 * A rank of a spawned step has ended without finalizing. `well`: nobody says that it has
 * failed.
 */
void engine_tell_spawner(struct rank_session *ss, bool well);
