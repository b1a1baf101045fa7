/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a node share.
 *
 *   node.c           parts, their ends, what comes in
 *   node_start.c     how they begin, and those that wait for that
 *   node_output.c    output of their ranks
 *   node_keep.c      output that is longer than the tails
 *   node_lack.c      what the node lacks for that
 *   node_profile.c   what they share
 *   node_names.c     names of the DVM's nodes
 *   node_doubt.c     failures that are not told yet
 *   node_adopt.c     heads that are lost
 *   node_report.c    how it is
 */
#pragma once

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "dvm/core/dvm_places.h"
#include "dvm/core/node.h"
#include "dvm/core/tail.h"
#include "dvm/core/unacked_ends.h"

#define WHY_MAX DVM_TEXT_MAX
#define KEPT_FILES_MAX 256
#define KEPT_WHY_MAX 256

/* Environment and directory that parts share; a copy of the message. */
struct profile {
	uint32_t number;
	size_t parts;
	bool forgotten; /* by the head: freed with the last part */
	bool old;       /* of an earlier head: not found by its number */
	bool told;      /* the host knows it */
	struct dvm_profile_msg msg; /* with a number of this node, unique among its profiles */
	char *bytes;
	UT_hash_handle hh;
};

/*
 * Why the failure of a part is not reported yet.
 *
 *   NO_DOUBT --> OF_RANK      a rank of the part has ended as by Slurm's signal
 *   NO_DOUBT --> OF_OTHERS    the part's PMI has failed, but none of its ranks: ranks of
 *                             another node have, or Slurm has ended pmi2x-pmixd
 *   any      --> NO_DOUBT     the time of the doubt is over: the part has failed;
 *                             OF_OTHERS: the head ends it
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
	uint64_t process; /* for messages only: another process may get the number soon */
	bool runs;        /* has been started, and has not ended */
};

/* Complete output of a part: the host writes it to files. */
struct kept_output {
	bool kept[2];   /* stdout, stderr: all of it is given to the host */
	bool refused;   /* the host has no files: `why` */
	bool waits;     /* the ranks have ended, and the host has not answered yet */
	char files[KEPT_FILES_MAX]; /* names, each with its NUL */
	size_t files_len;
	char why[KEPT_WHY_MAX];     /* why they are not whole, or "" */
};

struct part {
	uint32_t number;
	uint64_t task;
	uint32_t instance;
	struct profile *profile;
	enum dvm_output output;
	uint32_t window, credit; /* of DVM_OUTPUT_FORWARD: bytes, and the bytes that are left */
	bool spoke;            /* some output was sent: the end of the part follows it */
	uint64_t line;         /* as in dvm_launch */
	uint32_t first_rank, count;
	struct rank *ranks;
	uint32_t started;      /* number of started ranks, the first ones */
	uint32_t running;
	uint32_t left;         /* ranks that have not ended */
	enum start start;
	struct buf launch;     /* the message LAUNCH, until START_OVER */
	size_t asked_bytes;
	uint64_t start_until_ms; /* limit of the wait for the start */
	uint32_t limit_s;
	uint64_t deadline_ms;  /* end of the time limit, of a doubt or of the grace; 0: none */
	uint32_t grace_ms;
	enum doubt doubt;
	int signalled;         /* the last signal of the head */
	bool ending;           /* has been sent SIGTERM */
	bool failing;          /* ... because one of its ranks has failed */
	bool pmi;              /* its ranks use PMI */
	bool waits_for_pmi;    /* ... and only its PMI has not ended */
	bool keep;             /* its end, until DONE */
	struct dvm_held held;
	struct dvm_ended end;
	char why[WHY_MAX];
	struct tail tails[2];  /* of stdout and stderr */
	struct kept_output *keeps; /* NULL: no output is longer than the tails */
	bool output_open;
	struct part *prev, *next;
	struct part *waits_prev, *waits_next;
	UT_hash_handle hh;     /* by number */
	UT_hash_handle hh_task;
};

