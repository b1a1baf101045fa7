/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of the server engine share. The contract is server.h.
 *
 *   server.c       the host's entry points, and the settle after each
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
 *   server_slots.c what ranks enter through shared memory
 *   server_status.c what people and tools are told
 *   server_coll.c  collectives that ranks have entered
 *   server_coll_ops.c what libcoll asks for, and ends of collectives
 *   server_group.c barriers of groups of ranks
 *   server_fetch.c values of one rank, asked for by another
 *   group_kvs.c    values that a group has exchanged and the step has not fenced
 *   server_pmix.c  messages of who serves the node's PMIx clients
 *   server_pmix_send.c messages to it
 *   server_pmix_ranks.c ranks as PMIx clients
 *   server_pmix_enter.c what clients enter together
 *   server_pmix_fetch.c what one asks of another
 *   server_pmix_names.c what they publish and spawn
 *   results.c      results of collectives: in the region or in the heap
 *   attrs.c        node and job attributes
 *   topology.c     the node's topology as a file
 *   requests.c     what srun answers: names, spawn; aborts and reports
 *
 * No file calls one that calls it, also by way of others: what a lower file must cause
 * above waits for the settle, or is a function that it was given.
 */
#ifndef PMI2X_SERVER_PRIVATE_H
#define PMI2X_SERVER_PRIVATE_H

/* An item that could not be added has no table; the default ends the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libcoll/fetch.h"
#include "libengine/group_kvs.h"
#include "libengine/server.h"
#include "libpmi/control.h"
#include "libpmi/group.h"
#include "libpmi/message.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/spawn.h"
#include "libshm/image.h"

#define THRID_MAX 64            /* bytes of a thread id, NUL included */
#define ANSWER_TEXT_MAX 640     /* bytes of an error text, NUL included */
#define WHY_MAX 256             /* bytes of a reason, NUL included */
#define RANK_WAITS_MAX 1024  /* unanswered requests of a rank to srun and
                                   for node attributes */
#define RING_VALUE_MAX 65536    /* bytes a rank shows to a neighbour */
#define FETCH_KEPT_MAX 65536    /* bytes of what a rank has put before its fences */
#define GROUPS_RECENT 4         /* groups of which a rank knows what they have had */

/* A job attribute that PMI-1 asks for as a key. */
#define MAPPING_KEY "PMI_process_mapping"
/* A key of PMI-1 for an attribute of the node. */
#define TOPOLOGY_KEY "PMI_hwloc_xmlfile"

struct server_attr;
struct attr_wait;
struct srun_request;
struct pmix_entered;
struct pmix_ask;
struct pmix_wanted;
struct pmix_msg;

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

struct rank_session;
struct rank_request;

/* One row of a protocol's table. */
struct command {
	const char *name;
	const char *response;
	unsigned states;     /* IN(...) of the states that allow it */
	void (*handle)(struct rank_session *ss, const struct rank_request *rq,
		       const struct pmi_message *m);
	const char *failure; /* name of an error response; NULL: response */
	bool extension;      /* only after the extension was agreed on */
	bool tagged;         /* PMI-1 1.2: the response has a tag */
	bool starts;         /* of PMI-1, but the first of a PMI-2 program, too */
};

/* A row: what every command has, then what few have, by name. */
#define COMMAND(name_, response_, states_, ...) \
	{.name = name_, .response = response_, .states = states_, \
	 .handle = __VA_ARGS__}

/* The part of a request that an answer needs, also a later one. */
struct rank_request {
	const struct command *command;
	enum pmi_protocol protocol;
	char thrid[THRID_MAX]; /* "" when there was none */
	uint32_t ticket; /* over 0: came through the slot, answered there */
	uint32_t cell;   /* of the slot */
	int32_t tag;     /* of a barrier's group; 0: it has none */
};

/* Beside enum coll_kind: the barrier of a group. Its number is the server's. */
#define ENTERED_GROUP COLL_KINDS

