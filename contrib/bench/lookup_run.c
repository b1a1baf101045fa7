/* SPDX-License-Identifier: BSD-3-Clause */
/* A measurement of the look-up study: the readers, the writer, the sums. */
#include "lookup.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libio/clock.h"

#define BURST 128      /* look-ups between two looks at the clock */
#define WARM_UP 2000   /* look-ups before */
#define POLL_NS 200000 /* until all readers are ready */

struct reader_result {
	uint64_t lookups;
	uint64_t torn;
	int64_t cpu_ns;
	int64_t wall_ns;
	int error;
};

/* Memory that writer and readers share besides the store. */
struct shared {
	_Atomic uint32_t ready;
	/*
	 * When it is over, ns of CLOCK_MONOTONIC; 0: it has not begun. Readers
	 * see for themselves: the writer may not get a lock while they read.
	 */
	_Atomic int64_t end;
	struct reader_result results[];
};

struct reader {
	struct lookup_store *store;
	struct shared *shared;
	uint32_t number;
	uint64_t random;
	uint32_t *seen; /* the newest version of each key so far */
	unsigned char *value;
	struct reader_result *result;
};

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / NS_PER_S, ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) ==
	       EINTR)
		;
}

/* ---- a reader ---- */

static uint32_t next_key(struct reader *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return (r->random >> 16) % r->store->options->keys;
}

static void look_up(struct reader *r)
{
	const struct lookup_options *o = r->store->options;
	uint32_t key = next_key(r);
	int64_t version;

	if (!o->way->get(r->store, r->number, key, r->value)) {
		r->result->error = ENOENT;
		return;
	}
	version = value_check(r->value, o->bytes, key);
	if (version < 0)
		r->result->torn++;
	else if (version < r->seen[key])
		r->result->error = EILSEQ;
	else
		r->seen[key] = version;
	r->result->lookups++;
}

static void measure(struct reader *r)
{
	int64_t cpu, wall, end;

	while (!(end = atomic_load(&r->shared->end)))
		sched_yield();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	do { /* once, however late it is: a busy machine shall not lose any */
		for (int i = 0; i < BURST; i++)
			look_up(r);
	} while (!r->result->error && clock_ns(CLOCK_MONOTONIC) < end);
	r->result->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	r->result->wall_ns = clock_ns(CLOCK_MONOTONIC) - wall;
}

/* In a child; does not return. */
static void be_reader(struct lookup_store *s, struct shared *shared,
		      uint32_t number)
{
	const struct lookup_options *o = s->options;
	struct reader r = {
		.store = s,
		.shared = shared,
		.number = number,
		.random = 0x2545f4914f6cdd1du + number,
		.seen = calloc(o->keys, sizeof(*r.seen)),
		.value = malloc(o->bytes),
		.result = &shared->results[number],
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!r.seen || !r.value || o->way->attach(s))
		_exit(1);
	for (int i = 0; i < WARM_UP; i++)
		look_up(&r);
	r.result->lookups = r.result->torn = 0;
	atomic_fetch_add(&shared->ready, 1);
	measure(&r);
	_exit(0);
}

/* ---- the writer ---- */

static int update(struct lookup_store *s, uint64_t n, unsigned char *value)
{
	const struct lookup_options *o = s->options;
	uint32_t key = n * 7919 % o->keys; /* all over the image */

	value_write(value, o->bytes, key, (uint32_t)(n / o->keys + 1));
	return o->way->put(s, key, value);
}

static int write_until(struct lookup_store *s, int64_t end,
		       struct lookup_result *result)
{
	const struct lookup_options *o = s->options;
	int64_t begin = clock_ns(CLOCK_MONOTONIC), next = begin, before;
	unsigned char *value = malloc(o->bytes);
	int64_t spent = 0;
	int rc = value ? 0 : -ENOMEM;

