/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives and fetches that ranks have asked for and that have not ended. */
#pragma once

/* An item that could not be added has no table; the default ends the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libcoll/fetch.h"
#include "libengine/rank.h"

#define RING_VALUE_MAX 65536    /* bytes a rank shows to a neighbour */
#define FETCH_KEPT_MAX 65536    /* bytes of what a rank has put before its fences */

/* Beside enum coll_kind: the barrier of a group. Its number is the server's. */
#define ENTERED_GROUP COLL_KINDS

/* A collective that a rank has entered. */
struct entered {
	struct entered *prev, *next;
	enum coll_kind kind; /* ENTERED_GROUP: of a group */
	uint32_t seq;
	size_t bytes;  /* contributed, counted in rank_session.in_flight */
	size_t stride; /* of a gather */
	bool failed;   /* its answer is held back; of a group there is none */
	struct payload *records; /* of a fence: what it brings, or NULL */
	uint64_t upto; /* of a fence or group: rank_session.put, then */
	uint64_t members; /* of a group: their hash */
	uint32_t count; /* of a group: its members */
	uint32_t name;  /* of a group, for events: a hash of members and tag */
	struct rank_request rq;
};

/* A published gather and how many of this node's ranks still want it. */
struct gather_result {
	uint64_t offset;
	uint32_t holders;
	struct payload *keep; /* the memory of the bytes, or NULL */
};

/* A gather whose space the rank has not given back, by its offset: ranks ask for it. */
struct hold {
	uint64_t offset;
	struct gather_result *gather;
	UT_hash_handle hh;
};

/* Meanings of coll_fetch.op here. */
enum fetch_op { FETCH_VALUE = 1, FETCH_PMIX = COLL_FETCH_PMIX };

/* ---- engine_coll.c ---- */

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

/* ---- engine_coll_ops.c ---- */

extern const struct coll_ops engine_coll_ops;

/* ---- engine_group.c ---- */

/*
 * A line about an operation of some ranks that has lasted `seconds`, if there is one of
 * which it is known who is late; or (own) one of which that is known elsewhere.
 */
void group_tell_own_wait(struct pmi_server *s, unsigned seconds,
			 char text[PMI_WAIT_TEXT_MAX]);
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

/* ---- engine_fetch.c ---- */

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

/* ---- engine_slots.c ---- */

/* The session is given the slots. */
void slots_attach(struct rank_session *ss);
/*
 * The rank enters a collective over its socket, after all that its slot holds. False: an
 * entry of the slot failed, and with it the session, so the collective must not take that
 * entry's place.
 */
bool slots_count_socket(struct rank_session *ss);
/* Take what the session's own slot holds. */
void slots_take_own(struct rank_session *ss);
/* Take what all slots hold; say how many more are needed to look again. */
void slots_update(struct pmi_server *s);
/* Wake the ranks if anything was answered. */
void slots_flush(struct pmi_server *s);