/* A collective that a rank has entered. */
struct entered {
	struct entered *prev, *next;
	enum coll_kind kind; /* or ENTERED_GROUP */
	uint32_t seq;
	size_t bytes;  /* contributed, counted in rank_rank_session.in_flight */
	size_t stride; /* of a gather */
	bool failed;   /* its answer is held back; of a group there is none */
	struct payload *records; /* of a fence: what it brings, or NULL */
	uint64_t upto; /* of a fence or group: rank_session.put, then */
	uint64_t members; /* of a group: their hash */
	uint32_t count; /* of a group: its members */
	uint32_t name;  /* of a group, for events: a hash of members and tag */
	struct rank_request rq;
};

/*
 * The values of a rank that a group of this hash knows: rank_session.put when it had a
 * barrier.
 */
struct group_known {
	uint64_t members;
	uint64_t upto;
};

/* A published gather and how many of this node's ranks still want it. */
struct gather_result {
	uint64_t offset;
	uint32_t holders;
	struct payload *keep; /* what it lies in, or NULL */
};

/* A gather whose space the rank has not given back, by its offset: ranks ask for it. */
struct hold {
	uint64_t offset;
	struct gather_result *gather;
	UT_hash_handle hh;
};

struct admission;
struct fetch_wait;
struct fetch_ask;

/* Meanings of coll_fetch.op here. */
enum fetch_op { FETCH_VALUE = 1, FETCH_PMIX = COLL_FETCH_PMIX };

/* By these it shows whether a rank has put something. */
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
	uint32_t refused;   /* one that has sent init beside it, or 0 */
	bool refused_waits; /* that one has aborted, and may wait for an answer */
	bool refusal_told;
	bool pmix_known;    /* the socket of the PMIx client is: */
	unsigned char pmix_socket[PMIX_SOCKET_BYTES];
	enum pmi_protocol protocol;
	int extension;      /* version agreed on, 0: none */
	bool slotted;       /* it was given the slots */
	bool shows;         /* what it puts is seen in the slots, */
	bool finalized;     /* the program that did that has */
	bool unstarted;     /* it has ended without starting PMI or PMIx, */
	bool failed;        /* and it is known that it did badly */
	bool told;          /* of a collective that has failed */
	bool spawner;       /* it has asked for processes of PMIx, which may connect */
	uint32_t ticket;    /* slotted: of what it enters next (slots.h) */
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
	struct fetch_wait *fetch_waits; /* and of what it puts */
	struct fetch_seen seen; /* when these were looked for */
	struct payload_vec kept; /* what it has put and was fenced, but */
	bool kept_cut;           /* not all */
	struct spawn_request *spawn; /* PMI-1: collected so far */
	char pmi_why[WHY_MAX]; /* why PMI is GONE, or CLOSING */
	char why[WHY_MAX];  /* why the rank ended; or an abort that will end it */
};

/* Results of collectives (results.c). */
struct results {
	struct region_writer *region; /* NULL: in the heap */
	struct payload_vec images;    /* heap: fences, oldest first */
	struct heap_gather *gathers;
	uint64_t next_offset;
	size_t heap_used;
};

/* The node's topology (topology.c). */
struct topology {
	struct topology_wait *waits;
	char *path;    /* NULL: there is none (yet) */
	bool wanted;   /* the host has been asked, */
	bool answered; /* and has answered */
};

/* The program that serves the node's PMIx clients (server_pmix.c). */
struct pmix_server {
	bool served; /* somebody may, */
	bool hello;  /* has said so, */
	bool ready;  /* lets clients in, */
	bool lost;   /* and does no more */
	bool waits;  /* for the topology, to be told of the namespace */
	bool opened; /* it has been told of that, */
	bool pmi;    /* and that a rank uses PMI; or is to be told */
	const char *none; /* why nobody ever will serve; NULL: it is not so */
	uint32_t uid, gid;
	struct pmix_entered *ops;
	uint32_t next; /* number of an operation of some ranks */
	struct pmix_ask *asks;       /* fetches of this node, */
	struct pmix_wanted *wanted;  /* and of its ranks */
	uint64_t next_fetch;
	struct payload_vec events;   /* of other nodes, until it is ready */
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
	struct server_attr *attrs;
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
	bool fence_near;  /* a rank has put something since the last fence */
	bool ready;       /* srun was told that rank 0 has started */
	bool srun_lost;
	bool slots_stale; /* look into the slots before the host call returns */
	bool slots_eager; /* a collective failed: who enters is told at once */
	bool slots_replied;
	bool settle;      /* sessions are CLOSING */
	bool reported;    /* srun was told that a collective has failed, */
	bool gave_up;     /* and that a rank has ended for it */
	bool second_told; /* of a program that found PMI_FD closed */
	bool closer_told; /* of a process that closed PMI_FD and started no PMI */
	bool ending;      /* it was asked to end the step, */
	bool endless;     /* but cannot, or has not */
	bool group_refused; /* the user has been told of one */
	char *held;       /* why: no rank gets this answer; NULL: they do */
};

