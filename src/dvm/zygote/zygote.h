/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm-zygote, the process of a node that starts and reaps the ranks of tasks. The
 * process is small and has one thread, so a fork of it is cheap. pmi2x-dvmd starts it,
 * sends orders over ZYGOTE_FD (orders.h), and gets the results: frames (libio/frames.h) of
 * FRAME_CONTROL_UP. When ZYGOTE_FD is closed the zygote kills all ranks, and ends.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "dvm/core/node.h"
#include "dvm/zygote/orders.h"
#include "dvm/zygote/parts.h"
#include "dvm/zygote/profiles.h"
#include "dvm/zygote/rank_program.h"
#include "dvm/zygote/resources.h"

#define ZYGOTE_FD 3     /* a SOCK_STREAM pair's end */
/*
 * pmi2x-dvmd's connection to its first head. After pmi2x-dvmd was killed, this copy keeps
 * the connection open until the zygote ends, too; before that the zygote reports over it
 * that no rank is left. Connections to later heads come over ZYGOTE_FD, and replace this
 * one.
 */
#define ZYGOTE_LINK_FD 4
/*
 * The listening socket of pmi2x-dvmd. This process accepts no connection: it keeps the
 * socket open, so that none to that port is refused. A refused connection proves that both
 * processes, and with them all ranks, have ended.
 */
#define ZYGOTE_LISTENER_FD 5

/* ---- zygote_exec.c ---- */

/* Call once, before zygote_exec. 0 or a negative errno. */
int zygote_exec_init(void);
/* The descriptor of the memory for faults, and the number and size of these. */
int zygote_exec_faults(size_t *count, size_t *size);
/* Descriptors for a rank; -1: none. */
struct rank_fds {
	int output[2];    /* -1: /dev/null */
	int registration; /* for its PMI: libio/registration.h */
};

/* Fork and execute a rank. The process, or a negative errno. */
pid_t zygote_exec(const struct node_rank *rank, const struct resources *has,
		  const struct rank_fds *fds);
/*
 * The process has ended, with a status as of wait. Returns why it could not execute its
 * program, in a static buffer, and whether the node lacked something; or NULL.
 */
const char *zygote_exec_failure(pid_t process, int status, bool *lacks);

/* ---- zygote_start.c ---- */

/*
 * Start ranks of a part, from what->first on: *count ranks, whose processes are in
 * processes[]. 0, or a negative errno of the first rank that was not started.
 */
int zygote_start(struct parts *parts, const struct node_start *what,
		 const struct resources *has, const struct rank_fds *fds,
		 uint64_t *processes, uint32_t *count);

/* ---- zygote_limits.c ---- */

/* Call once: raise the soft limits of this process. */
void zygote_limits_init(void);
/* Call first in a rank: set its umask, and make room for descriptors. */
void zygote_limits_begin(const struct dvm_limits *limits);
/* Call last in a rank: set its limits. */
void zygote_limits_set(const struct dvm_limits *limits);
/* One of a rank's limits. */
struct rlimit zygote_limits_of(const struct dvm_limits *limits, int i);
/* In a rank. True: a limit of its own bounds its memory. */
bool zygote_limits_bound_memory(void);
