/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm-zygote, the process of a node that starts and reaps the ranks of tasks. It is
 * small and has one thread, so a fork of it is cheap. pmi2x-dvmd, which starts it, tells it
 * what to do over ZYGOTE_FD (orders.h), and hears what has come of it: frames
 * (libio/frames.h) of FRAME_CONTROL_UP. When that ends it kills all ranks, and ends.
 */
#ifndef PMI2X_DVM_ZYGOTE_H
#define PMI2X_DVM_ZYGOTE_H

#include <sys/types.h>

#include "dvm/core/node.h"
#include "dvm/zygote/orders.h"
#include "dvm/zygote/parts.h"
#include "dvm/zygote/profiles.h"
#include "dvm/zygote/rank_program.h"
#include "dvm/zygote/resources.h"

#define ZYGOTE_FD 3     /* a SOCK_STREAM pair's end */
/*
 * pmi2x-dvmd's connection to its first head. When pmi2x-dvmd has been killed, the head sees
 * its end when the zygote has ended, too, and hears before that no rank is left.
 * Connections to later heads come over ZYGOTE_FD, and take its place.
 */
#define ZYGOTE_LINK_FD 4
/*
 * The socket at which pmi2x-dvmd listens. Nobody accepts here: while this process has it,
 * connections to that port are not refused. So one that is refused proves that both
 * processes, and with them all ranks, have ended.
 */
#define ZYGOTE_LISTENER_FD 5

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

#endif
