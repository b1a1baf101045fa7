/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A neighbour that refuses connections: one that has ended fails the others
 * soon, one that starts late, or listens elsewhere, is waited for.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent-cluster.h"

#define NODES 5
#define NEVER_MS 3600000 /* what ends before this test does is not this */

/* A step, and an srun that knows of `missing` whether it has been started. */
struct step {
	struct cluster c;
	struct hub *hub;
	uint32_t missing;
	bool started;
	unsigned questions;
	char aborted[512];
};

static bool is_started(void *arg, uint32_t position)
{
	struct step *s = arg;
	bool started;

	pthread_mutex_lock(&s->c.lock);
	started = position != s->missing || s->started;
	s->questions++;
	pthread_cond_broadcast(&s->c.changed);
	pthread_mutex_unlock(&s->c.lock);
	return started;
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct step *s = arg;

	pthread_mutex_lock(&s->c.lock);
	snprintf(s->aborted, sizeof(s->aborted), "%s", text);
	pthread_cond_broadcast(&s->c.changed);
	pthread_mutex_unlock(&s->c.lock);
}

static void on_report(void *arg, const char *text)
{
}

static void start_srun(struct step *s)
{
	const struct hub_host host = {
		.abort = on_abort,
		.report = on_report,
		.started = is_started,
		.arg = s,
	};

	s->hub = cluster_start_srun(&s->c, &host);
}

/* All nodes but one are there, and their ranks wait in a barrier. */
static struct step *step_without(uint32_t missing, bool started, int tell_error)
{
	struct step *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	cluster_open(&s->c, NODES);
	s->missing = missing;
	s->started = started;
	s->c.tell_error = tell_error;
	s->c.options.connect_ms = NEVER_MS;
	s->c.options.absent_ms = 50;
	start_srun(s);
	for (uint32_t i = 0; i < NODES; i++) {
		if (i == missing)
			continue;
		cluster_start(&s->c, i);
		rank_init(&s->c, i);
		rank_say(&s->c, i, "cmd=barrier_in");
	}
	return s;
}

static void step_end(struct step *s)
{
	cluster_close(&s->c);
	hub_stop(s->hub, 0);
	free(s);
}

/* It comes after all, and the barrier ends well. */
static void the_missing_comes(struct step *s)
{
	cluster_start(&s->c, s->missing);
	rank_init(&s->c, s->missing);
	rank_say(&s->c, s->missing, "cmd=barrier_in");
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(&s->c, i, "cmd=barrier_out");
	assert_string_equal(s->aborted, "");
}

static bool srun_was_asked(void *arg)
{
	return ((struct step *)arg)->questions >= 2;
}

static bool slurmd_was_asked(void *arg)
{
	return ((struct step *)arg)->c.tells >= 2;
}

static bool is_aborted(void *arg)
{
	return ((struct step *)arg)->aborted[0] != '\0';
}

static void one_that_has_ended_fails_the_others(void **state)
{
	for (uint32_t missing = 0; missing < NODES; missing++) {
		struct step *s = step_without(missing, true, 0);
		char name[100];

		snprintf(name, sizeof(name), "rank_%u_(node_n%u)_exited_before",
			 missing, missing);
		for (uint32_t i = 0; i < NODES; i++)
			if (i != missing)
				rank_expect(&s->c, i, name);
		cluster_await(&s->c, is_aborted, s);
		assert_non_null(strstr(s->aborted, "exited before"));
		step_end(s);
	}
}

static void one_that_starts_late_is_waited_for(void **state)
{
	for (uint32_t missing = 0; missing < NODES; missing++) {
		struct step *s = step_without(missing, false, 0);

		cluster_await(&s->c, srun_was_asked, s);
		the_missing_comes(s);
		step_end(s);
	}
}

/* Its slurmd does not answer, or cannot say. */
static void one_that_nobody_denies_is_waited_for(void **state)
{
	struct step *s = step_without(1, true, -EIO);

	cluster_await(&s->c, slurmd_was_asked, s);
	the_missing_comes(s);
	step_end(s);
}

/* All ports where it ought to be were taken, and are free again. */
static void one_that_listens_elsewhere_is_waited_for(void **state)
{
	struct step *s = step_without(1, false, -EIO);

	cluster_await(&s->c, srun_was_asked, s);
	s->c.options.port_first += CLUSTER_PORTS;
	s->c.options.port_last += CLUSTER_PORTS;
	cluster_start(&s->c, 1);
	pthread_mutex_lock(&s->c.lock);
	s->started = true;
	s->c.tell_error = 0;
	pthread_mutex_unlock(&s->c.lock);
	cluster_await(&s->c, slurmd_was_asked, s);
	rank_init(&s->c, 1);
	rank_say(&s->c, 1, "cmd=barrier_in");
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(&s->c, i, "cmd=barrier_out");
	step_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_has_ended_fails_the_others),
		cmocka_unit_test(one_that_starts_late_is_waited_for),
		cmocka_unit_test(one_that_nobody_denies_is_waited_for),
		cmocka_unit_test(one_that_listens_elsewhere_is_waited_for),
	};

	return cmocka_run_group_tests_name("agent-absent", tests, NULL, NULL);
}