	while (!rc && o->rate && next < end) {
		sleep_until(next);
		before = clock_ns(CLOCK_MONOTONIC);
		if (before >= end)
			break;
		rc = update(s, result->updates++, value);
		spent += clock_ns(CLOCK_MONOTONIC) - before;
		next = begin + result->updates * (int64_t)(NS_PER_S / o->rate);
	}
	if (!rc)
		sleep_until(end);
	result->update_us = result->updates ?
		(double)spent / 1000 / result->updates : 0;
	free(value);
	return rc;
}

/* ---- both ---- */

static int start_readers(struct lookup_store *s, struct shared *shared,
			 pid_t *pids)
{
	for (uint32_t i = 0; i < s->options->readers; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			be_reader(s, shared, i);
		if (pids[i] < 0) {
			int rc = -errno;

			while (i-- > 0)
				kill(pids[i], SIGKILL);
			return rc;
		}
	}
	return 0;
}

/* -ECHILD: one has died. Children are buried by end_readers. */
static int wait_until_ready(const struct lookup_options *o,
			    struct shared *shared)
{
	siginfo_t info;

	while (atomic_load(&shared->ready) < o->readers) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid)
			return -ECHILD;
		sleep_until(clock_ns(CLOCK_MONOTONIC) + POLL_NS);
	}
	return 0;
}

static int end_readers(uint32_t n, const pid_t *pids, bool kill_them)
{
	int status, rc = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (pids[i] <= 0)
			continue;
		if (kill_them)
			kill(pids[i], SIGKILL);
		if (waitpid(pids[i], &status, 0) < 0 || status)
			rc = -ECHILD;
	}
	return rc;
}

static int sum_up(const struct lookup_options *o, const struct shared *shared,
		  struct lookup_result *result)
{
	double cpu = 0, wall = 0;

	for (uint32_t i = 0; i < o->readers; i++) {
		const struct reader_result *r = &shared->results[i];

		if (r->error || (r->torn && o->way->whole))
			return r->error == ENOENT ? -ENOENT : -EILSEQ;
		result->torn += r->torn;
		result->lookups += r->lookups;
		cpu += r->cpu_ns;
		wall += r->wall_ns;
	}
	result->cpu_ns = cpu / result->lookups;
	result->wall_ns = wall / result->lookups;
	return 0;
}

static int run_processes(struct lookup_store *s, struct shared *shared,
			 pid_t *pids, struct lookup_result *result)
{
	const struct lookup_options *o = s->options;
	int ended, rc = start_readers(s, shared, pids);
	int64_t end;

	rc = rc ? rc : wait_until_ready(o, shared);
	if (!rc) {
		end = clock_ns(CLOCK_MONOTONIC) + (int64_t)o->ms * 1000000;
		atomic_store(&shared->end, end);
		rc = write_until(s, end, result);
	}
	ended = end_readers(o->readers, pids, rc != 0);
	rc = rc ? rc : ended;
	return rc ? rc : sum_up(o, shared, result);
}

static char (*make_keys(uint32_t n))[LOOKUP_KEY_BYTES]
{
	char (*keys)[LOOKUP_KEY_BYTES] = calloc(n, sizeof(*keys));

	for (uint32_t i = 0; keys && i < n; i++)
		snprintf(keys[i], sizeof(keys[i]), "card-%u", i);
	return keys;
}

/* The end of this process frees the store. */
int lookup_run(const struct lookup_options *o, struct lookup_result *result)
{
	struct lookup_store s = { .options = o, .keys = make_keys(o->keys) };
	size_t len = sizeof(struct shared) +
		     o->readers * sizeof(struct reader_result);
	struct shared *shared = mmap(NULL, len, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *pids = calloc(o->readers, sizeof(*pids));
	int rc = -ENOMEM;

	memset(result, 0, sizeof(*result));
	if (s.keys && pids && shared != MAP_FAILED)
		rc = o->way->create(&s);
	rc = rc ? rc : run_processes(&s, shared, pids, result);
	if (shared != MAP_FAILED)
		munmap(shared, len);
	free(pids);
	free(s.keys);
	return rc;
}
