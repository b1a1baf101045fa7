/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that ranks leave behind: strays.h. */
#include "dvm/common/strays.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "libio/clock.h"

#define END_S 5    /* for processes that cannot end, as they wait for a disk */
#define LOOK_MS 10 /* between two looks at them */

void strays_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* ---- children ---- */

/* As long as they are not reaped, their numbers are nobody else's. */
static void kill_child(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
}

static FILE *open_children(void)
{
	return fopen("/proc/thread-self/children", "re");
}

void strays_kill_ended(bool (*may_run)(void *arg, pid_t pid), void *arg)
{
	FILE *children = open_children();
	int pid;

	while (children && fscanf(children, "%d", &pid) == 1)
		if (!may_run(arg, pid))
			kill_child(pid);
	if (children)
		fclose(children);
}

/* False: there was none. */
static bool kill_children(void)
{
	FILE *children = open_children();
	bool any = false;
	int pid;

	while (children && fscanf(children, "%d", &pid) == 1) {
		kill_child(pid);
		any = true;
	}
	if (children)
		fclose(children);
	return any;
}

bool strays_kill_all(void)
{
	for (int i = 0; i < END_S * 1000 / LOOK_MS; i++) {
		if (!kill_children())
			return true;
		sleep_ms(LOOK_MS);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return false;
}
