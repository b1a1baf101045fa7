/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the session: environment, singleton or server, the end. */
#include "session.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handshake.h"
#include "print_error.h"

static _Atomic(struct session *) current;
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;

/* ---- fork ---- */

static void disown_in_child(void)
{
	struct session *s = atomic_load(&current);

	if (s)
		atomic_store(&s->foreign, true);
}

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
	disown_in_child();
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

/* The descriptor in PMI_FD; -1 when it is not set; -2 when it is no number. */
static int pmi_fd(const char *text)
{
	char *end;
	long fd;

	if (!text)
		return -1;
	errno = 0;
	fd = strtol(text, &end, 10);
	if (errno || end == text || *end || fd < 0 || fd > INT_MAX)
		return -2;
	return (int)fd;
}

static int open_conn(struct session *s, const char *text)
{
	int fd = pmi_fd(text);
	int rc = fd == -2 ? -EINVAL : conn_open(&s->conn, fd);

	if (rc)
		print_error("pmi2x: PMI_FD=%s is not an open socket: %s; start "
			 "the program with srun, or unset PMI_FD to run it "
			 "alone\n", text, strerror(-rc));
	return rc;
}

/* ---- start ---- */

static int become_singleton(struct session *s)
{
	s->ops = &wire_singleton;
	s->rank = 0;
	s->size = 1;
	s->appnum = -1;
	return singleton_create(&s->alone);
}

static int join_server(struct session *s, const char *text)
{
	int rc = open_conn(s, text);

	if (rc)
		return rc;
	conn_set_debug(s->conn, s->settings.debug);
	rc = handshake(s);
	conn_set_rank(s->conn, s->rank);
	if (!rc)
		conn_keep(s->conn);
	return rc;
}

static void destroy(struct session *s)
{
	views_detach(s);
	views_destroy(&s->views);
	mvapich_destroy(&s->mvapich);
	requests_destroy(&s->requests);
	gather_destroy(&s->gather);
	kvs_destroy(&s->kvs);
	slots_client_close(s->slots);
	if (s->region)
		region_detach(s->region);
	conn_close(s->conn);
	singleton_destroy(s->alone);
	pthread_cond_destroy(&s->left);
	free(s->server_build);
	free(atomic_load(&s->jobid));
	free(s);
}

static struct session *create(void)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->phase, SESSION_STARTING);
	s->owner = getpid();
	s->rank = -1;
	pthread_cond_init(&s->left, NULL);
	kvs_init(&s->kvs);
	gather_init(&s->gather);
	requests_init(&s->requests);
	views_init(&s->views);
	mvapich_init(&s->mvapich);
	read_settings(&s->settings);
	stamps_init(&s->stamps);
	stamp(&s->stamps, EXT_STAMP_INIT_BEGIN);
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
	rc = text ? join_server(s, text) : become_singleton(s);
	if (rc) {
		destroy(s);
		return rc;
	}
	stamp(&s->stamps, EXT_STAMP_INIT_END);
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

bool session_exists(void)
{
	return session_peek() != NULL;
}

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

void session_leave(struct session *s)
{
	lock_life();
	if (--s->users == 0)
		pthread_cond_broadcast(&s->left);
	unlock_life();
}

int session_jobid(struct session *s, const char **out)
{
	struct value v = { NULL, 0 };
	char *known = atomic_load(&s->jobid);
	int rc;

	if (!known) {
		rc = s->ops->jobid(s, &v);
		if (rc)
			return rc;
		if (atomic_compare_exchange_strong(&s->jobid, &known, v.data))
			known = v.data;
		else
			free(v.data);
	}
	*out = known;
	return 0;
}

/* ---- end ---- */

/* One thread ends the session; from here on no call enters it. */
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
	if (s->conn && s->users)
		conn_break(s->conn, -ESHUTDOWN);
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
	requests_complete_all(s);
	stamp(&s->stamps, EXT_STAMP_FINALIZE);
	rc = s->ops->finalize(s);
	expel(s);
	destroy(s);
	return rc;
}
