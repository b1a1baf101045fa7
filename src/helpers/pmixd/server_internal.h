/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that the files of the server share. */
#pragma once

#include "helpers/pmixd/collect.h"
#include "helpers/pmixd/info.h"
#include "helpers/pmixd/server.h"
#include "libio/owner.h"
#include "libpmi/names.h"
#include "libpmi/pmix_nspace.h"

/* A rank's use of PMIx, by one process: states in server_session.c. */
struct client_session {
	bool open;     /* a client has come, and is not known to have left */
	bool asked;    /* open: libpmix does not have it yet */
	int fd;        /* open: the connection; libpmix may close it at any time */
	bool lost;     /* the last client that libpmix had left without PMIx_Finalize */
	bool gone;     /* the rank's process has exited */
	bool missed;   /* a fence of this node could not be entered */
	bool told;     /* lost: the agent knows */
	int64_t lost_at; /* lost: since then, as server_now */
	uint32_t ended;  /* number of the rank's clients that libpmix had and that have left */
	struct owner_peer peer; /* open: the client's socket */
	int64_t asks_since; /* of the request that the agent knows to wait; 0: none does */
};

/* A namespace that is served. */
struct job {
	struct job *next;
	uint32_t number; /* the host's */
	struct pmix_nspace nspace;
	struct collect *collect;
	struct client_session *sessions; /* by slot */
	bool miscounted; /* libpmix leaves out a rank whose program was killed */
	bool pmi;        /* ranks of this node use PMI, too */
	uint64_t groups; /* number that this node has entered */
	uint32_t stall_ms; /* after which people want to hear of a wait; 0: never */
	int64_t look_at; /* server_now: the next look for requests that wait */
};

/* A call of libpmix that gets its answer once the agent has given one. */
struct call {
	struct call *next;
	uint64_t id;
	enum pmix_msg_type answer; /* the expected answer, such as ENDED */
	struct job *job;
	struct callback callback;
	bool group;                /* constructs a group */
	struct xns_connect *xns_connect; /* of a connection with other namespaces */
	uint32_t *ranks;           /* its members; NULL: all */
	uint32_t count;
	int64_t deadline; /* server_now: then it is answered; SERVER_NEVER: there is none */
	bool late;        /* answered already: the agent's answer is dropped */
};

#define SERVER_NEVER INT64_MAX

/*
 * Bounds of lists that clients make longer. Over one of them a client gets
 * PMIX_ERR_OUT_OF_RESOURCE, and the log has a line.
 */
#define CALLS_MAX 65536   /* calls of libpmix without an answer */
#define FETCHES_MAX 65536 /* requests of other nodes without an answer */
#define MEMBER_SETS_MAX 4096 /* different sets of processes that have connected */
#define REMOTE_NSPACES_MAX 1024 /* namespaces of other servers, asked about or connected */
#define REMOTE_BYTES_MAX ((size_t)64 << 20) /* of their data */

#define XNS_TAG_MAX 64

/* A connect across namespaces (PMIx_Connect, or a fence) that has not ended. */
struct xns_connect {
	bool with_data; /* members exchange what they have committed */
	uint32_t first, rank; /* members of the own namespace: the first, and one of this node */
	char tag[XNS_TAG_MAX];
	uint32_t count;
	pmix_proc_t remote_procs[]; /* the other members, by namespace and rank */
};

/* A request of the agent: the data of a rank of this node. */
struct fetch {
	struct fetch *next;
	uint64_t id;       /* of the request, the agent's */
	uint64_t dmodex_request; /* number of the event COMMITTED */
	uint32_t job, rank;
	int64_t deadline;  /* server_now; SERVER_NEVER: none */
};

struct server {
	const struct server_options *options;
	const struct library *library;
	struct events *events;
	struct link *link;
	const struct log_hook *log;
	struct job *jobs;
	struct call *calls;
	uint32_t ncalls;
	struct fetch *fetches;
	uint32_t nfetches;
	struct remote_nspace *remote_nspaces; /* data of processes with other servers */
	uint32_t nremote_nspaces;
	size_t remote_bytes;
	struct member_set *member_sets;
	uint32_t nmember_sets;
	bool full_told;         /* the log has the line about a bound */
	uint64_t last_id;       /* number of the last call or request to libpmix */
	bool initialized;       /* libpmix is */
	bool old_client;        /* has come */
};

/* ---- server.c ---- */

struct job *server_job(const struct server *s, uint32_t number);
struct job *server_job_named(const struct server *s, const char *name); /* NULL: none */
/* An answer to a call of libpmix, with data, malloc'ed, or none. */
void server_answer(const struct callback *callback, pmix_status_t status, char *data,
		   size_t len);
pmix_status_t server_status(int error); /* of a negative errno */
/* -ENOSPC after a line in the log, once: a client has reached the bound `max` of `what`. */
int server_full(struct server *s, const char *what, uint32_t max);
/* From now on; EVENT_NO_TIMEOUT: never. */
int64_t server_deadline(uint32_t ms);

