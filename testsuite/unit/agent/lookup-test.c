/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents whose resolver answers late, never, or that there is no such name. */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"

#define NODES 3

static struct cluster *open_step(void)
{
	struct cluster *c = cluster_new(NODES);

	c->names = true;
	return c;
}

#define STEP_TEST(name) TEST_ON(name, struct cluster *c, open_step())

static void start_step(struct cluster *c)
{
	cluster_start_all(c);
	cluster_init_all(c);
}

static void set_stuck(struct cluster *c, uint32_t node, bool stuck)
{
	pthread_mutex_lock(&c->lock);
	c->stuck[node] = stuck;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void set_all_stuck(struct cluster *c, bool stuck)
{
	for (uint32_t i = 0; i < NODES; i++)
		set_stuck(c, i, stuck);
}

static void enter_barrier(struct cluster *c)
{
	for (uint32_t i = 0; i < NODES; i++)
		rank_say(c, i, "cmd=barrier_in");
}

static void expect_barrier_out(struct cluster *c)
{
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(c, i, "cmd=barrier_out");
}

/* The root asks for two, each of the others for the root. */
static bool all_have_asked(void *arg)
{
	return ((struct cluster *)arg)->lookups >= 4;
}

STEP_TEST(ranks_are_served_while_a_resolver_is_stuck)
{
	set_all_stuck(c, true);
	start_step(c);
	cluster_await(c, all_have_asked, c);
	for (uint32_t i = 0; i < NODES; i++) {
		rank_say(c, i, "cmd=put kvsname=7.0 key=k value=v");
		rank_expect(c, i, "rc=0");
	}
	enter_barrier(c);
	set_all_stuck(c, false);
	expect_barrier_out(c);
	assert_string_equal(c->text, "");
	cluster_stop_all(c);
	assert_int_equal(c->lookups, 4);
}

/* The parent finds its children, though they cannot find it. */
STEP_TEST(one_side_that_finds_the_other_is_enough)
{
	set_stuck(c, 0, true);
	start_step(c);
	enter_barrier(c);
	expect_barrier_out(c);
	set_stuck(c, 0, false);
	cluster_stop_all(c);
	assert_false(c->unfinished);
}

static void fails_by_name(bool stuck, const char *why)
{
	struct cluster *c = open_step();

	c->options.connect_ms = 300;
	c->lookups_fail = true;
	set_all_stuck(c, stuck);
	cluster_start(c, 1);
	rank_init(c, 1);
	rank_say(c, 1, "cmd=barrier_in");
	rank_expect(c, 1, "barrier_failed");
	cluster_expect_log(c, why);
	cluster_expect_log(c, "NodeAddr");
	set_all_stuck(c, false);
	cluster_stop_all(c);
	assert_int_equal(c->lookups, 1); /* a failure is kept */
	assert_int_equal(c->tells, 0);   /* slurmd would look it up, too */
}

TEST(a_name_that_is_not_found_is_named)
{
	fails_by_name(false, "node n1 cannot look up the address of node n0 (not found");
}

TEST(a_resolver_that_never_answers_is_named)
{
	fails_by_name(true, "node n1 cannot look up the address of node n0 (no answer");
}

/* In a process of its own, for the look-up goes on in what is left. */
STEP_TEST(leaving_does_not_wait_for_a_resolver)
{
	int status;
	pid_t pid;

	set_all_stuck(c, true);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		start_step(c);
		cluster_await(c, all_have_asked, c);
		for (uint32_t i = 0; i < NODES; i++)
			rank_close(c, i);
		for (uint32_t i = 0; i < NODES; i++)
			cluster_stop(c, i);
		_exit(strstr(c->text, "did not end") || c->unfinished);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