/* ---- engine.c ---- */

const char *server_node_name(const struct pmi_server *s);
/* The number of the command by which a rank was spawned, or -1. */
int server_appnum(const struct pmi_server *s, uint32_t rank);
/* For traces; costs a branch when there is none. */
static inline void server_event(struct pmi_server *s, enum pmi_event event,
				uint32_t slot, enum coll_kind kind,
				uint32_t seq)
{
	if (s->ops->event)
		s->ops->event(s->arg, event, slot, kind, seq);
}
/* Somebody uses PMI or PMIx. */
void server_use(struct pmi_server *s);

/* ---- spawner.c ---- */

/* A rank has sent init. */
void server_started(struct pmi_server *s, const struct rank_session *ss);
/*
 * A rank of a spawned step has ended without finalizing. `well`: nobody says that it has
 * failed.
 */
void server_tell_spawner(struct rank_session *ss, bool well);

/* ---- rank_session.c, rank_end.c, rank.c, rank_args.c, rank_commands.c ---- */

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
/* A key or value is in `m`, with a length in 1..max or 0..max; else answers. */
const struct pmi_field *rank_key(struct rank_session *ss,
				 const struct rank_request *rq,
				 const struct pmi_message *m,
				 const char *name, size_t max);
const struct pmi_field *rank_value(struct rank_session *ss,
				   const struct rank_request *rq,
				   const struct pmi_message *m,
				   const char *name, size_t max);
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
 * Where `len` > 0 bytes of records go, and once they are there: they are checked,
 * and belong to the rank's next fence. NULL, false: the rank has been answered.
 */
void *rank_room_for_records(struct rank_session *ss, const struct rank_request *rq,
			    size_t len);
bool rank_take_records(struct rank_session *ss, const struct rank_request *rq, size_t len);
/* Bytes the session may still put or have in flight. */
size_t rank_room(const struct rank_session *ss);
/* One more request waits; false (and answered) over RANK_WAITS_MAX. */
bool rank_may_wait(struct rank_session *ss, const struct rank_request *rq);

/* ---- rank_owner.c ---- */

#define RANK_TAKEN "another process of the rank uses PMI"

/* Does a process live? Writes its name, or "". */
bool rank_process_lives(const struct rank_session *ss, uint32_t pid,
			char name[PMI_PROCESS_NAME_MAX]);
/* PMI has a session of a process that lives. */
bool rank_uses_pmi(const struct rank_session *ss);
/*
 * Does a live process other than this one (0: unknown) use PMI? Then this one is refused:
 * what else it sends is not the rank's; and that is told.
 */
bool rank_is_taken(struct rank_session *ss, uint32_t process);
/* Does what comes now come from a process that was refused for that? */
bool rank_is_of_refused(const struct rank_session *ss);
/* As above, for a message other than init, which has been answered then. */
bool rank_is_refused(struct rank_session *ss, const struct rank_request *rq);

/* Answer the abort of the process that was refused, if it still waits for that. */
void rank_answer_refused(struct rank_session *ss);
/*
 * Tell the user that process `second` was refused `starts` ("PMI", "PMIx"), for process
 * `first` `uses` the same or the other one. 0: a process is not known.
 */
