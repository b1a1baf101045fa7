/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe: runs a program and reads what it prints. */
#include "tools/probe_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED 128 /* shells add it to the number of a signal */
#define KILL_AFTER "10" /* seconds from SIGTERM to SIGKILL */

struct pipe_reader {
	FILE *from;
	pid_t pid;
};

static void exec_into(int fd, char *const argv[])
{
	dup2(fd, STDOUT_FILENO);
	close(fd);
	execvp(argv[0], argv);
	fprintf(stderr, "pmi2x-probe: %s: %s\n", argv[0], strerror(errno));
	_exit(PROBE_NOT_STARTED);
}

static int start_program(struct pipe_reader *r, char *const argv[])
{
	int fds[2];

	if (pipe(fds))
		return -1;
	r->pid = fork();
	if (r->pid == 0) {
		close(fds[0]);
		exec_into(fds[1], argv);
	}
	close(fds[1]);
	r->from = r->pid > 0 ? fdopen(fds[0], "r") : NULL;
	if (!r->from)
		close(fds[0]);
	return r->from ? 0 : -1;
}

int probe_process_wait(int pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return PROBE_NOT_STARTED;
	return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/*
 * argv behind timeout(1), whose SIGTERM lets srun give its job back: no srun is left in
 * Slurm's queue. In the foreground, so that Ctrl-C reaches srun. NULL: no memory.
 */
static char **limited(char *const argv[], char *seconds)
{
	char *prefix[] = { "timeout", "--foreground", "-k", KILL_AFTER, seconds };
	size_t first = sizeof(prefix) / sizeof(prefix[0]), count = 0;
	char **all;

	while (argv[count])
		count++;
	all = calloc(first + count + 1, sizeof(*all));
	if (!all)
		return NULL;
	memcpy(all, prefix, sizeof(prefix));
	memcpy(all + first, argv, count * sizeof(*all));
	return all;
}

static int read_lines(char *const argv[], void (*use)(void *arg, char *line),
		      void *arg)
{
	struct pipe_reader r;
	char line[PROBE_LINE_MAX];

	if (start_program(&r, argv)) {
		perror("pmi2x-probe: fork");
		return PROBE_NOT_STARTED;
	}
	while (fgets(line, sizeof(line), r.from)) {
		line[strcspn(line, "\n")] = '\0';
		use(arg, line);
	}
	fclose(r.from);
	return probe_process_wait(r.pid);
}

static int read_limited(char *const argv[], int seconds,
			void (*use)(void *arg, char *line), void *arg)
{
	char limit[16];
	char **all;
	int status;

	snprintf(limit, sizeof(limit), "%d", seconds);
	all = limited(argv, limit);
	if (!all) {
		perror("pmi2x-probe");
		return PROBE_NOT_STARTED;
	}
	status = read_lines(all, use, arg);
	free(all);
	if (status == PROBE_LATE)
		fprintf(stderr, "pmi2x-probe: %s did not end within %d s\n",
			argv[0], seconds);
	return status;
}

int probe_process_read(char *const argv[], int seconds,
		       void (*use)(void *arg, char *line), void *arg)
{
	return seconds ? read_limited(argv, seconds, use, arg) :
			 read_lines(argv, use, arg);
}
