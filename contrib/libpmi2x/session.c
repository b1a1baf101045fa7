/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the session: environment, singleton or server, the end. */
#include "session.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "handshake.h"
#include "libshm/region.h"
#include "libutil/decimal.h"
#include "print_error.h"
#include "singleton.h"
#include "slots_client.h"
#include "wire.h"

static _Atomic(struct session *) current;
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;

/* ---- fork ---- */

/* Held over fork, so that the child does not get it locked. */
static void lock_life(void)
{
	pthread_mutex_lock(&life);
}

static void unlock_life(void)
{
	pthread_mutex_unlock(&life);
}

static void unlock_and_disown(void)
{
	struct session *s = atomic_load(&current);

	if (s)
		atomic_store(&s->foreign, true);
	unlock_life();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(lock_life, unlock_life, unlock_and_disown);
}

/* A child made without fork() runs no handlers: look at the pid, too. */
static bool is_foreign(const struct session *s)
{
	return atomic_load(&s->foreign) || s->owner != getpid();
}

/* ---- environment ---- */

static bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text && strcmp(text, "0") != 0;
}

static void read_settings(struct settings *set)
{
	set->pmi1_wire = is_set("PMI2X_PMI1_WIRE");
	set->disable = is_set("PMI2X_DISABLE");
	set->no_region = is_set("PMI2X_NOSHM");
	set->no_slots = is_set("PMI2X_NOSLOTS");
	set->debug = is_set("PMI2X_DEBUG");
	set->slurm = getenv("PMI_JOBID") != NULL;
}

/* The descriptor in PMI_FD, or -1, which is none. */
static int descriptor(const char *text)
{
	uint32_t fd;

	return decimal_u32(text, 0, INT_MAX, &fd) ? (int)fd : -1;
}

static int open_conn(struct job *job, const char *text)
{
	int fd = descriptor(text);
	int rc = fd < 0 ? -EINVAL : conn_open(&job->conn, fd);

	if (rc)
		print_error("pmi2x: PMI_FD=%s is not an open socket: %s; a "
			    "program that started this one closed it (csh does) "
			    "or still uses it: start the program with srun, or "
			    "unset PMI_FD to run it alone\n",
			    text, strerror(-rc));
	return rc;
}

/* ---- start ---- */

static int join_server(struct job *job, const char *text)
{
	int rc = open_conn(job, text);

	if (rc)
		return rc;
	conn_set_debug(job->conn, job->settings.debug);
	rc = handshake(job);
	conn_set_rank(job->conn, job->rank);
	if (!rc && !job->extension) /* an agent refuses a second program, and srun names it */
		conn_keep(job->conn);
	return rc;
}

static void leave_server(struct job *job)
{
	slots_client_close(job->slots);
	if (job->region)
		region_detach(job->region);
	conn_close(job->conn);
	singleton_destroy(job->alone);
}

static void destroy(struct session *s)
{
	views_destroy(&s->views);
	mvapich_destroy(&s->mvapich);
	requests_destroy(&s->requests);
	leave_server(&s->job);
	job_destroy(&s->job);
	pthread_cond_destroy(&s->left);
	free(s);
}

static struct session *create(void)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->phase, SESSION_STARTING);
	s->owner = getpid();
	pthread_cond_init(&s->left, NULL);
	job_init(&s->job);
	views_init(&s->views, &s->job);
	requests_init(&s->requests, &s->job, &s->views);
	mvapich_init(&s->mvapich, &s->requests, &s->views);
	read_settings(&s->job.settings);
	rank_trace_note(&s->job.trace, RANK_TRACE_INIT_BEGIN);
	return s;
}

static int start_locked(void)
{
	const char *text = getenv("PMI_FD");
	struct session *s;
	int rc;

	if (atomic_load(&current))
		return -EALREADY;
	s = create();
	if (!s)
		return -ENOMEM;
	rc = text ? join_server(&s->job, text) : singleton_start(&s->job);
	if (rc) {
		destroy(s);
		return rc;
	}
	rank_trace_note(&s->job.trace, RANK_TRACE_INIT_END);
	atomic_store(&s->phase, SESSION_READY);
	atomic_store(&current, s);
	return 0;
}

int session_start(void)
{
	int rc;

	lock_life();
	rc = start_locked();
	unlock_life();
	return rc;
}

/* ---- use ---- */

struct session *session_peek(void)
{
	struct session *s = atomic_load_explicit(&current, memory_order_acquire);

	if (!s || atomic_load_explicit(&s->foreign, memory_order_relaxed))
		return NULL;
	if (atomic_load_explicit(&s->phase, memory_order_relaxed) !=
	    SESSION_READY)
		return NULL;
	return s;
}

/* Under the life mutex. NULL and *error as of session_enter. */
static struct session *find_ready(int *error)
{
	struct session *s = atomic_load(&current);

	*error = 0;
	if (!s || atomic_load(&s->phase) != SESSION_READY)
		*error = -ENXIO;
	else if (is_foreign(s))
		*error = -ECHILD;
	return *error ? NULL : s;
}

struct session *session_enter(int *error)
{
	struct session *s;

	lock_life();
	s = find_ready(error);
	if (s)
		s->users++;
	unlock_life();
	return s;
}

int session_leave(struct session *s, int rc)
{
	lock_life();
	if (--s->users == 0)
		pthread_cond_broadcast(&s->left);
	unlock_life();
	return rc;
}

/* ---- end ---- */

/* The calling thread ends the session; from here on no call enters it. */
static struct session *begin_end(int *error)
{
	struct session *s;

	lock_life();
	s = find_ready(error);
	if (s)
		atomic_store(&s->phase, SESSION_ENDING);
	unlock_life();
	return s;
}

/*
 * Other threads should not be in calls any more. If some are: their calls fail
 * now, and they leave before the memory goes.
 */
static void expel(struct session *s)
{
	lock_life();
	if (s->job.conn && s->users)
		conn_break(s->job.conn, -ESHUTDOWN);
	while (s->users)
		pthread_cond_wait(&s->left, &life);
	atomic_store(&current, NULL);
	unlock_life();
}

int session_finish(void)
{
	struct session *s;
	int rc;

	s = begin_end(&rc);
	if (!s)
		return rc;
	requests_complete_all(&s->requests);
	rank_trace_note(&s->job.trace, RANK_TRACE_FINALIZE);
	rc = s->job.ops->finalize(&s->job);
	expel(s);
	destroy(s);
	return rc;
}
