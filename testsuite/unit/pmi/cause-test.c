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

TEST(exit_that_lack_of_pmi_fd_explains_is_known)
{
	struct pmi_exit of_mpich = end_of(15, 0), of_python = end_of(1, 0);
	struct pmi_exit well = end_of(0, 0), killed = end_of(0, 15), of_shell = end_of(127, 0);
	struct pmi_exit of_slurmstepd = end_of(2, 0); /* ENOENT */

	assert_false(cause_may_lack_fd(&of_mpich, WRAPPER_NONE));
	assert_true(cause_may_lack_fd(&of_mpich, WRAPPER_PERHAPS));
	assert_false(cause_may_lack_fd(&of_python, WRAPPER_PERHAPS));
	assert_true(cause_may_lack_fd(&of_python, WRAPPER_OF_MPICH));
	assert_false(cause_may_lack_fd(&well, WRAPPER_OF_MPICH));
	assert_false(cause_may_lack_fd(&killed, WRAPPER_OF_MPICH));
	assert_false(cause_may_lack_fd(&of_shell, WRAPPER_OF_MPICH));
	assert_false(cause_may_lack_fd(&of_slurmstepd, WRAPPER_OF_MPICH));
	of_mpich.by_launcher = true;
	assert_false(cause_may_lack_fd(&of_mpich, WRAPPER_OF_MPICH));
}
