/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A SPANK plugin that forks in one of its hooks, and lets no task of a node reach its exec
 * before all of them have registered with the agent. Arguments: the hook's name,
 * and a directory for the marks of the tasks.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

#define WAIT_US 20000
#define WAITS 1500 /* after these the task goes on, and the test fails */

SPANK_PLUGIN(spank_forker, 1);

static int maybe_fork(const char *hook, int ac, char **av)
{
	pid_t pid;
	int status;

	if (ac < 2 || strcmp(av[0], hook))
		return 0;
	pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static int mark(const char *dir, uint32_t node, int task, int make)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u.%d", dir, node, task);
	if (!make)
		return !access(path, F_OK);
	file = fopen(path, "w");
	return file ? fclose(file) : -1;
}

static void meet(spank_t sp, const char *dir)
{
	uint32_t node, count;
	int task;

	if (spank_get_item(sp, S_JOB_NODEID, &node) ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &count) ||
	    spank_get_item(sp, S_TASK_ID, &task))
		return;
	mark(dir, node, task, 1);
	for (uint32_t other = 0; other < count; other++)
		for (int i = 0; !mark(dir, node, other, 0) && i < WAITS; i++)
			usleep(WAIT_US);
}

int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
	return maybe_fork("user_init", ac, av);
}

int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
	return maybe_fork("task_init_privileged", ac, av);
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
	int rc = maybe_fork("task_init", ac, av);

	if (ac == 2)
		meet(sp, av[1]);
	return rc;
}

int slurm_spank_task_post_fork(spank_t sp, int ac, char **av)
{
	return maybe_fork("task_post_fork", ac, av);
}
