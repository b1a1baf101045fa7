/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared memory of a node's ranks, with members that are forked: locks and
 * /proc know processes, so one process cannot play them all.
 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"

#define MEMBERS 4
#define OPERATIONS 50

typedef int member_fn(struct group *g, uint32_t index);

static struct group *leader_of(uint32_t members, char *token)
{
	struct group *g;
	char why[160];

	assert_int_equal(group_create(&g, members, why, sizeof(why)), 0);
	group_token(g, token);
	return g;
}

/* Exit codes of members are what they return; 99: it could not attach. */
static pid_t start(const char *token, uint32_t index, member_fn *run)
{
	pid_t pid = fork();
	struct group *g;
	char why[160];

	if (pid)
		return pid;
	if (group_attach(&g, token, MEMBERS, index, why, sizeof(why)))
		_exit(99);
	_exit(run(g, index));
}

static int exit_code(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- operations ---- */

static size_t block_len(uint32_t index, int k)
{
	return (index * 1000 + k * 977) % 70000;
}

/* Posts a block of its own letter, and finds its index in the result. */
static int member_works(struct group *g, uint32_t index)
{
	static char block[70000];

	memset(block, 'a' + index, sizeof(block));
	for (int k = 0; k < OPERATIONS; k++) {
		const char *result;
		size_t len;

		if (group_post(g, block, block_len(index, k)))
			return 1;
		while (!group_finished(g, true))
			if (group_leader_dead(g))
				return 2;
		result = group_result(g, &len);
		if (!result || len != (size_t)k * 5000 + MEMBERS ||
		    result[index] != (char)('a' + index))
			return 3;
	}
	return 0;
}

static void lead(struct group *g, int k)
{
	static char block[70000];
	char *result;

	assert_int_equal(group_post(g, "aaa", 3), 0);
	while (!group_entered(g, true))
		assert_int_equal(group_dead_missing(g), -1);
	assert_int_equal(group_missing(g), -1);
	result = group_memory(g, (size_t)k * 5000 + MEMBERS);
	assert_non_null(result);
	result[0] = 'a';
	for (uint32_t i = 1; i < MEMBERS; i++) {
		size_t len = block_len(i, k);

		assert_int_equal(group_block_len(g, i), len);
		assert_int_equal(group_read_block(g, i, block), 0);
		for (size_t at = 0; at < len; at++)
			assert_int_equal(block[at], 'a' + i);
		result[i] = (char)('a' + i);
	}
	group_finish(g, (size_t)k * 5000 + MEMBERS);
}

TEST(blocks_and_results_pass)
{
	char token[GROUP_TOKEN_MAX];
	struct group *g = leader_of(MEMBERS, token);
	pid_t pids[MEMBERS];

	for (uint32_t i = 1; i < MEMBERS; i++)
		pids[i] = start(token, i, member_works);
	for (int k = 0; k < OPERATIONS; k++)
		lead(g, k);
	for (uint32_t i = 1; i < MEMBERS; i++)
		assert_int_equal(exit_code(pids[i]), 0);
	group_close(g);
}

/* ---- death and failure ---- */

static int member_joins_and_dies(struct group *g, uint32_t index)
{
	struct group_edges edges = { NULL, index == 1 ? "right" : NULL };

	group_join(g, &edges);
	raise(SIGKILL);
	return 0;
}

TEST(a_dead_member_is_found)
{
	char token[GROUP_TOKEN_MAX];
	struct group *g = leader_of(MEMBERS, token);
	struct group_edges edges = { "left", NULL };

	assert_int_equal(group_dead(g), -1);
	exit_code(start(token, 1, member_joins_and_dies));
	assert_int_equal(group_dead(g), 1);
	group_join(g, &edges);
	assert_int_equal(group_wait_joined(g, 1), -EAGAIN);
	assert_string_equal(group_left(g), "left");
	assert_string_equal(group_right(g), "right");
	assert_int_equal(group_post(g, "x", 1), 0);
	assert_int_equal(group_dead_missing(g), 1);
	group_close(g);
}

static int member_waits_for_failure(struct group *g, uint32_t index)
{
	char text[PMI2X_RING_ERROR_MAX];

	if (group_post(g, NULL, 0))
		return 1;
	while (!group_failed(g, text))
		group_finished(g, true);
	/* The first text counts. */
	group_fail(g, "another");
	return group_failed(g, text) && strcmp(text, "this is why") == 0
		       ? 0 : 2;
}

TEST(a_failure_reaches_the_members)
{
	char token[GROUP_TOKEN_MAX];
	struct group *g = leader_of(MEMBERS, token);
	pid_t pid = start(token, 1, member_waits_for_failure);

	group_fail(g, "this is why");
	assert_int_equal(exit_code(pid), 0);
	group_close(g);
}

static pid_t leader_with_member(int *out)
{
	pid_t pid = fork();
	char token[GROUP_TOKEN_MAX];
	struct group *g;
	char why[160];

	if (pid)
		return pid;
	if (group_create(&g, MEMBERS, why, sizeof(why)))
		_exit(1);
	group_token(g, token);
	if (write(out[1], token, sizeof(token)) != sizeof(token))
		_exit(2);
	pause();
	_exit(3);
}

TEST(a_dead_leader_is_found)
{
	char token[GROUP_TOKEN_MAX], why[160];
	struct group *g;
	int out[2];
	pid_t leader;

	assert_int_equal(pipe(out), 0);
	leader = leader_with_member(out);
	assert_int_equal(read(out[0], token, sizeof(token)), sizeof(token));
	assert_int_equal(group_attach(&g, token, MEMBERS, 2, why, sizeof(why)),
			 0);
	assert_false(group_leader_dead(g));
	kill(leader, SIGKILL);
	exit_code(leader);
	assert_true(group_leader_dead(g));
	group_close(g);
	close(out[0]);
	close(out[1]);
}

/* ---- what cannot be attached to ---- */

TEST(wrong_tokens_are_refused)
{
	char other[64], why[160];
	const char *const wrong[] = { "", "x", "1", "-1:3", "1:-3", "0:0",
				      "999999999:3", other };
	FILE *file = tmpfile();
	struct group *g;

	assert_non_null(file);
	snprintf(other, sizeof(other), "%ld:%d", (long)getpid(), fileno(file));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		why[0] = '\0';
		assert_true(group_attach(&g, wrong[i], MEMBERS, 1, why,
					 sizeof(why)) < 0);
		assert_true(why[0] != '\0');
	}
	fclose(file);
}

TEST(a_limit_of_file_sizes_is_no_signal)
{
	struct rlimit old, low = { 1 << 20, 1 << 20 };
	struct group *g;
	char why[160] = "";

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(group_create(&g, MEMBERS, why, sizeof(why)), -EFBIG);
	assert_non_null(strstr(why, "shared memory"));
	setrlimit(RLIMIT_FSIZE, &old);
}
