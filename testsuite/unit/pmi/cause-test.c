/* SPDX-License-Identifier: BSD-3-Clause */
/* How a rank has ended, in words, and what srun makes of them. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libpmi/cause.h"

/* The status of a real process. */
static struct pmi_exit end_of(int code, int signal)
{
	struct pmi_exit end = { .by_launcher = false };
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (signal)
			raise(signal);
		_exit(code);
	}
	assert_int_equal(waitpid(pid, &end.status, 0), pid);
	return end;
}

static void says(const struct pmi_exit *end, const char *text)
{
	char out[CAUSE_MAX];

	cause_text(end, out);
	assert_string_equal(out, text);
}

TEST(says_the_exit_code_or_the_signal)
{
	struct pmi_exit end = end_of(5, 0);

	says(&end, "exited with exit code 5");
	end = end_of(0, 0);
	says(&end, "exited with exit code 0");
	end = end_of(0, SIGKILL);
	says(&end, "exited by signal 9 (Killed)");
	end.by_launcher = true;
	says(&end, "exited by signal 9 (Killed) of the launcher");
	says(NULL, "exited");
}

/* In the middle of a line, as srun gets it. */
static int code_of(const struct pmi_exit *end)
{
	char how[CAUSE_MAX], line[256];

	cause_text(end, how);
	snprintf(line, sizeof(line),
		 "fence 0 failed: rank 3 (node n1) %s without starting PMI",
		 how);
	return cause_exit_code(line);
}

TEST(the_exit_code_is_that_of_the_rank)
{
	struct pmi_exit end = end_of(5, 0);

	assert_int_equal(code_of(&end), 5);
	end = end_of(255, 0);
	assert_int_equal(code_of(&end), 255);
	end = end_of(0, SIGTERM);
	assert_int_equal(code_of(&end), 128 + SIGTERM);
	end.by_launcher = true;
	assert_int_equal(code_of(&end), 128 + SIGTERM);
}

/* A step whose collective has failed has not ended well. */
TEST(the_exit_code_is_never_0)
{
	struct pmi_exit end = end_of(0, 0);

	assert_int_equal(code_of(&end), 1);
	assert_int_equal(code_of(NULL), 1);
	assert_int_equal(cause_exit_code(""), 1);
	assert_int_equal(cause_exit_code("exited with exit code x"), 1);
	assert_int_equal(cause_exit_code("exited with exit code 999"), 1);
	assert_int_equal(cause_exit_code("exited by signal -200"), 1);
}

TEST(the_first_of_several_counts)
{
	assert_int_equal(cause_exit_code("rank 1 exited by signal 9 (Killed), "
					 "rank 2 exited with exit code 3"),
			 137);
	assert_int_equal(cause_exit_code("rank 2 exited with exit code 3, "
					 "rank 1 exited by signal 9"),
			 3);
}
