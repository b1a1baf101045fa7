/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session of a process: from init to finalize. There is at most one; the
 * pointer to it, with its mutex, is the library's only file-scope state.
 *
 * A session may be used from any thread. It belongs to the process that
 * started it: a child of fork gets an error from every call.
 */
#ifndef PMI2X_SESSION_H
#define PMI2X_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "conn.h"
#include "gather.h"
#include "kvs.h"
#include "libshm/region.h"
#include "mvapich.h"
#include "requests.h"
#include "singleton.h"
#include "slots_client.h"
#include "stamps.h"
#include "views.h"
#include "wire.h"

/* What the environment says; read once, at init. */
struct settings {
	bool pmi1_wire; /* PMI2X_PMI1_WIRE: speak PMI-1 */
	bool disable;   /* PMI2X_DISABLE: do not offer the extension */
	bool no_region; /* PMI2X_NOSHM: do not map the results region */
	bool no_slots;  /* PMI2X_NOSLOTS: enter collectives over the socket */
	bool debug;     /* PMI2X_DEBUG: print refused requests */
	bool slurm;     /* PMI_JOBID is set, as Slurm's plugins do */
};

enum session_phase { SESSION_STARTING, SESSION_READY, SESSION_ENDING };

struct session {
	_Atomic(enum session_phase) phase;
	atomic_bool foreign; /* this process is a fork of the owner */
	pid_t owner;
	unsigned int users;  /* threads inside calls; under the life mutex */
	pthread_cond_t left; /* the last of them has left */

	struct settings settings;
	const struct wire_ops *ops;
	struct conn *conn;   /* NULL: singleton */
	int rank;
	int size;
	int appnum;          /* -1: unknown */
	bool spawned;
	_Atomic(char *) jobid; /* asked for when first needed; never changes */

	int extension;       /* version agreed on; 0: plain PMI */
	int nodes;           /* of the step; 0: the server did not tell */
	char *server_build;  /* or NULL */
	struct region *region; /* or NULL: results come over the socket */
	size_t region_size;

	struct slots_client *slots; /* or NULL: collectives use the socket */

	struct stamps stamps;
	struct kvs kvs;
	struct gather_state gather;
	struct requests requests;
	struct views views;
	struct mvapich mvapich;
	struct singleton *alone; /* what a singleton has put */
	atomic_uint ring_sequence; /* rings made of put, fence and get */
	atomic_uint kvs_created;   /* by PMI_KVS_Create */
};

/*
 * Start the session of this process. 0; -EALREADY (there is one, also that of a
 * parent process), -EINVAL, -EBADF, -ENOTSOCK (PMI_FD), or an error of the
 * connection. What is wrong is also said on stderr.
 */
int session_start(void);

/*
 * Complete what was not waited for, tell the server, free everything. 0;
 * -ENXIO, -ECHILD as session_enter; or an error of the connection, and then the
 * session has ended all the same.
 */
int session_finish(void);

bool session_exists(void);

/*
 * Begin to use the session; session_leave ends that. NULL and *error: -ENXIO
 * (no init, or after finalize) or -ECHILD (a forked child).
 */
struct session *session_enter(int *error);
void session_leave(struct session *s);

/*
 * The session without entering it: for lock-free look-ups in its region. NULL
 * when there is none that is ready. Finalize must not run meanwhile.
 */
struct session *session_peek(void);

/* The job id, from the environment of the call or the server. 0 or an error. */
int session_jobid(struct session *s, const char **out);

#endif
