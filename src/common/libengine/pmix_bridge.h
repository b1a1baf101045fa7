/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx clients of the node, by way of the program that serves them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/fetch.h"
#include "libengine/pmi_server.h"
#include "libpmi/pmix_msg.h"
#include "libutil/payload.h"

struct pmix_ask;
struct pmix_entered;
struct pmix_wanted;
struct rank_session;

/* The program that serves the node's PMIx clients, in the order of its life. */
enum pmix_service {
	PMIX_SERVICE_NONE,     /* there is none, and will be none */
	PMIX_SERVICE_EXPECTED, /* the program may come */
	PMIX_SERVICE_HERE,     /* pmixd has sent HELLO */
	PMIX_SERVICE_READY,    /* pmixd lets clients in */
	PMIX_SERVICE_LOST,     /* pmixd serves no more */
};

/* Whether pmixd knows the namespace. */
enum pmix_nspace_sent {
	PMIX_NSPACE_DUE,   /* when it comes */
	PMIX_NSPACE_WAITS, /* for the topology */
	PMIX_NSPACE_SENT,
};

struct pmix_server {
	enum pmix_service service;
	enum pmix_nspace_sent nspace;
	bool pmi;    /* pmixd knows, or is to be told, that a rank uses PMI */
	const char *none; /* why nobody ever will serve; NULL: it is not so */
	uint32_t uid, gid;
	uint32_t stall_ms; /* after which people hear of a wait; 0: never */
	uint32_t unanswered; /* clients whose last request has no answer */
	uint64_t asks_told;  /* times that pmixd has told of them */
	struct pmix_entered *ops;
	uint32_t next; /* number of an operation of some ranks */
	struct pmix_ask *asks;       /* fetches of this node, */
	struct pmix_wanted *wanted;  /* requests for data of its ranks */
	uint64_t next_fetch;
	struct payload_vec events;   /* of other nodes, until it is ready */
};

/* ---- engine_pmix.c, engine_pmix_ranks.c, engine_pmix_send.c ---- */

/* See pmi_server_pmix_input and pmi_server_pmix_lost. */
int pmix_input(struct pmi_server *s, struct payload *message);
void pmix_lost(struct pmi_server *s, const char *why);
/* Another node sends a PMIx event (coll_ops.flooded). */
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
 * The rank's process failed; not `known`: it seems so. End the step, unless the site
 * forbids it, if the rank was a client; or if the failure is known and other ranks of the
 * node are clients that the rank never joined.
 */
void pmix_rank_failed(struct rank_session *ss, bool known);
/*
 * True: the node has clients, and one of its ranks has not started PMIx, or exited before
 * it did. The clients may be in a fence that waits for that rank: libpmix does not report
 * such fences.
 */
bool pmix_misses_rank(const struct pmi_server *s);
/*
 * True: some clients of the node wait for an answer, and others do not: these may not have
 * entered what those have.
 */
bool pmix_some_ask(const struct pmi_server *s);
void pmix_tell_asks(const struct pmi_server *s, unsigned seconds,
		    char text[PMI_WAIT_TEXT_MAX]);
/* Handler of messages. */
int pmix_on_asks(struct pmi_server *s, const struct pmix_msg *m,
		 struct payload *message);
/* True: this is such a rank, and it does not use PMI either. */
bool pmix_is_late(const struct rank_session *ss);
void pmix_tell_wait(const struct pmi_server *s, unsigned seconds,
		    char text[PMI_WAIT_TEXT_MAX]);
void pmix_free(struct pmi_server *s);
/* The program may be sent messages: it may come, or is here. */
bool pmix_is_served(const struct pmi_server *s);
/* A rank that is a client, or NULL. */
const struct rank_session *pmix_find_client(const struct pmi_server *s);
/* A rank in a list in ascending order, or NULL. */
const uint32_t *pmix_find_rank(const uint32_t *ranks, uint32_t count, uint32_t rank);
/* The session of a rank of this node, or NULL. */
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

/* ---- engine_pmix_enter.c ---- */

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

/* ---- engine_pmix_fetch.c ---- */

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
/* Fail all requests for the rank's data, for `why`. */
void pmix_fail_fetches(struct pmi_server *s, const char *why);
void pmix_free_fetches(struct pmi_server *s);

/* ---- engine_pmix_names.c ---- */

/* Handlers of messages. */
int pmix_on_names(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message);
int pmix_on_spawn(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message);
