/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node of a DVM. Its host starts the ranks of tasks. The node ends ranks when the head
 * asks for that, or when their time is over, and reports how they ended. Messages
 * (dvm_msg.h) in, messages out; calls no system function. One thread at a time; operations
 * must not call back.
 *
 * A *part* is the fragment of a task that runs on this node. When one of its ranks fails,
 * the node ends the others: SIGTERM, and SIGKILL after the grace time.
 *
 * Slurm ends a job by SIGCONT and then SIGTERM to all processes of a step, the ranks first
 * or the daemon first; a rank that ends by that has not failed. So an end that may be
 * Slurm's doing is *doubted*: the node does not report it for a moment, in which the daemon
 * is ended, too, if Slurm ends the job. The node is lost then, and its tasks with it.
 */
#pragma once

#include "dvm/core/dvm_msg.h"
#include "dvm/core/dvm_time.h"

/* Ranks that are to be started. The pointers are valid during the call. */
struct node_start {
	uint32_t part;
	uint32_t first; /* index of the first one among the part's ranks here: start it and
	                   all behind it */
	const struct dvm_launch *launch;
	struct dvm_bytes message; /* ... packed as a message of dvm_msg.h */
	const struct dvm_profile_msg *profile; /* a profile that the host knows */
};

/*
 * True: the ranks use PMI. A single rank needs none, unless it spawns or has been spawned:
 * an MPI library starts without.
 */
bool node_wants_pmi(const struct dvm_launch *l);

/* The end of a process. */
struct node_end {
	int32_t status;       /* as of wait */
	uint64_t user_us, system_us, peak_kib;
	const char *why;      /* why it was not started; NULL: it was */
	bool lacks;           /* ... because the node lacked something: see node_lack.c */
};

/* A failure of a part's PMI, other than the exit of a process. */
struct node_failure {
	int32_t status; /* the status to report, a wait status other than 0 */
	uint32_t rank;  /* of the task: the rank that failed */
	bool asked;     /* the rank has called abort: not a consequence of another failure */
	const char *why;
};

/* Where the complete output of a part goes. The pointers are valid during the call. */
struct node_keep {
	const char *dir;  /* is made if it is missing; not its parents */
	const char *name; /* of the files, before a suffix */
	uint32_t umask;   /* as in dvm_limits */
};

/* How that has gone. */
struct node_kept {
	struct dvm_bytes files; /* their names, each with its NUL */
	const char *why;        /* why they are not whole; NULL: they are */
};

struct dvm_node_ops {
	/* Messages for the head; copied. */
	void (*send)(void *arg, const void *data, size_t len);
	/*
	 * True: output may be sent now, which later messages must follow. False: the link
	 * still has some, and a turn follows when it has not. NULL: always true.
	 */
	bool (*takes_output)(void *arg);
	/* The profile of parts that will start. */
	void (*profile)(void *arg, const struct dvm_profile_msg *profile);
	/* No part will have this profile any more. */
	void (*forget)(void *arg, uint32_t number);
	/*
	 * Make the output pipes of a part, before its ranks start. 0 or a negative errno.
	 * Then the host calls dvm_node_output with what the ranks write.
	 */
	int (*open_output)(void *arg, uint32_t part);
	/*
	 * Limit the next bytes of dvm_node_output; 0: leave them in the pipes. SIZE_MAX: no
	 * limit, as before the first call.
	 */
	void (*limit_output)(void *arg, uint32_t part, size_t bytes);
	/*
	 * The ranks have ended: pass on the rest of their output, whatever the limit, and
	 * close.
	 */
	void (*close_output)(void *arg, uint32_t part);
	/*
	 * Begin files for the complete output of a part, without waiting for a file system.
	 * NULL: this host has none. 0 or a negative errno.
	 */
	int (*keep_output)(void *arg, uint32_t part, const struct node_keep *what);
	/* More of it, of fd 1 or 2; copied. */
	void (*write_output)(void *arg, uint32_t part, int fd, const void *data, size_t len);
	/* That was all: dvm_node_kept follows within a limited time. */
	void (*end_output)(void *arg, uint32_t part);
	/*
	 * How long the part has waited for its files, which take nothing; 0: it does not wait.
	 * NULL without keep_output.
	 */
	uint32_t (*output_stall_ms)(void *arg, uint32_t part);
	/*
	 * All ranks of the part have been started: no descriptors are passed to ranks any
	 * more.
	 */
	void (*all_started)(void *arg, uint32_t part);
	/*
	 * Set up the PMI of a part for which node_wants_pmi is true. 0 or a negative errno.
	 * When PMI fails later: dvm_node_pmi_failed.
	 */
	int (*open_pmi)(void *arg, uint32_t part, const struct dvm_launch *launch);
	/* The part's rank at `slot` has ended. */
	void (*pmi_rank_ended)(void *arg, uint32_t part, uint32_t slot,
			       int32_t status);
	/* All ranks have ended: dvm_node_pmi_over follows, and nothing after it. */
	void (*close_pmi)(void *arg, uint32_t part);
	/*
	 * Start processes, each in a process group of its own. dvm_node_started follows,
	 * then dvm_node_ended for each process. Other processes of its group are killed
	 * before that, and processes that have left the group soon after the task has ended
	 * here.
	 */
	void (*start)(void *arg, const struct node_start *what);
	/* Do not try again to start the part's ranks that could not be started. */
	void (*give_up)(void *arg, uint32_t part);
	/* Get the state of a process that was started: `state` and `cpu_us` of *out. */
	void (*look)(void *arg, uint64_t process, struct dvm_rank *out);
	/*
	 * Append the state of the part's PMI: libpmi/status.h; nothing: no rank has used
	 * PMI.
	 */
	void (*pmi_status)(void *arg, uint32_t part, struct buf *out);
	/* Signal the process groups of all ranks of the part that start or run. */
	void (*signal)(void *arg, uint32_t part, int number);
	/* This node leaves: kill the ranks that are left, if any. */
	void (*leave)(void *arg);
};