void rank_tell_refusal(struct rank_session *ss, const char *starts, uint32_t second,
		       const char *uses, uint32_t first);

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

/* ---- rank_pmi1.c, rank_pmi2.c: the tables ---- */

const struct command *pmi1_command(const char *name);
const struct command *pmi2_command(const char *name);

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

/* ---- answer.c ---- */

/* Begin a response; the caller adds fields to the writer, then ends it. */
struct pmi_writer *answer_begin(struct rank_session *ss,
				const struct rank_request *rq, int rc);
void answer_end(struct rank_session *ss, const struct rank_request *rq);
/* The descriptors (NULL: none) travel with the first byte, in order. */
void answer_end_fds(struct rank_session *ss, const struct rank_request *rq,
		    const struct passed_fds *fds);
void answer_ok(struct rank_session *ss, const struct rank_request *rq);
/* The value that was asked for; NULL: there is none (PMI-2 only). */
void answer_found(struct rank_session *ss, const struct rank_request *rq,
		  const char *value, size_t len);
/* A gather has ended and lies there. */
void answer_gathered(struct rank_session *ss, const struct rank_request *rq,
		     uint64_t offset, uint64_t len);
/* A ring has ended. */
void answer_ring(struct rank_session *ss, const struct rank_request *rq,
		 const struct coll_ring_result *result);
