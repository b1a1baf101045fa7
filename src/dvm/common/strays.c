/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that ranks leave behind: strays.h. */
#include "dvm/common/strays.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "libio/clock.h"
#include "libutil/decimal.h"

#define TASK "PMI2X_DVM_TASK="
#define INSTANCE "PMI2X_DVM_INSTANCE="
#define END_S 5    /* for processes that cannot end, as they wait for a disk */
#define LOOK_MS 10 /* between two looks at them */

void strays_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* ---- what a process is ---- */

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
	return fopen(path, "re");
}

static void take(const char *variable, const char *name, uint64_t *value)
{
	size_t len = strlen(name);
	const char *at = variable + len;

	if (!strncmp(variable, name, len))
		(void)decimal_take(&at, UINT64_MAX, value);
}

/* False: its environment does not say. */
static bool find_task(pid_t pid, uint64_t *task, uint64_t *instance)
{
	FILE *file = open_proc(pid, "environ");
	char *variable = NULL;
	size_t size = 0;

	*task = *instance = UINT64_MAX;
	while (file && getdelim(&variable, &size, '\0', file) > 0) {
		take(variable, TASK, task);
		take(variable, INSTANCE, instance);
	}
	free(variable);
	if (file)
		fclose(file);
	return *task != UINT64_MAX && *instance != UINT64_MAX;
}

/* When it was started, in ticks of the kernel: the 22nd field of proc(5). 0: it has gone. */
static uint64_t started(pid_t pid)
{
	FILE *file = open_proc(pid, "stat");
	char line[1024], *end;
	uint64_t ticks = 0;

	if (file && fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
		sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		       &ticks);
	if (file)
		fclose(file);
	return ticks;
}

static bool is_as_old(void *arg, int64_t rank)
{
	return started((pid_t)rank) <= *(const uint64_t *)arg;
}

static bool may_run(const struct dvm_node *node, pid_t pid)
{
	uint64_t task, instance, ticks;

	if (find_task(pid, &task, &instance))
		return dvm_node_runs(node, task, (uint32_t)instance);
	ticks = started(pid);
	return dvm_node_any_rank(node, is_as_old, &ticks);
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

void strays_kill_ended(const struct dvm_node *node)
{
	FILE *children = open_children();
	int pid;

	while (children && fscanf(children, "%d", &pid) == 1)
		if (!dvm_node_is_rank(node, pid) && !may_run(node, pid))
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
