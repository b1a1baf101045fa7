/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of tasks that run here: their processes, and which others may run. */
#include "dvm/zygote/parts.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASK 7

/* A process with this environment, in a process group of its own, until it is signalled. */
static pid_t start(char *const env[])
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		dup2(ends[1], 1);
		execle("/bin/sh", "sh", "-c", "echo; exec 1>&-; while :; do sleep 60; done",
		       NULL, env);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1); /* it has been executed */
	close(ends[0]);
	return pid;
}

static void kill_group(pid_t pid)
{
	kill(-pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(part_is_known_until_its_ranks_have_ended)
{
	struct parts *p = parts_create();
	uint32_t number, slot;

	assert_int_equal(parts_open(p, 3, TASK, 0, 2), 0);
	assert_int_equal(parts_started(p, 3, 0, 1000001), 0);
	assert_int_equal(parts_started(p, 3, 1, 1000002), 0);
	assert_true(parts_find(p, 1000002, &number, &slot));
	assert_int_equal(number, 3);
	assert_int_equal(slot, 1);
	parts_ended(p, 1000002);
	assert_false(parts_find(p, 1000002, &number, &slot));
	assert_true(parts_find(p, 1000001, &number, &slot));
	parts_ended(p, 1000001);
	assert_int_equal(parts_open(p, 3, TASK, 1, 1), 0); /* anew */
	parts_give_up(p, 3);
	parts_give_up(p, 3);
	free(p);
}

TEST(stray_may_run_as_long_as_its_task)
{
	char *env[] = { "PMI2X_DVM_TASK=7", "PMI2X_DVM_INSTANCE=0", NULL };
	char *other[] = { "PMI2X_DVM_TASK=7", "PMI2X_DVM_INSTANCE=1", NULL };
	const pid_t stray = start(env), earlier = start(other);
	struct parts *p = parts_create();

	assert_int_equal(parts_open(p, 3, TASK, 0, 2), 0);
	assert_int_equal(parts_started(p, 3, 0, 1000001), 0);
	assert_true(parts_may_run(p, stray));
	assert_false(parts_may_run(p, earlier));
	parts_ended(p, 1000001);
	assert_true(parts_may_run(p, stray)); /* the other rank may still be started */
	parts_give_up(p, 3);
	assert_false(parts_may_run(p, stray));
	free(p);
	kill_group(stray);
	kill_group(earlier);
}

TEST(stray_without_a_task_may_run_as_long_as_an_older_rank)
{
	char *env[] = { NULL };
	const pid_t rank = start(env), stray = start(env);
	struct parts *p = parts_create();

	assert_false(parts_may_run(p, stray));
	assert_int_equal(parts_open(p, 3, TASK, 0, 1), 0);
	assert_int_equal(parts_started(p, 3, 0, rank), 0);
	assert_true(parts_may_run(p, rank));
	assert_true(parts_may_run(p, stray));
	parts_ended(p, rank);
	assert_false(parts_may_run(p, stray));
	free(p);
	kill_group(rank);
	kill_group(stray);
}

TEST(signal_reaches_the_group_of_each_rank)
{
	char *env[] = { NULL };
	const pid_t a = start(env), b = start(env);
	struct parts *p = parts_create();
	int status;

	assert_int_equal(parts_open(p, 3, TASK, 0, 2), 0);
	assert_int_equal(parts_started(p, 3, 0, a), 0);
	assert_int_equal(parts_started(p, 3, 1, b), 0);
	parts_signal(p, 4, SIGKILL); /* not of another part */
	parts_signal(p, 3, SIGTERM);
	assert_int_equal(waitpid(a, &status, 0), a);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(waitpid(b, &status, 0), b);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	parts_ended(p, a);
	parts_ended(p, b);
	free(p);
}

TEST(rank_whose_process_was_reaped_elsewhere_is_found)
{
	char *const env[] = { NULL };
	struct parts *p = parts_create();
	pid_t lives = start(env), gone = start(env);

	assert_int_equal(parts_open(p, 3, TASK, 0, 2), 0);
	assert_int_equal(parts_started(p, 3, 0, lives), 0);
	assert_int_equal(parts_started(p, 3, 1, gone), 0);
	assert_int_equal(parts_vanished(p), 0);
	kill_group(gone);
	assert_int_equal(parts_vanished(p), gone);
	parts_ended(p, gone);
	assert_int_equal(parts_vanished(p), 0);
	kill_group(lives);
	parts_ended(p, lives);
	free(p);
}
