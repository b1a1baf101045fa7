/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-pmixd as a process: slurmstepd has one for a step, pmi2x-dvmd one for all tasks of
 * a node. C library only.
 */
#pragma once

#include <stdint.h>

#include "supervisor/child.h"

#define PMIXD_WHY_MAX 512

struct pmixd_process {
	struct child child;
	int dir; /* its directory, -1: none yet */
};

#define PMIXD_PROCESS_NONE ((struct pmixd_process){ { -1, -1 }, -1 })

struct pmixd_options {
	const char *dir, *library, *gds, *collect;
	uint16_t port;     /* 0: no listener */
	char *const *more; /* cgroups; NULL ends, and NULL: none */
	bool keeps_dir;    /* it has the directory's descriptor */
};

/*
 * Make its directory and start it. `p` has the program, the user and the names; fds are its
 * end of the connection to the agent, and two listeners (-1: none). 0 or a negative errno.
 */
int pmixd_process_start(struct pmixd_process *x, const struct child_program *p,
			const struct pmixd_options *o, int *const fds[3]);
/* The client goes to pmi2x-pmixd, as a descriptor. 0 or a negative errno; -EAGAIN: not yet. */
int pmixd_process_let_in(const struct pmixd_process *x, int client, bool is_old);

enum pmixd_news {
	PMIXD_SAYS_NOTHING,
	PMIXD_SAYS,     /* HOST_READY, HOST_SERVES or HOST_LOG: in *m */
	PMIXD_GIVES_UP, /* these three with `why`, for people */
	PMIXD_HAS_FAILED,
	PMIXD_HAS_DIED,
};

enum pmixd_news pmixd_process_hear(const struct pmixd_process *x, char room[HOST_MSG_MAX],
				   struct host_msg *m, char why[PMIXD_WHY_MAX]);
extern const char pmixd_died[];
/* "the PMIx server of node X ..." */
void pmixd_process_why(char *out, size_t size, const char *node, const char *how);
/* Kill it, and wait for a moment until what it had open is closed. */
void pmixd_process_kill(const struct pmixd_process *x);
/* After that: remove its directory. */
void pmixd_process_forget(struct pmixd_process *x, const char *dir);
