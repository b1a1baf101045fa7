/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the client libraries on standard error, whoever reads it. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "../../../contrib/libpmi2x/print_error.h"

/* Standard error is the end of a pipe; returns its other end. */
static int take_stderr(int *saved)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	*saved = dup(STDERR_FILENO);
	assert_true(*saved >= 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	return fds[0];
}

static void give_back(int saved)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
}

static bool pipe_signal_pending(void)
{
	sigset_t pending;

	assert_int_equal(sigpending(&pending), 0);
	return sigismember(&pending, SIGPIPE) == 1;
}

TEST(a_text_arrives_in_one_piece)
{
	int saved, from = take_stderr(&saved);
	char text[64] = "";

	errno = EDOM;
	print_error("rank %d: %s\n", 3, "no");
	assert_int_equal(errno, EDOM);
	give_back(saved);
	assert_int_equal(read(from, text, sizeof(text) - 1), 11);
	assert_string_equal(text, "rank 3: no\n");
	close(from);
}

TEST(a_long_text_is_cut_and_ends_its_line)
{
	int saved, from = take_stderr(&saved);
	char *text = calloc(1, 2 * ERROR_TEXT_MAX);
	ssize_t n;

	memset(text, 'x', 2 * ERROR_TEXT_MAX - 1);
	print_error("%s\n", text);
	give_back(saved);
	n = read(from, text, 2 * ERROR_TEXT_MAX);
	assert_int_equal(n, ERROR_TEXT_MAX - 1);
	assert_int_equal(text[n - 1], '\n');
	free(text);
	close(from);
}

/* The default action would end this process. */
TEST(a_broken_pipe_raises_nothing)
{
	sigset_t mask;
	int saved;

	signal(SIGPIPE, SIG_DFL);
	close(take_stderr(&saved));
	print_error("nobody reads this\n");
	give_back(saved);
	assert_false(pipe_signal_pending());
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	assert_false(sigismember(&mask, SIGPIPE));
}

TEST(the_signal_of_somebody_else_stays)
{
	sigset_t pipe_only;
	int saved, number;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe_only, NULL), 0);
	raise(SIGPIPE);
	close(take_stderr(&saved));
	print_error("nobody reads this\n");
	give_back(saved);
	assert_true(pipe_signal_pending());
	assert_int_equal(sigwait(&pipe_only, &number), 0);
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &pipe_only, NULL), 0);
}
