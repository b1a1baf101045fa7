/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads with bounded joins, and helpers for calls that block. */
#include "config.h" /* HAVE_PTHREAD_CLOCKJOIN_NP */
#include "libio/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

int thread_start(pthread_t *out, void *(*main)(void *arg), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	rc = -pthread_sigmask(SIG_SETMASK, &all, &old);
	if (rc)
		return rc;
	rc = -pthread_create(out, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* By the clock that nobody sets. */
static struct timespec deadline_after(uint32_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* 0 or -ETIMEDOUT. */
#if defined(HAVE_PTHREAD_CLOCKJOIN_NP) && !defined(THREAD_JOIN_BY_TRYING)
static int join_until(pthread_t thread, const struct timespec *until)
{
	return -pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, until);
}
#else
static bool has_passed(const struct timespec *until)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until->tv_sec ||
	       (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

/* C libraries that can wait for a thread by the settable clock only. */
static int join_until(pthread_t thread, const struct timespec *until)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	int rc;

	while ((rc = pthread_tryjoin_np(thread, NULL)) == EBUSY) {
		if (has_passed(until))
			return -ETIMEDOUT;
		nanosleep(&step, NULL);
	}
	return -rc;
}
#endif

int thread_join(pthread_t thread, uint32_t timeout_ms)
{
	struct timespec until = deadline_after(timeout_ms);

	return join_until(thread, &until);
}

void thread_keep_code(void)
{
	Dl_info info;

	if (dladdr((void *)(uintptr_t)thread_keep_code, &info))
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* RUNNING -> DONE (its owner frees it) or LEFT (its thread does). */
enum helper_state { HELPER_RUNNING, HELPER_DONE, HELPER_LEFT };

struct helper {
	struct helper *next;
	pthread_t thread;
	atomic_int state;
	void (*fn)(void *arg);
	void (*release)(void *arg);
	void *arg;
};

struct helpers {
	struct helper *first;
	unsigned count;
};

int helpers_create(struct helpers **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void *helper_main(void *arg)
{
	struct helper *one = arg;

	one->fn(one->arg);
	one->release(one->arg);
	if (atomic_exchange(&one->state, HELPER_DONE) == HELPER_LEFT)
		free(one);
	return NULL;
}

static void reap_done(struct helpers *h)
{
	struct helper **at = &h->first, *one;

	while ((one = *at)) {
		if (atomic_load(&one->state) != HELPER_DONE) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		pthread_join(one->thread, NULL);
		free(one);
		h->count--;
	}
}

int helpers_run(struct helpers *h, void (*fn)(void *arg),
		void (*release)(void *arg), void *arg)
{
	struct helper *one;
	int rc;

	reap_done(h);
	if (h->count == HELPERS_MAX)
		return -EAGAIN;
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	one->fn = fn;
	one->release = release;
	one->arg = arg;
	rc = thread_start(&one->thread, helper_main, one);
	if (rc) {
		free(one);
		return rc;
	}
	one->next = h->first;
	h->first = one;
	h->count++;
	return 0;
}

/* 0: it has ended and is freed; -EBUSY: it goes on by itself. */
static int join_or_leave(struct helper *one, const struct timespec *until)
{
	pthread_t thread = one->thread;

	if (join_until(thread, until) == 0) {
		free(one);
		return 0;
	}
	thread_keep_code(); /* before it may find itself left alone */
	if (atomic_exchange(&one->state, HELPER_LEFT) == HELPER_DONE) {
		pthread_join(thread, NULL);
		free(one);
		return 0;
	}
	pthread_detach(thread);
	return -EBUSY;
}

int helpers_destroy(struct helpers *h, uint32_t wait_ms)
{
	struct timespec until = deadline_after(wait_ms);
	struct helper *one;
	int rc = 0;

	while (h && (one = h->first)) {
		h->first = one->next;
		if (join_or_leave(one, &until))
			rc = -EBUSY;
	}
	free(h);
	return rc;
}
