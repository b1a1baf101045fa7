/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank, and its sessions of PMI and PMIx. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "libengine/request.h"
#include "libpmi/pmix_msg.h"
#include "libutil/buf.h"
#include "libutil/payload.h"

#define WHY_MAX 256             /* bytes of a reason, NUL included */
#define GROUPS_RECENT 4         /* groups of which a rank knows what they have had */

struct entered;
struct fetch_ask;
struct fetch_wait;
struct hold;

/*
 * A rank is the process that the launcher has started: it lives until that process ends
 * (rank_session.ended). PMI and PMIx are sessions of the rank, each with states of its
 * own: the end of a connection, or of one interface, ends a session only. The table of
 * states and events is in doc/data-path.md.
 *
 * The session of PMI:
 *
 *   ABSENT     -- open ----------> FRESH
 *   FRESH      -- init (PMI-1) --> ACTIVE
 *   FRESH      -- init (PMI-2) --> HANDSHAKE -- fullinit --> ACTIVE
 *   ACTIVE     -- finalize ------> FINALIZED
 *   FINALIZED  -- init ----------> as from FRESH: a second program
 *   any        -- protocol error > CLOSING, until the host call returns
 *   any        -- eof, exit -----> GONE: the rank has no PMI any more
 */
enum rank_state {
	RANK_ABSENT,
	RANK_FRESH,
	RANK_HANDSHAKE,
	RANK_ACTIVE,
	RANK_FINALIZED,
	RANK_CLOSING,
	RANK_GONE,
};

#define IN(state) (1u << (state))
#define IN_LIVE (IN(RANK_FRESH) | IN(RANK_HANDSHAKE) | \
		 IN(RANK_ACTIVE) | IN(RANK_FINALIZED))

/*
 * The session of PMIx:
 *
 *   NONE      -- connected --> ACTIVE
 *   ACTIVE    -- finalized --> FINALIZED
 *   FINALIZED -- connected --> ACTIVE: another program
 *   ACTIVE    -- lost -------> LOST: the rank cannot take part any more
 */
enum rank_pmix {
	RANK_PMIX_NONE,
	RANK_PMIX_ACTIVE,
	RANK_PMIX_FINALIZED,
	RANK_PMIX_LOST,
};

/* The rank's slot (engine_slots.c). */
enum rank_slot_use {
	RANK_SLOT_NONE,   /* the rank does not use it */
	RANK_SLOT_READ,   /* the rank has hung up: fetches find what it has put there */
	RANK_SLOT_ENTERS, /* the rank enters collectives by it, too */
};

/*
 * The values of a rank that a group of this hash knows: rank_session.put when it had a
 * barrier.
 */
struct group_known {
	uint64_t members;
	uint64_t upto;
};

/* A rank as fetches saw it last: a difference shows that it has put something. */
struct fetch_seen {
	uint64_t put;
	uint64_t shown;
	enum rank_state state;
};

struct rank_session {
	struct pmi_server *server;
	uint32_t slot;
	uint32_t rank;
	enum rank_state state; /* of PMI */
	enum rank_state before; /* GONE: the state that the session had */
	enum rank_pmix pmix;
	bool ended;         /* the rank's process has */
	uint32_t writer;    /* the process of the message that is handled; 0: unknown */
	uint32_t owner;     /* the process that has sent init last; 0: unknown */
	bool numbered;      /* its environment has: */
	uint32_t number;    /* PMI_RANK */
	uint32_t refused;   /* one that has sent init beside it, or 0 */
	uint32_t refused_inits; /* of processes that were refused, without an answer yet */
	bool refused_waits; /* a refused process has called abort, and may wait for an answer */
	bool refusal_told;
	uint32_t pmix_programs; /* programs that started PMIx */
	bool pmix_asks;     /* its PMIx client waits for an answer */
	bool pmix_known;    /* the socket of the PMIx client is: */
	unsigned char pmix_socket[PMIX_SOCKET_BYTES];
	enum pmi_protocol protocol;
	int extension;      /* version agreed on, 0: none */
	enum rank_slot_use slot_use;
	bool finalized;     /* the latest program has */
	bool unstarted;     /* the rank exited without starting PMI or PMIx, */
	bool failed;        /* and is known to have failed */
	bool told;          /* of a collective that has failed */
	bool spawner;       /* has spawned processes of PMIx, which may connect */
	uint32_t ticket;    /* in its slot: of what it enters next (slots.h) */
	bool odd_logged;    /* an odd request of it has been logged */
	bool skip_spawns;   /* PMI-1: the spawn they belong to has failed */
	struct buf input;   /* of the writer, */
	struct buf aside;   /* of the owner while another process writes */
	struct buf pending; /* KVS records put since the last fence */
	uint64_t put;       /* bytes of records before those */
	struct group_known groups[GROUPS_RECENT]; /* the latest first */
	size_t in_flight;   /* bytes in collectives that have not ended */
	struct entered *entered;
	struct hold *holds;
	size_t waits;       /* see RANK_WAITS_MAX */
	struct fetch_ask *fetch_asks; /* fetches of the rank, */
	uint32_t nfetches;
	struct fetch_wait *fetch_waits; /* requests for values that the rank puts */
	struct fetch_seen seen; /* when these were looked for */
	struct payload_vec kept; /* fenced records of the rank, but */
	bool kept_cut;           /* not all */
	struct spawn_request *spawn; /* PMI-1: collected so far */
	char pmi_why[WHY_MAX]; /* why PMI is GONE, or CLOSING */
	char why[WHY_MAX];  /* why the rank ended; or an abort that will end it */
};

