/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node of a DVM: it has its host start the ranks of tasks, ends them when it is told to,
 * or when their time is over, and says how they ended. Messages (dvm_msg.h) in, messages
 * out; calls no system function. One thread at a time; operations must not call back.
 *
 * A *part* is what of a task runs here. When one of its ranks fails, the others are
 * ended: SIGTERM, and SIGKILL after the grace time.
 *
 * Slurm ends a job by SIGCONT and then SIGTERM to all processes of a step, the ranks' first
 * or the daemon's; what it ends so has not failed. So an end that may be Slurm's doing is
 * *doubted*: it is not told for a moment, in which the daemon is ended, too, if it was.
 * The node is lost then, and its tasks with it.
 */
#ifndef PMI2X_DVM_NODE_H
#define PMI2X_DVM_NODE_H

#include "dvm/core/dvm_msg.h"
#include "dvm/core/dvm_time.h"

/* Ranks that are to be started. Its pointers are valid during the call. */
struct node_start {
	uint32_t part;
	uint32_t first; /* of the part's ranks here, from 0: this one and all behind it */
	const struct dvm_launch *launch;
	struct dvm_bytes message; /* ... as a message of dvm_msg.h */
	const struct dvm_profile_msg *profile; /* one that the host has been told */
};

/*
 * Are its ranks to have PMI? One that is alone needs none, unless it spawns or has been
 * spawned: an MPI library starts without.
 */
bool node_wants_pmi(const struct dvm_launch *l);

/* How a process has ended. */
struct node_end {
	int32_t status;       /* as of wait */
	uint64_t user_us, system_us, peak_kib;
	const char *why;      /* it was not started: NULL, or why */
	bool lacks;           /* ... for the node lacked something: see node_lack.c */
};

/* The PMI of a part has failed, not by how its processes have ended. */
struct node_failure {
	int32_t status; /* to say of it, a wait status other than 0 */
	uint32_t rank;  /* whose fault it is; of the task */
	bool asked;     /* the rank has asked for it, by an abort: no consequence of others' */
	const char *why;
};

struct dvm_node_ops {
	/* Messages for the head; copied. */
	void (*send)(void *arg, const void *data, size_t len);
	/* Parts that start will have this profile; and no part will have it any more. */
	void (*profile)(void *arg, const struct dvm_profile_msg *profile);
	void (*forget)(void *arg, uint32_t number);
	/*
	 * Ranks of part `part` will write: make what they write to. 0 or a negative
	 * errno. Then dvm_node_output is called with what they write.
	 */
	int (*open_output)(void *arg, uint32_t part);
	/*
	 * Give at most this of what they write next; 0: leave it in their pipes. SIZE_MAX:
	 * any. Before the first call that is SIZE_MAX.
	 */
	void (*limit_output)(void *arg, uint32_t part, size_t bytes);
	/*
	 * The ranks have ended: give what they have written and not been given, whatever
	 * the limit, and close.
	 */
	void (*close_output)(void *arg, uint32_t part);
	/*
	 * All its ranks have been started: nothing is passed on to ranks any more.
	 */
	void (*all_started)(void *arg, uint32_t part);
	/*
	 * The part is one for which node_wants_pmi: make their PMI. 0 or a negative
	 * errno. When that fails: dvm_node_pmi_failed.
	 */
	int (*open_pmi)(void *arg, uint32_t part, const struct dvm_launch *launch);
	/* A rank of it has ended, which is the `slot`th here. */
	void (*pmi_rank_ended)(void *arg, uint32_t part, uint32_t slot,
			       int32_t status);
	/* All have: dvm_node_pmi_over follows, and nothing after it. */
	void (*close_pmi)(void *arg, uint32_t part);
	/*
	 * Start processes, each in a process group of its own. dvm_node_started follows,
	 * then dvm_node_ended for each process; what it has left in its process group is
	 * killed before that, and what has left the group soon after the task has ended here.
	 */
	void (*start)(void *arg, const struct node_start *what);
	/* Ranks of the part that could not be started will not be tried again. */
	void (*give_up)(void *arg, uint32_t part);
	/* How a process that was started is: `state` and `cpu_us` of *out. */
	void (*look)(void *arg, uint64_t process, struct dvm_rank *out);
	/* Append how the PMI of a part is: libpmi/status.h; nothing: no rank has begun. */
	void (*pmi_status)(void *arg, uint32_t part, struct buf *out);
	/* Signal the process groups of all ranks of the part that start or run. */
	void (*signal)(void *arg, uint32_t part, int number);
	/* The head says that all is over; no part is left, or what is left is to be killed. */
	void (*leave)(void *arg);
};

struct dvm_node;

/* 0 or -ENOMEM. */
int dvm_node_create(struct dvm_node **out, const struct dvm_node_ops *ops, void *arg);
void dvm_node_destroy(struct dvm_node *n);

/* Say what this node is; again to each head that comes: what *r points to stays. */
void dvm_node_register(struct dvm_node *n, const struct dvm_register *r);
/* A frame of the head. 0, or -EPROTO or -ENOMEM: it cannot go on. */
int dvm_node_input(struct dvm_node *n, const void *data, size_t len,
		   struct dvm_time now);
/* The ranks of a part have written. */
void dvm_node_output(struct dvm_node *n, uint32_t part, int fd, const void *data,
		     size_t len);
/*
 * `count` of the ranks that were to be started have been, as these processes, and all when
 * `error` is 0. Else it is a negative errno of the next one; after -EMFILE, -ENFILE,
 * -EAGAIN and -ENOMEM the core tries again later.
 */
void dvm_node_started(struct dvm_node *n, uint32_t part, const uint64_t *processes,
		      uint32_t count, int error, struct dvm_time now);
/* The process of a part's `slot`th rank here has ended. False: there is none. */
bool dvm_node_ended(struct dvm_node *n, uint32_t part, uint32_t slot,
		    const struct node_end *end, struct dvm_time now);
/* The PMI of a part has failed; it may have failed before. */
void dvm_node_pmi_failed(struct dvm_node *n, uint32_t part, const struct node_failure *f,
			 struct dvm_time now);
/* In answer to close_pmi. */
void dvm_node_pmi_over(struct dvm_node *n, uint32_t part, struct dvm_time now);
/* The PMI of a task over several nodes fails, whose part here has ended well. */
void dvm_node_failed_late(struct dvm_node *n, uint64_t task, uint32_t instance,
			  const struct node_failure *f);
/* There is no head, until ADOPT: nobody reads output. */
void dvm_node_alone(struct dvm_node *n);
/* The daemon has been sent SIGCONT: SIGTERM may follow. */
void dvm_node_continued(struct dvm_node *n, struct dvm_time now);
/* The processes of a part's ranks that run; each is the one of its number until it is reaped. */
void dvm_node_each_process(const struct dvm_node *n, uint32_t part,
			   void (*fn)(void *arg, uint64_t process), void *arg);
/*
 * After inputs of one turn of the loop, and when it is due: end what has no time left, send
 * what has come up. Milliseconds until it is due again; -1: never.
 */
int dvm_node_turn(struct dvm_node *n, struct dvm_time now);

#endif
