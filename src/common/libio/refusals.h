/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refused sources at a listening socket: a line in the log for each source when it is
 * first refused, and how often that was at the end. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libutil/log.h"

#define REFUSALS_MAX 32      /* sources told apart; of the rest only a count */
#define REFUSAL_NAME_MAX 48  /* bytes, NUL included: an IPv6 address */

struct refusal {
	char name[REFUSAL_NAME_MAX];
	uint32_t more; /* refusals after the first */
};

struct refusals {
	const struct log_hook *log;
	struct refusal known[REFUSALS_MAX];
	uint32_t count;
	uint32_t others; /* refusals of sources that had no room */
};

void refusals_init(struct refusals *s, const struct log_hook *log);

/*
 * A connection of `ip` (16 bytes, IPv4 in its mapped form) ended before it was
 * proved, with this error of handshake_error or link_ops.end; -ENOBUFS: too many
 * wait. Errors that also happen among friends are not counted, such as a connection that
 * is given up, or one that looks for another step.
 */
void refusals_add(struct refusals *s, const uint8_t ip[16], int error);

/*
 * True: the process at the other end of this unix socket belongs to root or to `owner`.
 * Others are refused and counted; `what` names the socket for the log.
 */
bool refusals_let_in(struct refusals *s, int fd, uid_t owner,
		      const char *what);

/* The users that may: root and the owner. */
static inline bool refusals_user_counts(uid_t uid, uid_t owner)
{
	return uid == 0 || uid == owner;
}

/* Logs and counts a process of `uid` that was refused elsewhere. */
void refusals_add_user(struct refusals *s, uid_t uid, const char *what);

/* No more will come: log the counts. */
void refusals_end(struct refusals *s);
