/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a child that becomes a rank gives the agent of its node its connection.
 *
 * Each rank's socket pair is made by the child itself, and its end reaches the
 * agent in one message of a SOCK_SEQPACKET pair. So nobody but the agent holds
 * the server's end, and that socket tells who the rank is: its death shows on a
 * pidfd, even when a grandchild keeps PMI_FD open.
 *
 * Until the agent runs, who will start it receives the messages, and later passes
 * them on over the same pair, with the pidfd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libutil/log.h"

#define REGISTRATIONS_AT_ONCE 32

/* Times of a rank, for a trace: ns of CLOCK_MONOTONIC, 0: unknown, or nobody asks. */
struct registration_times {
	int64_t forked; /* when its process was made */
	int64_t left;   /* when it was registered, shortly before exec */
};

struct registration {
	uint32_t slot; /* UINT32_MAX: the message made no sense */
	int fd;        /* the receiver's; -1: none came */
	int pidfd;     /* the receiver's; -1: nobody has asked for it; another
	                  negative errno: there is none */
	bool lost;     /* one came, and the process can have no more of them */
	struct registration_times times; /* as the child says: not to be trusted */
};

/*
 * The agent's end and the end that children inherit, both CLOEXEC. *theirs is
 * `at_least` or the next free descriptor above, where the limit of descriptors
 * allows that. A child waits for room for at most half a minute. 0 or a negative
 * errno.
 */
int registration_open(int at_least, int *ours, int *theirs);

/*
 * In a child, before exec, as the rank's user: make the rank's connection and
 * give the agent its end. Writes the descriptor for PMI_FD (not CLOEXEC). Uses
 * no memory but the descriptor. 0 or a negative errno.
 */
int registration_of_rank(int theirs, uint32_t slot, int *pmi_fd);
/* As above, with times (NULL: none). */
int registration_of_timed_rank(int theirs, uint32_t slot,
			       const struct registration_times *times,
			       int *pmi_fd);

/*
 * After that, in a child that registers nobody else: move PMI_FD to the number of the
 * registration socket, which has kept it free, so that it is the same in every
 * rank of the node. Returns the number that it has now.
 */
int registration_takes_place(int theirs, int pmi_fd);

/*
 * Take what has come to `ours`, up to REGISTRATIONS_AT_ONCE, without waiting.
 * Returns how many, or a negative errno; -EPIPE: nobody can register any more.
 */
int registration_receive(int ours,
			 struct registration out[REGISTRATIONS_AT_ONCE]);

/* Pass one on, and close the descriptors. 0 or a negative errno. */
int registration_pass(int theirs, struct registration *reg);

/* Log and close one for a slot that there is not, or not again. */
void registration_refuse(struct registration *reg, bool is_there,
			 const struct log_hook *log);

/*
 * The pidfd (CLOEXEC) of the process at the other end of a rank's connection, asked
 * for if nobody has. -ESRCH: it has ended; other negative errnos: the kernel cannot
 * tell.
 */
int registration_process(struct registration *reg);

/*
 * Finds the process at the time of registering: later it may be too late, since kernels
 * before Linux 6.5 know the number only, which may be used again. Where *any_time says
 * that asking later does as well, nothing is done; it is found out at the first one.
 */
void registration_find_process(struct registration *reg, bool *any_time);
