/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a node share.
 *
 *   node.c           parts, their ends, what comes in
 *   node_start.c     how they begin, and those that wait for that
 *   node_output.c    output of their ranks
 *   node_lack.c      what the node lacks for that
 *   node_profile.c   what they share
 *   node_doubt.c     failures that are not told yet
 *   node_adopt.c     heads that are lost
 *   node_report.c    how it is
 */
#ifndef PMI2X_DVM_NODE_PRIVATE_H
#define PMI2X_DVM_NODE_PRIVATE_H

#include <uthash.h>
#include <utlist.h>

#include "dvm/core/node.h"
#include "dvm/core/tail.h"
#include "dvm/core/unacked_ends.h"

#define WHY_MAX DVM_TEXT_MAX

/* Environment and directory that parts share; a copy of the message. */
struct profile {
	uint32_t number;
	size_t parts;
	bool forgotten; /* by the head: goes with the last part */
	bool old;       /* of another head: not among those that are known by number */
	bool told;      /* to the host */
	struct dvm_profile_msg msg; /* its number: this node's, of no other profile */
	char *bytes;
	UT_hash_handle hh;
};

/*
 * Why it is not told yet that a part has failed.
 *
 *   NO_DOUBT --> OF_RANK      one of its ranks has ended as by Slurm's signal
 *   NO_DOUBT --> OF_OTHERS    its PMI says that it fails, and no rank of it has: another
 *                             node's have, or its pmi2x-pmixd was ended
 *   any      --> NO_DOUBT     after its time: it has failed; OF_OTHERS: the head ends it
 */
enum doubt { NO_DOUBT, OF_RANK, OF_OTHERS };

struct part;

/*
 * How the ranks of a part get started.
 *
 *   START_WAITS --> START_ASKED --> START_OVER   all have been started
 *     ^   |             |
 *     |   +------------ | --------> START_OVER   those that have not, will not be
 *     +-----------------+                        the node lacked something
 */
enum start { START_WAITS, START_ASKED, START_OVER };

struct rank {
	uint64_t process; /* for people only: the number may be another process's soon */
	bool runs;        /* has been started, and has not ended */
};

struct part {
	uint32_t number;
	uint64_t task;
	uint32_t instance;
	struct profile *profile;
	enum dvm_output output;
	uint32_t window, credit; /* of DVM_OUTPUT_FORWARD: bytes, and what is left of them */
	bool spoke;            /* some output of it was sent: its end follows that */
	uint32_t first_rank, count;
	struct rank *ranks;
	uint32_t started;      /* the first ones */
	uint32_t running;
	uint32_t left;         /* that have not ended */
	enum start start;
	struct buf launch;     /* the message, until START_OVER */
	size_t asked_bytes;
	uint64_t start_until_ms; /* it waits until then at most */
	uint32_t limit_s;
	uint64_t deadline_ms;  /* of its time limit, of a doubt, of its grace; 0: none */
	uint32_t grace_ms;
	enum doubt doubt;
	int signalled;         /* what the head had it sent last */
	bool ending;           /* has been sent SIGTERM */
	bool failing;          /* ... because one of its ranks has failed */
	bool pmi;              /* its ranks have one */
	bool waits_for_pmi;    /* ... which is all that has not ended */
	bool keep;             /* its end */
	struct dvm_held held;
	struct dvm_ended end;
	char why[WHY_MAX];
	struct tail tails[2];  /* of stdout and stderr */
	bool output_open;
	struct part *prev, *next;
	struct part *waits_prev, *waits_next;
	UT_hash_handle hh;     /* by number */
	UT_hash_handle hh_task;
};

struct dvm_node {
	struct dvm_node_ops ops;
	void *arg;
	struct profile *profiles;
	struct part *parts;   /* by number */
	struct part *by_task;
	struct part *timed;   /* list of those that have a deadline */
	struct part *waits;   /* list of START_WAITS, in order of arrival */
	uint32_t asked;       /* parts that are START_ASKED, */
	size_t asked_bytes;   /* and what their messages need */
	uint32_t running;     /* ranks */
	int lack;             /* a negative errno: the last start lacked something; so */
	uint64_t start_ms;    /* ... there is no start before this time, */
	bool freed;           /* unless something has ended since */
	uint32_t idle_lacks;  /* such starts in a row while nothing ran */
	struct kept_set *kept;
	struct dvm_register is;
	uint32_t next_part, next_profile;
	uint64_t continued_ms; /* when it was last; 0: never */
	struct buf out;
	uint64_t send_ms; /* when that is to be sent: 0: at once */
	struct buf bulk;  /* output and what follows it: sent behind the others */
	bool alone;       /* the head is lost: nobody reads output */
	bool leaving;
	bool failed;
	struct dvm_time now;
};

/* ---- node.c ---- */

/*
 * The head cannot be told, or a later one could not: it would wait forever. So this node
 * leaves, and the head runs its tasks elsewhere.
 */