/* Names of nodes: struct dvm_name_run. */
struct name_run {
	uint32_t first, count; /* positions in the DVM */
	char *name;            /* of the first one */
};

/* Messages that go to the head in one frame. */
struct bulk_frame {
	struct buf messages; /* BULK first */
	struct bulk_frame *prev, *next;
};

struct dvm_node {
	struct dvm_node_ops ops;
	void *arg;
	struct profile *profiles;
	struct part *parts;   /* by number */
	struct part *by_task;
	struct part *timed;   /* list of parts with a deadline */
	uint64_t first_ms;    /* no deadline is before this time; there may be none at it */
	struct part *waits;   /* list of START_WAITS, in order of arrival */
	uint32_t asked;       /* number of START_ASKED parts */
	size_t asked_bytes;   /* bytes of their messages */
	uint32_t running;     /* ranks */
	int lack;             /* the last start's negative errno, if it lacked something */
	uint64_t start_ms;    /* no start before this time, unless */
	bool freed;           /* ... something has ended since the lack */
	uint32_t idle_lacks;  /* starts in a row that lacked something while nothing ran */
	struct kept_set *kept;
	struct name_run *runs; /* in order of their positions, from 0 */
	size_t nruns, runs_cap;
	struct dvm_register is;
	uint32_t next_part, next_profile;
	uint64_t continued_ms; /* time of the last SIGCONT; 0: never */
	struct buf out;
	uint64_t send_ms; /* when `out` is to be sent; 0: at once */
	struct bulk_frame *bulk; /* output and what follows it: sent behind the others */
	bool alone;       /* the head is lost: no client reads output */
	bool leaving;
	bool failed;
	struct dvm_time now;
};

/* ---- node.c ---- */

/*
 * A message to this head or a later one cannot be made: the head would wait for it forever.
 * So this node leaves, and the head runs its tasks elsewhere.
 */
void node_fail(struct dvm_node *n);
void node_send(struct dvm_node *n, const struct dvm_msg *m);
/* Send a message about a part. */
void node_say(struct dvm_node *n, const struct part *p, enum dvm_msg_type type);
/*
 * As above, for a message that no process waits for: it goes with the next message, or
 * soon.
 */
void node_say_later(struct dvm_node *n, const struct part *p, enum dvm_msg_type type);
/* NULL: the part has ended meanwhile. */
struct part *node_part(const struct dvm_node *n, uint32_t number);
struct part *node_find_part(const struct dvm_node *n, uint64_t task, uint32_t instance);
/* ms 0: no deadline. */
void part_set_deadline(struct dvm_node *n, struct part *p, uint64_t ms);
/* The first failure is the end of the part; later ones are its consequences. */
void part_note_end(struct part *p, uint32_t rank, const struct node_end *e);
/* A rank of the part has failed, and others still run, here or elsewhere. */
void part_fails(struct dvm_node *n, struct part *p);
/*
 * All ranks have ended. If the part has failed, its PMI may still know why; else report the
 * end, and remove the part.
 */
void part_ranks_over(struct dvm_node *n, struct part *p);
/* The files of its output are closed: report the end, and remove the part. */
void part_end_kept(struct dvm_node *n, struct part *p);

/* ---- node_output.c ---- */

/* Set the window of a part whose output is forwarded, before its ranks start. */
void part_output_begin(struct dvm_node *n, struct part *p, uint32_t window);
/* As node_send, behind the output of this node. */
void node_send_bulk(struct dvm_node *n, const struct dvm_msg *m);
/* Send what the link takes. */
void node_bulk_turn(struct dvm_node *n);
/* Drop what was not sent: the head for which it was is lost. */
void node_bulk_drop(struct dvm_node *n);
void node_credit(struct dvm_node *n, const struct dvm_credit *m);
/* The head is lost; or another head has come, and has read nothing yet. */
void node_set_alone(struct dvm_node *n, bool alone);

/* ---- node_keep.c ---- */

