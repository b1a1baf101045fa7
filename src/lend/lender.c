/* SPDX-License-Identifier: BSD-3-Clause */
/* How a rank waits, and its helper thread. */
#include "lend/lender.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lend/cores.h"
#include "lend/summary.h"
#include "lend/team.h"

#define LEND_AFTER_NS 200000
#define NAP_MIN_NS 5000
#define NAP_MAX_NS 100000
#define NAP_MAX_CALLED_NS 500000 /* of a rank that lender_call wakes */
#define LOOK_NS 10000000 /* for a rank that has died */
#define NS_PER_US 1000
#define NS_PER_MS 1000000
#define NS_PER_S 1000000000ll
#define SLACK_NS 1000
#define PAUSES 50
#define SHARED "it shares cores with another rank (srun --cpu-bind=cores binds ranks)"

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lender *started; /* for a child of fork */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void count_held(struct lender *l)
{
	accounts_update(&l->accounts, &l->ledger, (uint64_t)(now_ns() / NS_PER_US));
}

static void wake_helpers(struct lender *l)
{
	syscall(SYS_futex, l->ledger.changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void place(struct lender *l)
{
	uint32_t places[LEDGER_CORES_MAX];

	if (l->moves)
		team_place(places, ledger_places(&l->ledger, l->slot, l->order, places), &l->own);
}

static void withdraw(struct lender *l)
{
	atomic_store(&l->active, false);
	ledger_wait(&l->ledger, l->slot);
	ledger_leave(&l->ledger, l->slot);
	count_held(l);
	if (l->moves)
		team_release(&l->own);
}

/* ---- the helper ---- */

/* False: the program has closed the descriptor, and may have opened another file. */
static bool has_descriptor(const struct lender *l)
{
	struct stat st;

	return !fstat(l->fd, &st) && st.st_dev == l->device && st.st_ino == l->inode;
}

static bool is_dead(struct lender *l, uint32_t slot)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot,
			      .l_len = 1 };

	return !fcntl(l->fd, F_GETLK, &lock) && lock.l_type == F_UNLCK;
}

/* The helpers look at one rank each, so that together they see all of them at each turn. */
static void look_at(struct lender *l, uint32_t slot)
{
	uint32_t state = word_load(&l->ledger.ranks[slot].state);

	if (slot == l->slot || (state != LEDGER_COMPUTES && state != LEDGER_WAITS) ||
	    !is_dead(l, slot))
		return;
	ledger_leave(&l->ledger, slot);
	wake_helpers(l);
}

static void share(struct lender *l)
{
	pthread_mutex_lock(&places_lock);
	if (atomic_load(&l->active) && ledger_share(&l->ledger, l->slot, l->order)) {
		place(l);
		count_held(l);
	}
	pthread_mutex_unlock(&places_lock);
}

/* Every few milliseconds. A rank without its descriptor has no lock, and cannot ask for locks. */
static void look_around(struct lender *l, uint32_t slot)
{
	if (!has_descriptor(l)) {
		lender_stop(l);
		return;
	}
	look_at(l, slot);
	team_settle();
}

static void *help(void *arg)
{
	const struct timespec limit = { 0, LOOK_NS };
	struct lender *l = arg;
	uint32_t seen = 0, changes, slot = l->slot;
	int64_t looked = 0;

	while (atomic_load(&l->active)) {
		changes = word_load(l->ledger.changes);
		if (changes == seen)
			syscall(SYS_futex, l->ledger.changes, FUTEX_WAIT, seen, &limit, NULL, 0);
		seen = changes;
		if (now_ns() - looked > LOOK_NS) {
			slot = (slot + 1) % l->ranks;
			look_around(l, slot);
			looked = now_ns();
		}
		share(l);
	}
	return NULL;
}

static bool start_helper(struct lender *l)
{
	sigset_t all, before;
	pthread_t id;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&id, NULL, help, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		pthread_detach(id);
	return !rc;
}

/* ---- the beginning ---- */

static void on_fork(void)
{
	atomic_store(&started->active, false);
	team_forked();
}

static uint32_t list_cores(const struct lend_cores *set, uint32_t *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < LEND_CORES_MAX; i++)
		if (set->words[i / LEND_WORD_BITS] >> i % LEND_WORD_BITS & 1)
			out[n++] = i;
	return n;
}

static bool view(struct lender *l, const struct lend_place *p, uint32_t first)
{
	char *behind = (char *)l->table + lend_table_size(p->ranks);

	accounts_view(&l->accounts, behind, p->slot);
	behind += accounts_size(p->ranks);
	ledger_view(&l->ledger, behind, p->ranks, p->cores);
	arrivals_view(&l->arrivals, behind + ledger_size(p->ranks, p->cores), p->ranks,
		      LEND_GROUPS);
	l->order = calloc(p->cores, sizeof(*l->order));
	for (uint32_t i = 0; l->order && i < p->cores; i++)
		l->order[i] = (first + i) % p->cores;
	return l->order;
}

static const char *join(struct lender *l, uint32_t threads)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = l->slot,
			      .l_len = 1 };
	uint32_t own[LEND_CORES_MAX], n = list_cores(&l->own, own);
	struct stat st;

	if (fstat(l->fd, &st) || fcntl(l->fd, F_SETLK, &lock))
		return "its lock is taken";
	l->device = st.st_dev;
	l->inode = st.st_ino;
	if (l->naps_only)
		n = 0;
	if (!ledger_join(&l->ledger, l->slot, own, n, threads ? threads : n))
		return SHARED;
	return NULL;
}

