/* SPDX-License-Identifier: BSD-3-Clause */
/* Helper threads: they end, are waited for, and are left when they do not. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "libio/thread.h"

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

static void helpers_are_waited_for(void **state)
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

static void too_many_at_once_are_refused(void **state)
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

static void one_that_hangs_is_left(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helpers_are_waited_for),
		cmocka_unit_test(too_many_at_once_are_refused),
		cmocka_unit_test(one_that_hangs_is_left),
	};

	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
