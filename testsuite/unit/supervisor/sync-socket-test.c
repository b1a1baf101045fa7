/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Costs of the socket of pmi2x-sync to a step that does not use it, as doc/rendezvous.md has
 * them: system calls, which a parent counts with ptrace(2), and descriptors.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/supervisor_internal.h"

#define CALLS_MAX 6 /* doc/rendezvous.md */
#define NO_TRACE 77 /* the child's status: it may not be traced */
#define AT_A_CALL (SIGTRAP | 0x80)

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static struct supervisor of_step(bool sync)
{
	return (struct supervisor){ .options = { .sync = sync, .agent.port_seed = 7 } };
}

/* The life of the socket in such a step. */
static void live(bool sync)
{
	struct supervisor s = of_step(sync);

	sync_open(&s);
	sync_refuse(&s);
	sync_hand_over(&s);
}

/* Between two calls of getppid. */
static void run_traced(bool sync)
{
	live(sync); /* libraries are bound now */
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(NO_TRACE);
	raise(SIGSTOP);
	syscall(SYS_getppid);
	live(sync);
	syscall(SYS_getppid);
	_exit(0);
}

/* To the next stop at a call, before or after it. False: the process has ended. */
static bool step_to_call(pid_t pid, int *status)
{
	assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, status, 0), pid);
	return WIFSTOPPED(*status) && WSTOPSIG(*status) == AT_A_CALL;
}

static long long number_of(pid_t pid)
{
	struct __ptrace_syscall_info info = { 0 };

	assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0);
	return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long long)info.entry.nr : -1;
}

/* -1: processes may not be traced here. */
static int count_calls(bool sync)
{
	int status, marks = 0, calls = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		run_traced(sync);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_TRACE)
		return -1;
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD), 0);
	while (step_to_call(pid, &status)) {
		long long number = number_of(pid);

		if (number == SYS_getppid)
			marks++;
		else if (number >= 0)
			calls += marks == 1;
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(marks, 2);
	return calls;
}

TEST(unused_socket_costs_the_calls_that_the_page_has)
{
	int with = count_calls(true);

	if (with < 0)
		skip();
	assert_int_equal(with, CALLS_MAX);
}

TEST(step_without_the_socket_makes_no_call_for_it)
{
	int without = count_calls(false);

	if (without < 0)
		skip();
	assert_int_equal(without, 0);
}

TEST(unused_socket_is_one_descriptor)
{
	const int before = descriptors();
	struct supervisor s = of_step(true);

	sync_open(&s);
	assert_int_equal(descriptors(), before + 1);
	assert_non_null(supervisor_sync_name(&s));
	sync_refuse(&s);
	assert_int_equal(descriptors(), before);
	sync_hand_over(&s);
	assert_int_equal(descriptors(), before);
}