/* ---- server_session.c; see server.h, too ---- */

/* Tell the agent that libpmix has let a client in. */
int server_tell_connected(struct server *s, const struct job *j, uint32_t rank);
/*
 * Tell libpmix how many clients the namespace has on this node, and nothing else of it:
 * without PMIX_REGISTER_NODATA it would also ask again for what it has asked already, and
 * count the clients of collectives that have begun anew, and wrongly.
 */
pmix_status_t server_count_clients(struct server *s, const char *nspace, uint32_t count);
/* The rank's client has finalized. */
void server_end_session(struct job *j, uint32_t rank);
/* The client's connection ended without PMIx_Finalize. */
void server_lose_session(struct server *s, struct job *j, uint32_t rank);
/* The last program of one of these slots was killed: libpmix reports that, or will. */
bool server_any_killed(const struct job *j, const uint32_t *slots, uint32_t count);
/* For that these slots do not enter what others may wait in. */
void server_miss(struct job *j, const uint32_t *slots, uint32_t count);
/* When the agent is to be told of a lost session, and telling it. */
int64_t server_sessions_due(const struct server *s);
int server_expire_sessions(struct server *s, int64_t now);
/* The rank's process has ended, without PMIx_Finalize. */
void server_rank_gone(struct job *j, uint32_t rank);

/* ---- server_asks.c ---- */

/* When to look for requests of clients that have no answer, and telling the agent of them. */
int64_t server_asks_due(const struct server *s);
int server_look_asks(struct server *s, int64_t now);

/* ---- server_job.c ---- */

/* NSPACE, DROP */
int server_add_job(struct server *s, const struct pmix_msg *m);
int server_drop_job(struct server *s, const struct pmix_msg *m);

/* ---- server_call.c: what libpmix asks of the agent ---- */

/* FENCE, GROUP, CONNECT */
int server_enter(struct server *s, struct job *j, struct event *e);
/* GET, also of a namespace that is not here: j is NULL. */
int server_get(struct server *s, struct job *j, struct event *e);
/* NAMES, SPAWN */
int server_ask(struct server *s, struct job *j, struct event *e);
/* ABORT */
int server_abort(struct server *s, struct job *j, struct event *e);
/* ENDED, FETCHED, NAMED, SPAWNED, ABORTED */
int server_ended(struct server *s, const struct pmix_msg *m, struct payload *message);
int server_fetched(struct server *s, const struct pmix_msg *m);
int server_named(struct server *s, const struct pmix_msg *m);
int server_spawned(struct server *s, const struct pmix_msg *m);
int server_aborted(struct server *s, const struct pmix_msg *m);
/* Append empty entries of this node's members, in these slots. Errors of buf_append. */
int server_give_nothing(const struct job *j, const uint32_t *slots, uint32_t count,
			struct buf *b);
/* All of a namespace fail. */
void server_fail_calls(struct server *s, const struct job *j);
/* When the first of them has waited long enough, and the answer to those that have. */
int64_t server_calls_due(const struct server *s);
void server_expire_calls(struct server *s, int64_t now);

/* ---- server_group.c: what the members of a group give and get ---- */

/* Append the entries of this node's members, in these slots. Errors of buf_append. */
int group_give(struct job *j, const struct event *e, const uint32_t *slots,
	       uint32_t count, struct buf *b);
/*
 * Tell libpmix by its callback that a group exists: its members are `ranks`
 * (NULL: all), and that is what they have given: entries. 0, -EPROTO or -ENOMEM.
 */
int group_answer(const struct job *j, const struct callback *callback, const uint32_t *ranks,
		 uint32_t count, const void *data, size_t len);

/* ---- server_xns.c: connects across namespaces ---- */

/* The first namespace served here that has a member in the event, or NULL. */
struct job *server_job_of(const struct server *s, const struct event *e);
int server_xns_enter(struct server *s, struct job *j, struct event *e);
/* All members of the own namespace have entered; m has their data. The call stays the caller's. */
void server_xns_gathered(struct server *s, struct call *c, const struct pmix_msg *m);
/* The data of the other namespaces have come, or an error. */
void server_xns_found(struct server *s, const struct call *c, int error,
			   const struct names_answer *a);
/* Find the data of a process of another namespace. */
bool server_find_remote_proc(struct server *s, const struct event *e, const void **data,
			 size_t *len);
/*
 * Register a namespace that a client has asked about, before the client gets its answer:
 * it may connect with that namespace next, and libpmix must not make it wait.
 * 0, -ENOSPC or -ENOMEM, which the client gets as its answer.
 */
int server_keep_remote_nspace(struct server *s, const char *nspace);

/* ---- server_fetch.c: what the agent asks of libpmix ---- */

/* FETCH, GONE */
int server_fetch(struct server *s, const struct pmix_msg *m);
int server_gone(struct server *s, const struct pmix_msg *m);
int server_committed(struct server *s, const struct event *e);
/* Forgets the fetches of a namespace. */
void server_forget_fetches(struct server *s, uint32_t job);
