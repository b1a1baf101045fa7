/* SPDX-License-Identifier: BSD-3-Clause */
/* Helper threads: they end, are waited for, and are left when they do not. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libio/thread.h"

static time_t clock_set; /* seconds by which somebody has set the clock forward */

/* Stands for the C library's in this program. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += clock_set;
	return rc;
}

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	int passed, released;
	bool blocked; /* SIGTERM was, in the thread */
};

static void gate_init(struct gate *g, bool open)
{
	memset(g, 0, sizeof(*g));
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	g->open = open;
}

static void pass_gate(void *arg)
{
	struct gate *g = arg;
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	pthread_mutex_lock(&g->lock);
	while (!g->open)
		pthread_cond_wait(&g->changed, &g->lock);
	g->passed++;
	g->blocked = sigismember(&set, SIGTERM);
	pthread_mutex_unlock(&g->lock);
}

static void release_gate(void *arg)
{
	struct gate *g = arg;

	pthread_mutex_lock(&g->lock);
	g->released++;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

TEST(helpers_are_waited_for)
{
	struct helpers *h;
	struct gate g;

	gate_init(&g, true);
	assert_int_equal(helpers_create(&h), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(helpers_run(h, pass_gate, release_gate, &g),
				 0);
	assert_int_equal(helpers_destroy(h, 60000), 0);
	assert_int_equal(g.passed, 5);
	assert_int_equal(g.released, 5);
	assert_true(g.blocked);
	assert_int_equal(helpers_destroy(NULL, 0), 0);
}

TEST(too_many_at_once_are_refused)
{
	struct helpers *h;
	struct gate g;

	gate_init(&g, false);
	assert_int_equal(helpers_create(&h), 0);
	for (int i = 0; i < HELPERS_MAX; i++)
		assert_int_equal(helpers_run(h, pass_gate, release_gate, &g),
				 0);
	assert_int_equal(helpers_run(h, pass_gate, release_gate, &g), -EAGAIN);
	pthread_mutex_lock(&g.lock);
	g.open = true;
	pthread_cond_broadcast(&g.changed);
	pthread_mutex_unlock(&g.lock);
	assert_int_equal(helpers_destroy(h, 60000), 0);
	assert_int_equal(g.released, HELPERS_MAX);
}

TEST(one_that_hangs_is_left)
{
	static struct gate g; /* it outlives the test */
	struct helpers *h;

	gate_init(&g, false);
	assert_int_equal(helpers_create(&h), 0);
	assert_int_equal(helpers_run(h, pass_gate, release_gate, &g), 0);
	assert_int_equal(helpers_destroy(h, 1), -EBUSY);
	pthread_mutex_lock(&g.lock);
	assert_int_equal(g.released, 0);
	g.open = true;
	pthread_cond_broadcast(&g.changed);
	while (!g.released)
		pthread_cond_wait(&g.changed, &g.lock);
	pthread_mutex_unlock(&g.lock);
}

/* Time limits are short though the clock is an hour ahead of what the kernel has. */
TEST(clock_steps_change_no_limit)
{
	clock_set = 3600;
	alarm(60);
	one_that_hangs_is_left(state);
	alarm(0);
	clock_set = -3600;
	helpers_are_waited_for(state);
	clock_set = 0;
}
