/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that a signal has stopped, or that is frozen with its cgroup. */
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/stopped.h"

#define PATIENCE_SECONDS 60 /* limit: the test has failed */

/* Where a cgroup can be made, and how to freeze and thaw it. */
static const struct freezer {
	const char *hierarchy, *file, *freeze, *thaw;
} freezers[] = {
	{ "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED" },
	{ "/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0" },
	{ "/sys/fs/cgroup", "cgroup.freeze", "1", "0" },
};

static pid_t start_process(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(2 * PATIENCE_SECONDS); /* should the test be killed */
		for (;;)
			pause();
	}
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* True: the process reaches that state. */
static bool becomes(pid_t pid, bool stopped)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (process_is_stopped(pid) != stopped && time(NULL) < end)
		sched_yield();
	return process_is_stopped(pid) == stopped;
}

static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* False: there is no such hierarchy here, or it is not ours to use. */
static bool freeze_and_thaw(const struct freezer *f)
{
	char dir[128], number[16];
	pid_t pid;
	bool froze;

	snprintf(dir, sizeof(dir), "%s/pmi2x-test-%d", f->hierarchy,
		 (int)getpid());
	if (mkdir(dir, 0700))
		return false;
	pid = start_process();
	snprintf(number, sizeof(number), "%d", (int)pid);
	froze = write_file(dir, "cgroup.procs", number);
	if (froze)
		assert_false(process_is_stopped(pid));
	froze = froze && write_file(dir, f->file, f->freeze);
	if (froze) {
		assert_true(becomes(pid, true));
		assert_true(write_file(dir, f->file, f->thaw));
		assert_true(becomes(pid, false));
	}
	end_process(pid);
	rmdir(dir);
	return froze;
}

TEST(a_signal_stops_it)
{
	pid_t pid = start_process();
	int status;

	assert_false(process_is_stopped(pid));
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(process_is_stopped(pid));
	kill(pid, SIGCONT);
	assert_true(becomes(pid, false));
	end_process(pid);
}

TEST(its_cgroup_freezes_it)
{
	unsigned tried = 0;

	for (size_t i = 0; i < sizeof(freezers) / sizeof(freezers[0]); i++)
		tried += freeze_and_thaw(&freezers[i]);
	if (!tried)
		skip(); /* no cgroups that this user may make */
}

TEST(exited_process_does_not_count_as_stopped)
{
	pid_t pid = start_process();

	end_process(pid);
	assert_false(process_is_stopped(pid));
}