/* Ranks have written this. Call it before the tail takes it. */
void part_keep(struct dvm_node *n, struct part *p, int fd, const void *data, size_t len);
/*
 * All ranks have ended, and all their output was taken. True: the end waits for files;
 * part_end_kept follows.
 */
bool part_waits_for_files(struct dvm_node *n, struct part *p);
/* Complete the end with what is known of the files. */
void part_note_files(struct part *p);

/* ---- node_profile.c ---- */

struct profile *node_profile_find(struct dvm_node *n, uint32_t number);
/* Keep a profile. 0 or -ENOMEM. */
int node_profile_add(struct dvm_node *n, const struct dvm_profile_msg *m);
/* Make sure that the host knows the profile. Returns the bytes of the new message. */
size_t node_profile_tell(struct dvm_node *n, struct profile *p);
/* A part with this profile has gone. */
void node_profile_release(struct dvm_node *n, struct profile *p);
/* The head needs the profile no more; or another head has its own numbers. */
void node_profile_forget(struct dvm_node *n, uint32_t number);
void node_profiles_forget(struct dvm_node *n);

/* ---- node_names.c ---- */

/* 0, or -EPROTO or -ENOMEM. */
int node_names_add(struct dvm_node *n, const struct dvm_nodes *m);
void node_names_forget(struct dvm_node *n);

/* ---- node_start.c ---- */

/* Begin a part; `message`: *l as bytes. 0, or -EPROTO or -ENOMEM. */
int part_launch(struct dvm_node *n, const struct dvm_launch *l,
		const struct dvm_bytes *message);
/* Do not start the ranks that wait for their start. */
void part_give_up_start(struct dvm_node *n, struct part *p);
/* As above, and end the part with *e. The part may be gone then. */
void part_end_unstarted(struct dvm_node *n, struct part *p, const struct node_end *e);
/* Start what can be started now; called each turn. */
void starts_turn(struct dvm_node *n);
/* When the next turn is due; UINT64_MAX: never. */
uint64_t starts_due_ms(const struct dvm_node *n);

/* ---- node_lack.c ---- */

/* True: the errno of something that the node may have again when another task has ended. */
bool lack_is(int rc);
/* A start of the part has failed with an errno for which lack_is is true. */
void lack_note(struct dvm_node *n, const struct part *p, int error);
/* True: the next start has to wait for what the node lacks. */
bool lack_lasts(const struct dvm_node *n);
/* The end of a new part's wait for its start. */
uint64_t lack_until_ms(const struct dvm_node *n, const struct dvm_launch *l);
/* End parts that have waited long enough. */
void lack_turn(struct dvm_node *n);
/*
 * A rank has ended, perhaps because the node lacks something. Call it before the part
 * handles the end.
 */
void lack_rank_ended(struct dvm_node *n, struct part *p, const struct node_end *e);

/* ---- node_doubt.c ---- */

/* A rank has ended, perhaps by Slurm: doubt that, if no doubt is there yet. */
void doubt_end(struct dvm_node *n, struct part *p, const struct node_end *e);
/*
 * The part's PMI has failed. True: the cause may be the end of another node; the failure is
 * doubted.
 */
bool doubt_is_of_others(const struct dvm_node *n, const struct part *p,
			const struct node_failure *f);
void doubt_others(struct dvm_node *n, struct part *p);
/* The time of a doubt is over. The part may be gone then. */
void doubt_over(struct dvm_node *n, struct part *p);
/*
 * The end of another node explains this part's failure. False: the part was over, and
 * is gone.
 */
bool doubt_leave(struct dvm_node *n, struct part *p);

/* ---- node_adopt.c ---- */

/* Another head has come: report the parts that there are. */
void node_adopt(struct dvm_node *n);
/* A head has the end of a part in its journal. */
void node_done(struct dvm_node *n, const struct dvm_started *m);

/* ---- node_report.c ---- */

/* Report the state of a task, for a client. */
void node_tell(struct dvm_node *n, const struct dvm_ask *about);
