/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm-zygote, the process of a node that starts the ranks of tasks. It is small
 * and has one thread, so a fork of it is cheap. pmi2x-dvmd, which starts it, passes on to
 * it what the head says, and back what it says: frames (libio/frames.h) of
 * FRAME_CONTROL_UP over ZYGOTE_FD. When that ends it kills all ranks, and ends.
 * PMI is served by pmi2x-dvmd: what it needs for that it is told over ZYGOTE_PMI_FD.
 */
#ifndef PMI2X_DVM_ZYGOTE_H
#define PMI2X_DVM_ZYGOTE_H

#include <sys/types.h>

#include "dvm/core/node.h"
#include "dvm/zygote/parts.h"
#include "dvm/zygote/rank_program.h"
#include "dvm/zygote/resources.h"

#define ZYGOTE_FD 3     /* a SOCK_STREAM pair's end */
#define ZYGOTE_PMI_FD 4 /* a SOCK_SEQPACKET pair's end */
/*
 * pmi2x-dvmd's connection to its first head. When pmi2x-dvmd has been killed, the head sees
 * its end when the zygote has ended, too, and hears before that no rank is left.
 * Connections to later heads come over ZYGOTE_PMI_FD, and wait there until then.
 */
#define ZYGOTE_LINK_FD 5
/*
 * The socket at which pmi2x-dvmd listens. Nobody accepts here: while this process has it,
 * connections to that port are not refused. So one that is refused proves that both
 * processes, and with them all ranks, have ended.
 */
#define ZYGOTE_LISTENER_FD 6

/* ---- zygote_exec.c ---- */

/* Once, before zygote_exec. 0 or a negative errno. */
int zygote_exec_init(void);
/* Descriptors that a rank gets; each -1: none. */
struct rank_fds {
	int output[2];    /* else /dev/null */
	int registration; /* for its PMI: libio/registration.h */
};

/* Fork and execute a rank. The process, or a negative errno. */
pid_t zygote_exec(const struct node_rank *rank, const struct resources *has,
		  const struct rank_fds *fds);
/*
 * The process has ended, with a status as of wait. When it could not execute its program,
 * why, in a static buffer, and whether the node lacked something. Else NULL.
 */
const char *zygote_exec_failure(pid_t process, int status, bool *lacks);

/* ---- zygote_start.c ---- */

/*
 * Start ranks of a part, from the one at what->first on: *count of them, whose processes
 * are in processes[]. 0, or a negative errno of the one after them.
 */
int zygote_start(struct parts *parts, const struct node_start *what,
		 const struct resources *has, const struct rank_fds *fds,
		 uint64_t *processes, uint32_t *count);

/* ---- zygote_limits.c ---- */

/* Once: raise those of this process. */
void zygote_limits_init(void);
/* In a rank, first: its umask, and descriptors for what follows. */
void zygote_limits_begin(const struct dvm_limits *limits);
/* In a rank, last. */
void zygote_limits_set(const struct dvm_limits *limits);
/* In a rank: what it lacks may be for a limit of its own. */
bool zygote_limits_bound_memory(void);

/* ---- zygote_pmi.c ---- */

/*
 * The ranks of a part are to have PMI: have it served. 0, and what they register over, to
 * be closed when all have been started; or a negative errno.
 */
int zygote_pmi_open(uint32_t part, const struct dvm_launch *l, int *registration);
void zygote_pmi_rank_ended(uint32_t part, uint32_t slot, int32_t status);
void zygote_pmi_close(uint32_t part);
/* A client asks how it is. */
void zygote_pmi_ask(const struct dvm_pmi_ask *ask);

/* ---- zygote_output.c ---- */

struct outputs;

/* Output is given to dvm_node_output of *node. 0 or a negative errno. */
int outputs_create(struct outputs **out, int epoll, struct dvm_node **node);
int outputs_open(struct outputs *o, uint32_t part);
/* The ends that the ranks of a part write to; -1: there is no such part. */
void outputs_of(struct outputs *o, uint32_t part, int ends[2]);
/* Close our copies of the ranks' ends: all have been started. */
void outputs_started(struct outputs *o, uint32_t part);
/* Read what is there, and close. */
void outputs_close(struct outputs *o, uint32_t part);
/* Read at most this at once; 0: do not read, until this is called again. */
void outputs_limit(struct outputs *o, uint32_t part, size_t bytes);
/* The data of an epoll event. */
void outputs_event(struct outputs *o, uint64_t data);

#endif