void node_fail(struct dvm_node *n);
void node_send(struct dvm_node *n, const struct dvm_msg *m);
/* Sends a message about a part. */
void node_say(struct dvm_node *n, const struct part *p, enum dvm_msg_type type);
/*
 * As above, when nobody waits for the message: it goes with the next message, or soon.
 */
void node_say_later(struct dvm_node *n, const struct part *p, enum dvm_msg_type type);
/* NULL: it has ended meanwhile. */
struct part *node_part(const struct dvm_node *n, uint32_t number);
struct part *node_find_part(const struct dvm_node *n, uint64_t task, uint32_t instance);
/* 0: none. */
void part_set_deadline(struct dvm_node *n, struct part *p, uint64_t ms);
/* The first failure says how the part ended; what follows is its consequence. */
void part_note_end(struct part *p, uint32_t rank, const struct node_end *e);
/* A rank of it has failed, and others still run, here or elsewhere. */
void part_fails(struct dvm_node *n, struct part *p);
/*
 * All its ranks have ended. If the part has failed, its PMI may still say why; else the
 * part is told, and gone.
 */
void part_ranks_over(struct dvm_node *n, struct part *p);

/* ---- node_output.c ---- */

/* A part whose output is forwarded begins, and its ranks have not begun. */
void part_output_begin(struct dvm_node *n, struct part *p, uint32_t window);
/* As node_send, behind the output of this node. */
void node_send_bulk(struct dvm_node *n, const struct dvm_msg *m);
void node_credit(struct dvm_node *n, const struct dvm_credit *m);
/* The head is lost; or another one has come, which has read nothing yet. */
void node_set_alone(struct dvm_node *n, bool alone);

/* ---- node_profile.c ---- */

struct profile *node_profile_find(struct dvm_node *n, uint32_t number);
/* 0 or -ENOMEM. */
int node_profile_add(struct dvm_node *n, const struct dvm_profile_msg *m);
/* The host is to know it. Bytes that it is told now. */
size_t node_profile_tell(struct dvm_node *n, struct profile *p);
/* A part of it has gone. */
void node_profile_release(struct dvm_node *n, struct profile *p);
/* The head has no use for it any more; or another one has its own numbers. */
void node_profile_forget(struct dvm_node *n, uint32_t number);
void node_profiles_forget(struct dvm_node *n);

/* ---- node_start.c ---- */

/* `message`: *l as bytes. 0, or -EPROTO or -ENOMEM. */
int part_launch(struct dvm_node *n, const struct dvm_launch *l,
		const struct dvm_bytes *message);
/* Ranks that wait for their start will not be started. */
void part_give_up_start(struct dvm_node *n, struct part *p);
/* As above, and that is how the part ends. It may be gone then. */
void part_end_unstarted(struct dvm_node *n, struct part *p, const struct node_end *e);
/* Each turn: start what can be started now. */
void starts_turn(struct dvm_node *n);
/* When the next turn is due; UINT64_MAX: never. */
uint64_t starts_due_ms(const struct dvm_node *n);

/* ---- node_lack.c ---- */

/* Something that the node may have again when another task has ended. */
bool lack_is(int rc);
/* A start of the part has failed with such an error. */
void lack_note(struct dvm_node *n, const struct part *p, int error);
/* Does the next start have to wait for what the node lacks? */
bool lack_lasts(const struct dvm_node *n);
/* Until when a new part waits for its start. */
uint64_t lack_until_ms(const struct dvm_node *n, const struct dvm_launch *l);
/* End parts that have waited long enough. */
void lack_turn(struct dvm_node *n);
/* A rank has ended, perhaps because the node lacks something: before its part hears. */
void lack_rank_ended(struct dvm_node *n, struct part *p, const struct node_end *e);

/* ---- node_doubt.c ---- */

/* A rank has ended, perhaps by Slurm: then that is doubted, if nothing is yet. */
void doubt_end(struct dvm_node *n, struct part *p, const struct node_end *e);
/* Its PMI says that it fails. True: that may be for the end of another node, is doubted. */
bool doubt_is_of_others(const struct dvm_node *n, const struct part *p,
			const struct node_failure *f);
void doubt_others(struct dvm_node *n, struct part *p);
/* Its time is over. The part may be gone then. */
void doubt_over(struct dvm_node *n, struct part *p);
/*
 * The end of another node explains this part's failure. False: the part was over, and
 * is gone.
 */
bool doubt_leave(struct dvm_node *n, struct part *p);

/* ---- node_adopt.c ---- */

/* Another head has come: tell it what there is. */
void node_adopt(struct dvm_node *n);
/* A head has in its journal how a part has ended. */
void node_done(struct dvm_node *n, const struct dvm_started *m);

/* ---- node_report.c ---- */

/* A client asks how a task is. */
void node_tell(struct dvm_node *n, const struct dvm_ask *about);

#endif