/* ---- rank.c, rank_session.c, rank_end.c, rank_records.c, rank_commands.c ---- */

void rank_open(struct rank_session *ss);
void rank_input(struct rank_session *ss, const char *data, size_t len);
/* Start over for another program on the same connection. */
void rank_restart(struct rank_session *ss);
/* Close a connection whose peer broke the rules; it is gone at the next settle. */
void rank_fail(struct rank_session *ss, const char *why);
/* The rank's session of PMI is over: `how` it ended, for people. Idempotent. */
void rank_leave_pmi(struct rank_session *ss, const char *how);
/* The rank's process has ended; `how`, for people. Idempotent. */
void rank_end(struct rank_session *ss, const char *how);
/* Drop what the session of PMI has asked for and what it holds. */
void rank_drop(struct rank_session *ss);
/* The session of PMI is neither gone nor about to be. */
bool rank_is_live(const struct rank_session *ss);
/* The rank does not use PMI, and never did. */
bool rank_is_unused(const struct rank_session *ss);
/* The rank has used PMI or PMIx, and has finalized each that it used. */
bool rank_is_finalized(const struct rank_session *ss);
/* The handlers of what PMI-1 and PMI-2 have alike. */
void rank_handle_put(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m);
void rank_handle_fence(struct rank_session *ss, const struct rank_request *rq,
		       const struct pmi_message *m);
void rank_handle_get(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m);
void rank_handle_abort(struct rank_session *ss, const struct rank_request *rq,
		       const struct pmi_message *m);
/* The program has finalized; another one may come. */
void rank_handle_finalize(struct rank_session *ss,
			  const struct rank_request *rq,
			  const struct pmi_message *m);
/* Add a record to what the next fence carries. 0 or a negative errno. */
int rank_put_record(struct rank_session *ss, const struct pmi_field *key,
		    const struct pmi_field *value);
/*
 * Memory for `len` > 0 bytes of records; and, once they are there: check them and add them
 * to the rank's next fence. NULL, false: the rank got an error.
 */
void *rank_room_for_records(struct rank_session *ss, const struct rank_request *rq,
			    size_t len);
bool rank_take_records(struct rank_session *ss, const struct rank_request *rq, size_t len);
/* Bytes the session may still put or have in flight. */
size_t rank_room(const struct rank_session *ss);

/* ---- rank_owner.c ---- */

#define RANK_TAKEN "another process of the rank uses PMI"

/* True: the process lives. Writes its name, or "". */
bool rank_process_lives(const struct rank_session *ss, uint32_t pid,
			char name[PMI_PROCESS_NAME_MAX]);
/* PMI has a session of a process that lives. */
bool rank_uses_pmi(const struct rank_session *ss);
/*
 * True: another live process uses PMI in this rank, so `process` (0: unknown), which has
 * sent init, is refused, and its later messages are dropped. rank_answer_refused answers
 * the init; before that, the processes must not both wait for answers.
 */
bool rank_is_taken(struct rank_session *ss, uint32_t process);
/*
 * True: the message shows that the owner and a refused process both wait for answers, and
 * each may read the other's, so the step ends.
 */
bool rank_is_shared(struct rank_session *ss);
/* True: the current message comes from a refused process. */
bool rank_is_of_refused(const struct rank_session *ss);
/* As above, for a message other than init, which has been answered then. */
bool rank_is_refused(struct rank_session *ss, const struct rank_request *rq);

/* Answer a process that was refused, if it still waits for that, and tell the user. */
void rank_answer_refused(struct rank_session *ss);
/*
 * Tell the user that process `second` was refused `starts` ("PMI", "PMIx"), for process
 * `first` `uses` the same or the other one. 0: a process is not known.
 */
void rank_tell_refusal(struct rank_session *ss, const char *starts, uint32_t second,
		       const char *uses, uint32_t first);

/* ---- rank_number.c ---- */

/* The owner has started PMI-1: tell the user if it takes itself for another rank. */
void rank_look_at_number(struct rank_session *ss);

/* ---- rank_admission.c ---- */

/* An init of the process is admitted: its session begins. */
typedef void (*admission_start)(struct rank_session *ss, const struct rank_request *rq,
				int version, uint32_t process);
/* Handler of PMIX_MSG_ADMIT. */
int admission_on_admit(struct pmi_server *s, const struct pmix_msg *m,
		       struct payload *message);
/*
 * An init of ss->writer, which may not be the process that uses PMIx: true: it waits, and
 * `start` or a refusal follows.
 */
bool admission_waits(struct rank_session *ss, const struct rank_request *rq, int version,
		     admission_start start);
/* See pmi_server_holder_found. */
void admission_found(struct pmi_server *s, int found);
void admissions_free(struct pmi_server *s);

/* ---- rank_extension.c ---- */

/* Agree on an extension in fullinit; adds fields, and descriptors to pass. */
void ext_negotiate(struct rank_session *ss, const struct pmi_message *m,
		   struct pmi_writer *w, struct passed_fds *fds);
void ext_put(struct rank_session *ss, const struct rank_request *rq,
	     const struct pmi_message *m);
void ext_fence(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_message *m);
void ext_allgather(struct rank_session *ss, const struct rank_request *rq,
		   const struct pmi_message *m);
void ext_read(struct rank_session *ss, const struct rank_request *rq,
	      const struct pmi_message *m);
