/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session of a process: from init to finalize. There is at most one; the
 * pointer to it, with its mutex, is the library's only file-scope state.
 *
 * A session may be used from any thread. It belongs to the process that
 * started it: a child of fork gets an error from every call.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "job.h"
#include "mvapich.h"
#include "requests.h"
#include "views.h"

enum session_phase { SESSION_STARTING, SESSION_READY, SESSION_ENDING };

struct session {
	_Atomic(enum session_phase) phase;
	atomic_bool foreign; /* this process is a fork of the owner */
	pid_t owner;
	unsigned int users;  /* threads inside calls; under the life mutex */
	pthread_cond_t left; /* the last of them has left */

	struct job job;
	struct requests requests;
	struct views views;
	struct mvapich mvapich;
};

/*
 * Start the session of this process. 0; -EALREADY (there is one, also that of a
 * parent process), -EINVAL, -EBADF, -ENOTSOCK (PMI_FD), or an error of the
 * connection. The error is also printed on stderr.
 */
int session_start(void);

/*
 * Complete what was not waited for, tell the server, free everything. 0;
 * -ENXIO, -ECHILD as session_enter; or an error of the connection, and then the
 * session has ended all the same.
 */
int session_finish(void);

/*
 * Begin to use the session; session_leave ends that. NULL and *error: -ENXIO
 * (no init, or after finalize) or -ECHILD (a forked child).
 */
struct session *session_enter(int *error);
int session_leave(struct session *s, int rc); /* returns `rc` */

/*
 * The session without entering it: for lock-free look-ups in its region. NULL
 * when there is none that is ready. Finalize must not run meanwhile.
 */
struct session *session_peek(void);
