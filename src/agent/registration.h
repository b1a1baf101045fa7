/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a child that becomes a rank gives the agent of its node its connection.
 *
 * Each rank's socket pair is made by the child itself, and its end reaches the
 * agent in one message of a SOCK_SEQPACKET pair. So nobody but the agent holds
 * the server's end, and that socket tells who the rank is: its death shows on a
 * pidfd, even when a grandchild keeps PMI_FD open.
 */
#ifndef PMI2X_REGISTRATION_H
#define PMI2X_REGISTRATION_H

#include <stdbool.h>
#include <stdint.h>

#define REGISTRATIONS_AT_ONCE 32

struct registration {
	uint32_t slot; /* UINT32_MAX: the message made no sense */
	int fd;        /* the receiver's; -1: none came */
	bool lost;     /* one came, and the process can have no more of them */
};

/*
 * The agent's end and the end that children inherit, both CLOEXEC. *theirs is
 * `at_least` or the next free descriptor above, where the limit of descriptors
 * allows that. A child waits for room for at most half a minute. 0 or a negative
 * errno.
 */
int registration_open(int at_least, int *ours, int *theirs);

/*
 * Take what has come to `ours`, up to REGISTRATIONS_AT_ONCE, without waiting.
 * Returns how many, or a negative errno.
 */
int registration_receive(int ours,
			 struct registration out[REGISTRATIONS_AT_ONCE]);

/*
 * A pidfd (CLOEXEC) of the process at the other end of a rank's connection.
 * -ESRCH: it has ended; other negative errnos: the kernel cannot tell.
 * *any_time says whether asking later would have answered about the same
 * process for sure (since Linux 6.5); else its number may have been reused.
 */
int registration_pidfd(int fd, bool *any_time);

#endif
