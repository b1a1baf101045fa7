/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of an OpenMP team. pthread_create is replaced: a call from libgomp, libomp or libiomp5
 * makes a thread of the team. A thread leaves the list before it ends, under the lock, so that no number of
 * a thread that has ended is used.
 */
#include "lend/team.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lend/core/ledger.h"
#include "lend/cores.h"
#include "lend/own_facts.h"

#define THREADS_MAX 1024
#define SETTLE_TURNS 2 /* the first one may come before the thread has bound itself */
#define EXPORTED __attribute__((visibility("default")))

typedef void *routine(void *);
typedef int creator(pthread_t *, const pthread_attr_t *, routine *, void *);

struct start {
	routine *run;
	void *arg;
	bool member; /* of the team */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t ids[THREADS_MAX]; /* of the kernel; 0: free. Without the initial thread. */
static uint32_t nids;          /* entries that have been used */
static cpu_set_t own_set;      /* where a new thread begins, while `placed` */
static atomic_bool placed;
static uint32_t places[LEDGER_CORES_MAX]; /* of the last team_place */
static uint32_t nplaces;
static uint32_t unsettled; /* turns of team_settle to come */

/* ---- binding; the caller has the lock ---- */

static void bind_all(void)
{
	uint32_t n = nids + 1;
	cpu_set_t set = own_set;

	for (uint32_t i = 0; i < n; i++) {
		pid_t id = i ? ids[i - 1] : getpid();

		if (nplaces) {
			CPU_ZERO(&set);
			CPU_SET(places[(uint64_t)i * nplaces / n], &set);
		}
		if (id)
			sched_setaffinity(id, sizeof(set), &set);
	}
}

/* ---- the list ---- */

static void enter(pid_t id)
{
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < nids && ids[i])
		i++;
	if (i < THREADS_MAX)
		ids[i] = id;
	if (i == nids && i < THREADS_MAX)
		nids++;
	unsettled = SETTLE_TURNS;
	if (atomic_load(&placed))
		bind_all();
	pthread_mutex_unlock(&lock);
}

static void leave(void *arg)
{
	pid_t id = (pid_t)syscall(SYS_gettid);

	(void)arg;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < nids; i++)
		if (ids[i] == id)
			ids[i] = 0;
	while (nids && !ids[nids - 1])
		nids--;
	pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
	struct start s = *(struct start *)arg;
	void *result;

	free(arg);
	if (atomic_load(&placed))
		sched_setaffinity(0, sizeof(own_set), &own_set);
	if (!s.member)
		return s.run(s.arg);
	enter((pid_t)syscall(SYS_gettid));
	pthread_cleanup_push(leave, NULL);
	result = s.run(s.arg);
	pthread_cleanup_pop(1);
	return result;
}

/* ---- pthread_create ---- */

static bool is_openmp(const void *caller)
{
	enum lend_openmp kind = lend_openmp_of(caller);

	return kind == LEND_OPENMP_GNU || kind == LEND_OPENMP_LLVM;
}

/* True: the calling thread has been bound to one core, which a new thread would inherit. */
static bool is_bound(void)
{
	pid_t id = (pid_t)syscall(SYS_gettid);
	bool found = id == getpid();

	if (!atomic_load(&placed))
		return false;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < nids; i++)
		found |= ids[i] == id;
	pthread_mutex_unlock(&lock);
	return found;
}

EXPORTED int pthread_create(pthread_t *id, const pthread_attr_t *attr, routine *begin, void *arg);

int pthread_create(pthread_t *id, const pthread_attr_t *attr, routine *begin, void *arg)
{
	creator *real = (creator *)dlsym(RTLD_NEXT, "pthread_create");
	bool member = is_openmp(__builtin_return_address(0));
	struct start *s;
	int rc;

	if (!member && !is_bound())
		return real(id, attr, begin, arg);
	s = malloc(sizeof(*s));
	if (!s)
		return real(id, attr, begin, arg);
	*s = (struct start){ begin, arg, member };
	rc = real(id, attr, run, s);
	if (rc)
		free(s);
	return rc;
}

/* ---- the number of threads ---- */

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcasecmp(value, "false") != 0;
}

static const char *hindrance(void)
{
	static const char *const names[] = { "OMP_DYNAMIC", "OMP_PROC_BIND", "OMP_PLACES",
					     "GOMP_CPU_AFFINITY", "KMP_AFFINITY" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_set(names[i]))
			return names[i];
	return NULL;
}

uint32_t team_widen(const struct lend_facts *facts, uint32_t factor, const char **why)
{
	int (*limit)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_thread_limit");
	void (*set)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
	uint32_t cores = lend_cores_count(&facts->cores);

	*why = NULL;
	if ((facts->openmp != LEND_OPENMP_GNU && facts->openmp != LEND_OPENMP_LLVM) || !set ||
	    !limit)
		*why = "the program uses neither libgomp nor libomp";
	else if (hindrance())
		*why = hindrance();
	else if (facts->threads > cores)
		*why = "it has more threads than cores";
	else if (limit() < (int)(cores * factor) || cores * factor > THREADS_MAX)
		*why = "OMP_THREAD_LIMIT";
	if (*why)
		return 0;
	set((int)(cores * factor));
	return cores * factor;
}

/* ---- binding ---- */

static void set_own(const struct lend_cores *own)
{
	CPU_ZERO(&own_set);
	for (uint32_t i = 0; i < CPU_SETSIZE; i++)
		if (own->words[i / LEND_WORD_BITS] >> i % LEND_WORD_BITS & 1)
			CPU_SET(i, &own_set);
}

void team_place(const uint32_t *cores, uint32_t n, const struct lend_cores *own)
{
	pthread_mutex_lock(&lock);
	nplaces = n < LEDGER_CORES_MAX ? n : LEDGER_CORES_MAX;
	if (nplaces)
		memcpy(places, cores, nplaces * sizeof(*places));
	if (!atomic_load(&placed))
		set_own(own);
	atomic_store(&placed, true);
	bind_all();
	pthread_mutex_unlock(&lock);
}

void team_settle(void)
{
	pthread_mutex_lock(&lock);
	if (unsettled && atomic_load(&placed)) {
		bind_all();
		unsettled--;
	}
	pthread_mutex_unlock(&lock);
}

void team_release(const struct lend_cores *own)
{
	if (!atomic_load(&placed))
		return;
	team_place(NULL, 0, own);
	atomic_store(&placed, false);
}

void team_forked(void)
{
	pthread_mutex_init(&lock, NULL); /* a thread that is not here may hold it */
	if (atomic_load(&placed))
		sched_setaffinity(0, sizeof(own_set), &own_set);
	atomic_store(&placed, false);
}