struct dvm_node;

/* Create a node. 0 or -ENOMEM. */
int dvm_node_create(struct dvm_node **out, const struct dvm_node_ops *ops, void *arg);
void dvm_node_destroy(struct dvm_node *n);

/*
 * Register with each head that comes, the first one now. *r is copied, but not what it
 * points to.
 */
void dvm_node_register(struct dvm_node *n, const struct dvm_register *r);
/* A frame of the head. 0, or -EPROTO or -ENOMEM: the node cannot go on. */
int dvm_node_input(struct dvm_node *n, const void *data, size_t len,
		   struct dvm_time now);
/* The ranks of a part have written these bytes. */
void dvm_node_output(struct dvm_node *n, uint32_t part, int fd, const void *data,
		     size_t len);
/*
 * `count` of the ranks to start were started, as these processes. `error` 0: that is all of
 * them. Else the negative errno of the next one; after -EMFILE, -ENFILE, -EAGAIN and
 * -ENOMEM the core tries again later.
 */
void dvm_node_started(struct dvm_node *n, uint32_t part, const uint64_t *processes,
		      uint32_t count, int error, struct dvm_time now);
/* The process of the part's rank at `slot` has ended. False: no such rank. */
bool dvm_node_ended(struct dvm_node *n, uint32_t part, uint32_t slot,
		    const struct node_end *end, struct dvm_time now);
/* The answer to end_output. */
void dvm_node_kept(struct dvm_node *n, uint32_t part, const struct node_kept *kept,
		   struct dvm_time now);
/* The PMI of a part has failed; it may have failed before. */
void dvm_node_pmi_failed(struct dvm_node *n, uint32_t part, const struct node_failure *f,
			 struct dvm_time now);
/* PMI is closed: the answer to close_pmi. */
void dvm_node_pmi_over(struct dvm_node *n, uint32_t part, struct dvm_time now);
/* The PMI of a task over several nodes fails, after its part here has ended well. */
void dvm_node_failed_late(struct dvm_node *n, uint64_t task, uint32_t instance,
			  const struct node_failure *f);
/* This node leaves: send what waits, whatever the link has. */
void dvm_node_send_rest(struct dvm_node *n);
/* The head is lost. Until ADOPT no client reads output. */
void dvm_node_alone(struct dvm_node *n);
/* The daemon got SIGCONT: SIGTERM may follow. */
void dvm_node_continued(struct dvm_node *n, struct dvm_time now);
/*
 * Write the name of a node of the DVM. False: it is not known. All names of a part that has
 * several nodes are known when it begins.
 */
bool dvm_node_name(const struct dvm_node *n, uint32_t node, char out[DVM_TEXT_MAX]);
/*
 * Call fn for the running processes of a part's ranks. Until a process is reaped no other
 * has its number.
 */
void dvm_node_each_process(const struct dvm_node *n, uint32_t part,
			   void (*fn)(void *arg, uint64_t process), void *arg);
/*
 * Call it after the inputs of a turn of the loop, and when it is due: ends parts whose time
 * is over, and sends messages. Milliseconds until it is due again; -1: never.
 */
int dvm_node_turn(struct dvm_node *n, struct dvm_time now);