void answer_error(struct rank_session *ss, const struct rank_request *rq,
		  int rc,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The PMI code of a negative errno, and what to say about it. */
int answer_rc(int error);
const char *answer_text(int error);

/* ---- server_coll.c ---- */

void collective_fence(struct rank_session *ss, const struct rank_request *rq);
/* These take the references; NULL: there was no memory. */
void collective_gather(struct rank_session *ss, const struct rank_request *rq,
		       struct payload *contribution, size_t stride);
void collective_ring(struct rank_session *ss, const struct rank_request *rq,
		     uint32_t count, struct payload *left,
		     struct payload *right);
/* The rank will not read the gather at `offset` again. */
void collective_done(struct rank_session *ss, uint64_t offset);
void collective_done_all(struct rank_session *ss);
/* Forget what the session has entered and holds. */
void collective_drop(struct rank_session *ss);
/* Failures while answers were held back are answered now, but those of PMIx. */
void collective_answer_failed(struct pmi_server *s);
/* The rank enters a group's barrier. NULL: no memory. */
struct entered *collective_note_group(struct rank_session *ss,
				      const struct rank_request *rq);
/* Counts the bytes of an entry. 0 or -ENOBUFS. */
int collective_count(struct rank_session *ss, struct entered *e, size_t bytes);
/* By its number; NULL: the rank has started over meanwhile, or has gone. */
struct entered *collective_find_group(const struct rank_session *ss, uint32_t id);
/* Takes an entry out and frees it. */
void collective_forget(struct rank_session *ss, struct entered *e);
/* The rank's entry of a collective that has ended, taken out; or NULL. */
struct entered *collective_take(struct rank_session *ss, enum coll_kind kind, uint32_t seq);
void collective_free(struct entered *e);
/* The rank's collective has failed: say so, or hold the answer back. */
void collective_fail(struct rank_session *ss, enum coll_kind kind, uint32_t seq,
		     const char *reason);
/* The rank reads a gather, and gives it back by collective_done. 0 or -ENOMEM. */
int collective_hold(struct rank_session *ss, struct gather_result *g);
void collective_unhold(struct pmi_server *s, struct gather_result *g);
/* As collective_report, with the name of the collective. */
void collective_report_fault(struct pmi_server *s, enum coll_kind kind, uint32_t seq,
			     const char *reason);
/* The first failure of the node's is reported, or ends the step. */
void collective_report(struct pmi_server *s, const char *text, const char *reason);
/* End the step, whatever the user wants, for this. False: that cannot be. */
bool collective_end_step(struct pmi_server *s, const char *text,
			 const char *reason);

/* ---- server_coll_ops.c ---- */

extern const struct coll_ops server_coll_ops;

/* ---- server_group.c ---- */

/* A line about a group's barrier that has lasted `seconds`, if there is one. */
void group_tell_wait(struct pmi_server *s, unsigned seconds,
		     char text[PMI_WAIT_TEXT_MAX]);

/* barrier_in of PMI-1, with a group or without. */
void group_handle_barrier(struct rank_session *ss, const struct rank_request *rq,
			  const struct pmi_message *m);
/* barrier_in of the extension, with a group. */
void group_handle_ext(struct rank_session *ss, const struct rank_request *rq,
		      const struct pmi_message *m);
/*
 * The barrier that was entered with this number has ended: with a result, or for `why`.
 */
void group_ended(struct rank_session *ss, uint32_t id, struct payload *result,
		 const char *why);

/* ---- server_pmix.c ---- */

/* See pmi_server_pmix_input and pmi_server_pmix_lost. */
int pmix_input(struct pmi_server *s, struct payload *message);
void pmix_lost(struct pmi_server *s, const char *why);
/* Another node tells an event of PMIx (coll_ops.flooded). */
void pmix_flooded(void *server, struct payload *event);
void pmix_topology_known(struct pmi_server *s);
/*
 * A link comes up, or a rank has ended: who waits for this node in a PMIx fence hears that
 * nobody serves PMIx here, if it is so.
 */
void pmix_tell_none(struct pmi_server *s);
/* The rank takes part in no collective of PMIx any more. */
void pmix_lose_rank(struct rank_session *ss, const char *why);
/* The rank has ended: whoever serves PMIx is told. */
void pmix_rank_gone(struct rank_session *ss);
/*
 * It has ended badly, or (not known) so it seems: the step is ended, unless the site wants
 * otherwise, if it was a client, or if it is known and others are, whom it never joined.
 */
void pmix_rank_failed(struct rank_session *ss, bool known);
/*
 * Has the node clients while one of its ranks has not started PMIx, or has ended without?
 * libpmix does not tell of a fence that waits for a rank of its own node, so the clients
 * may be in one.
 */
bool pmix_misses_rank(const struct pmi_server *s);
/* Such a rank, which uses PMI neither. */
bool pmix_is_late(const struct rank_session *ss);
void pmix_tell_wait(const struct pmi_server *s, unsigned seconds,
		    char text[PMI_WAIT_TEXT_MAX]);
void pmix_free(struct pmi_server *s);
/* A rank that is a client, or NULL. */
const struct rank_session *pmix_find_client(const struct pmi_server *s);
/* A rank in a list in ascending order, or NULL. */
const uint32_t *pmix_find_rank(const uint32_t *ranks, uint32_t count, uint32_t rank);
/* One of this node, or NULL. */
struct rank_session *pmix_own_rank(const struct pmi_server *s, uint32_t rank);
/* The rank, of this node, that a message is about; or NULL after a line in the log. */
struct rank_session *pmix_rank_of(struct pmi_server *s, const struct pmix_msg *m);
/* A rank uses PMI: clients of PMIx wait for PMIX_MSG_ADMITTED from here on. */
void pmix_tell_pmi(struct pmi_server *s);
void pmix_send_message(struct pmi_server *s, const struct pmix_msg *m,
		       struct payload *data);
/* Bytes of a text (NULL: none), as many as a message may have. */
size_t pmix_text_len(const char *text);
/* The text of a message as people may see it; PMIX_MSG_TEXT_MAX bytes and a NUL. */
void pmix_copy_text(const struct pmix_msg *m, char *out);

/* ---- server_pmix_enter.c ---- */

/* In what libcoll is given as the id of an entry: it is not of a group. */
#define PMIX_SUBSET_ID ((uint64_t)1 << 32)

/* Handler of messages. */
int pmix_on_enter(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message);
/* Fence `seq` has ended: with a result, or for `why`. */
void pmix_ended(struct pmi_server *s, uint32_t seq, struct payload *result,
		const char *why);
/* As above, for an entry of a subset, by its number. */
void pmix_subset_ended(struct pmi_server *s, uint32_t number,
		       struct payload *result, const char *why);
/* The name of a subset of this op, after "PMIx "; NULL: it is no such. */
const char *pmix_subset_name(uint8_t op);
/* See collective_answer_failed. */
void pmix_answer_failed(struct pmi_server *s);
void pmix_free_entered(struct pmi_server *s);

/* ---- server_pmix_fetch.c ---- */

/* In what libcoll is given as the id of a fetch: it is not of a rank. */
#define PMIX_FETCH_ID ((uint64_t)1 << 63)

/* Handlers of messages. */
int pmix_on_fetch(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message);
int pmix_on_fetched(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message);
/* See coll_ops. */
int pmix_fetch_asked(struct pmi_server *s, uint64_t token,
		     const struct coll_fetch *what);
void pmix_fetch_ended(struct pmi_server *s, uint64_t number,
		      const struct coll_fetched *end);
/* Requests to ranks of the node go to the program that serves them: it is ready. */
void pmix_pass_on_fetches(struct pmi_server *s);
/* It will not be answered any more, for `why`. */
void pmix_fail_fetches(struct pmi_server *s, const char *why);
void pmix_free_fetches(struct pmi_server *s);

/* ---- server_pmix_names.c ---- */

/* Handlers of messages. */
int pmix_on_names(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message);
int pmix_on_spawn(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message);

/* ---- server_fetch.c ---- */

/* A fence has published these records (NULL: none) of the rank. */
void fetch_keep(struct rank_session *ss, struct payload *records);
/* See coll_ops. */
int fetch_asked(struct pmi_server *s, uint64_t token,
		const struct coll_fetch *what);
void fetch_ended(struct pmi_server *s, uint64_t id,
		 const struct coll_fetched *end);
/* Ranks may have put something: answer who waits for it. */
void fetches_look(struct pmi_server *s);
/* See pmi_server_fetch_due. */
void fetches_expire(struct pmi_server *s);
void fetches_free(struct pmi_server *s);
/* libcoll knows that the rank has gone. */
void fetch_rank_gone(struct rank_session *ss);
/* A session has ended: what it has asked for is nobody's. */
void fetch_drop(struct rank_session *ss);
void fetch_handle(struct rank_session *ss, const struct rank_request *rq,
		  const struct pmi_message *m);
void fetch_handle_cancel(struct rank_session *ss, const struct rank_request *rq,
			 const struct pmi_message *m);

/* ---- server_slots.c ---- */

/* The session is given the slots. */
void slots_attach(struct rank_session *ss);
/*
 * It enters a collective over its socket, after what its slot holds. False: that
 * could not be entered, and the session has failed: what follows must not take its place.
 */
bool slots_count_socket(struct rank_session *ss);
/* Take what the session's own slot holds. */
void slots_take_own(struct rank_session *ss);
/* Take what all slots hold; say how many more are needed to look again. */
void slots_update(struct pmi_server *s);
/* A collective has failed. */
void slots_failed(struct pmi_server *s);
/* Wake the ranks if anything was answered. */
void slots_flush(struct pmi_server *s);

/* ---- results.c ---- */

void results_init(struct results *k, struct region_writer *region);
void results_free(struct results *k);
/*
 * All: 0, -ENOSPC, -EPROTO or -ENOMEM. The image is checked here, unless it is
 * `trusted`: built by this node. A gather has this number of `values`: empty ones cost
 * its sender nothing, and here `stride` each. It may stay in its payload: then
 * *keep is a reference that holds it, instead of a later results_release.
 */
int results_publish_fence(struct results *k, struct payload *image, bool trusted);
int results_publish_gather(struct results *k, struct payload *image, bool trusted,
			   uint32_t values, size_t stride, uint64_t *offset,
			   uint64_t *len, struct payload **keep);
/* Memory for an image of this node: in the region, where it pays. Or NULL. */
struct payload *results_room(struct results *k, size_t len);
/*
 * A place in the region for an image that is said to have `len` bytes, where that
 * pays, or NULL; and memory for its first bytes (elsewhere it is there). 0 or -ENOSPC.
 */
struct payload *results_place(struct results *k, size_t len);
int results_extend(struct results *k, struct payload *place, size_t len);
/* Make look-ups faster: a bounded piece of work. True: go on. */
bool results_tidy(struct results *k);
/* Is there such work? */
bool results_untidy(const struct results *k);
/* Make `len` bytes of records the newest generation. */
int results_publish_records(struct results *k, const void *records, size_t len);
void results_release(struct results *k, uint64_t offset);
bool results_find(const struct results *k, const char *key, size_t key_len,
		  const char **value, size_t *value_len);
const void *results_bytes(const struct results *k, uint64_t offset, uint64_t len);

/* ---- attrs.c ---- */

void attrs_free(struct pmi_server *s);
void attrs_put(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_field *key, const struct pmi_field *value);
void attrs_get(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_field *key, bool wait);
/* A session has ended: its own waits are dropped, hopeless ones answered. */
void attrs_drop(struct rank_session *ss);
void attrs_fail_hopeless(struct pmi_server *s);
/* A line about a get that has waited for `seconds`, if there is one. */
void attrs_tell_wait(const struct pmi_server *s, unsigned seconds,
		     char text[PMI_WAIT_TEXT_MAX]);
/* All that wait fail. */
void attrs_expire(struct pmi_server *s, const char *why);
/* Write the value of a job attribute; false when there is no such. */
bool attrs_job(const struct rank_session *ss, const char *key, struct buf *out);

/* ---- topology.c ---- */

/* A get of TOPOLOGY_KEY is answered, now or later: true. False: it is another key. */
bool topology_get(struct rank_session *ss, const struct rank_request *rq,
		  const struct pmi_field *key);
/* The host is asked for it: true; false: it is known already, or there is none. */
bool topology_want(struct pmi_server *s);
void topology_drop(struct rank_session *ss);
/* See pmi_server_topology. */
void topology_known(struct pmi_server *s, const char *path);

/* ---- requests.c ---- */

/* The handlers of these commands in both protocols. */
void requests_publish(struct rank_session *ss, const struct rank_request *rq,
		      const struct pmi_message *m);
void requests_unpublish(struct rank_session *ss, const struct rank_request *rq,
			const struct pmi_message *m);
void requests_lookup(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m);
void requests_spawn(struct rank_session *ss, const struct rank_request *rq,
		    const struct spawn_request *spawn);
/* srun's answer to a request of a PMIx client, or why there will be none. */
typedef void (*request_answered)(struct pmi_server *s, enum control_type type,
				 uint64_t id, const struct control_msg *reply);
/*
 * A request of a PMIx client, NAMES or SPAWN, which is answered by `answered`. 0 or a
 * negative errno: that it will not be.
 */
int requests_pmix(struct rank_session *ss, enum control_type type, uint64_t id,
		  const void *body, size_t len, request_answered answered);
/* The rank aborts: alone, or with it the whole step. */
void requests_abort(struct rank_session *ss, bool step, int code, const char *text);
/* The first rank of a spawned step has started; or why it never will. */
void requests_ready(struct pmi_server *s, const char *why_not);
/*
 * The spawner of the step, or the step that this rank has spawned, may wait for the
 * rank: it has ended.
 */
void requests_ended(struct rank_session *ss);
/* Have srun end the step, with this exit code, and say why. 0 or a negative errno. */
int requests_end_step(struct pmi_server *s, const char *why, int code);
/* Tell the user, through srun. */
void requests_report(struct pmi_server *s, const char *text);
/* As above, of a program, while the step goes on: later failures are still reported. */
void requests_note(struct pmi_server *s, const char *text);
/* A rank has not survived what was reported. */
void requests_gave_up(struct pmi_server *s);
/* A frame from srun. 0 or -EPROTO. */
int requests_reply(struct pmi_server *s, const void *data, size_t len);
/* Drops the requests of one interface of the rank. */
void requests_drop(struct rank_session *ss, bool of_pmix);
void requests_fail_all(struct pmi_server *s, const char *why);
/* A line about the request that has waited longest, if there is one. */
void requests_tell_wait(const struct pmi_server *s, unsigned seconds,
			char text[PMI_WAIT_TEXT_MAX]);

#endif
