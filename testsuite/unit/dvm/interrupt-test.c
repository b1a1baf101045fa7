/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that ask a command to end, and processes that it starts. */
#include "dvm/cli/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static int status_after(int number)
{
	pid_t child = interrupt_fork();
	int status;

	if (!child) {
		alarm(60);
		pause();
		_exit(0); /* the handler of the command has run */
	}
	assert_int_equal(kill(child, number), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

TEST(signal_ends_a_child_that_has_executed_no_program_yet)
{
	signal(SIGINT, SIG_DFL); /* shells may have started the test with it ignored */
	interrupt_catch();
	for (int i = 0; i < 20; i++)
		assert_int_equal(status_after(i % 2 ? SIGTERM : SIGINT), i % 2 ? SIGTERM : SIGINT);
	assert_int_equal(interrupt_number(), 0);
}