const char *lender_start(struct lender *l, const struct lend_place *p,
			 struct lend_table *table, const struct lend_cores *cores,
			 uint32_t threads)
{
	uint32_t own[LEND_CORES_MAX], n = list_cores(cores, own);
	const char *why;

	*l = (struct lender){ .fd = p->fd, .slot = p->slot, .ranks = p->ranks, .table = table,
			      .own = *cores, .naps_only = p->mode == LEND_NAPS,
			      .reports = p->reports };
	l->moves = threads && !l->naps_only;
	if (p->ranks < 2)
		return "there is no other rank on its node";
	if (!n || own[n - 1] >= CPU_SETSIZE || own[n - 1] >= p->cores)
		return "its cores have numbers that are too large";
	if (n == p->cores && !l->naps_only)
		return SHARED;
	if (!view(l, p, own[0]))
		return "there is no memory";
	why = join(l, threads);
	if (why)
		return why;
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	started = l;
	atomic_store(&l->active, true);
	if (pthread_atfork(NULL, NULL, on_fork) || (!l->naps_only && !start_helper(l))) {
		withdraw(l);
		return "its helper thread cannot be started";
	}
	return NULL;
}

/* ---- waits ---- */

/* False: other ranks take this one for dead, because it has lost its lock. */
static bool lend(struct lender *l)
{
	bool here = word_load(&l->ledger.ranks[l->slot].state) == LEDGER_COMPUTES;

	pthread_mutex_lock(&places_lock);
	if (here) {
		ledger_wait(&l->ledger, l->slot);
		place(l);
		count_held(l);
	} else {
		withdraw(l);
	}
	pthread_mutex_unlock(&places_lock);
	wake_helpers(l);
	return here;
}

static void pause_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* A call that comes before the sleep ends it at once: this rank counts as asleep before the test. */
static bool nap(struct lender *l, bool (*test)(void *arg), void *arg, int64_t ns)
{
	struct timespec t = { 0, ns };
	uint32_t seen;
	bool done;

	atomic_fetch_add(&l->table->sleepers, 1);
	seen = atomic_load(&l->table->calls);
	done = test(arg);
	if (!done)
		syscall(SYS_futex, &l->table->calls, FUTEX_WAIT, seen, &t, NULL, 0);
	atomic_fetch_sub(&l->table->sleepers, 1);
	return done;
}

/* A nap costs the rank that uses the core 10 to 20 us, so a long wait has longer naps. */
static bool pause_or_nap(struct lender *l, bool (*test)(void *arg), void *arg, int64_t *ns,
			 int64_t ns_max)
{
	int64_t now = *ns;

	if (!l->naps_only && !ledger_is_used(&l->ledger, l->slot)) {
		for (int i = 0; i < PAUSES; i++)
			pause_once();
		return false;
	}
	*ns = now * 2 < ns_max ? now * 2 : ns_max;
	return nap(l, test, arg, now);
}

void lender_call(struct lender *l)
{
	if (!atomic_load(&l->table->sleepers))
		return;
	atomic_fetch_add(&l->table->calls, 1);
	syscall(SYS_futex, &l->table->calls, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void resume(struct lender *l, int64_t begin)
{
	int64_t now = now_ns(), waited = now - begin;

	accounts_resume(&l->accounts, (uint64_t)(waited / NS_PER_US), lend_cores_count(&l->own),
			(uint64_t)(now / NS_PER_US));
	/* A rank that others have taken for dead stays so. */
	if (word_load(&l->ledger.ranks[l->slot].state) == LEDGER_WAITS &&
	    ledger_resume(&l->ledger, l->slot, (uint32_t)(waited / NS_PER_US)))
		wake_helpers(l);
}

bool lender_wait(struct lender *l, bool (*test)(void *arg), void *arg, int limit_ms)
{
	int64_t begin, ns = NAP_MIN_NS, ns_max = limit_ms ? NAP_MAX_CALLED_NS : NAP_MAX_NS;
	int64_t past = 0;
	bool lent = false, done = false;

	if (test(arg))
		return true;
	begin = now_ns();
	while (!done && !(done = test(arg)) && (!limit_ms || past < (int64_t)limit_ms * NS_PER_MS)) {
		past = now_ns() - begin;
		if (lent)
			done = pause_or_nap(l, test, arg, &ns, ns_max);
		else if (past > LEND_AFTER_NS && atomic_load(&l->active))
			lent = lend(l);
	}
	if (lent)
		resume(l, begin);
	return done;
}

void lender_stop(struct lender *l)
{
	pthread_mutex_lock(&places_lock);
	if (atomic_load(&l->active))
		withdraw(l);
	pthread_mutex_unlock(&places_lock);
	wake_helpers(l);
}

void lender_report(struct lender *l)
{
	const char *node = getenv("SLURMD_NODENAME");
	char text[LEND_SUMMARY_MAX];

	if (!l->reports || l->naps_only)
		return;
	lend_summary(l->accounts.ranks, l->table, l->ranks, node ? node : "?", text);
	fprintf(stderr, "%s\n", text);
}
