/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor of launching tasks: fork, exec and wait, a number of them at once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(char *const argv[])
{
	pid_t pid = fork();

	if (pid)
		return;
	execv(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	int tasks = argc > 3 ? atoi(argv[1]) : 0;
	int at_once = tasks ? atoi(argv[2]) : 0, started = 0;

	if (tasks < 1 || at_once < 1) {
		fputs("usage: dvm-floor TASKS AT_ONCE PROGRAM [ARGUMENT...]\n", stderr);
		return 2;
	}
	for (; started < tasks && started < at_once; started++)
		start(argv + 3);
	for (int ended = 0; ended < tasks; ended++) {
		if (wait(NULL) < 0)
			return 1;
		if (started++ < tasks)
			start(argv + 3);
	}
	return 0;
}
