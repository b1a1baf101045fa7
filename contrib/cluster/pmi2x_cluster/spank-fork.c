// SPDX-License-Identifier: BSD-3-Clause
/*
 * A SPANK plugin that forks in every hook that Slurm calls in srun and slurmstepd, once
 * with an exec and once without, as plugins of sites do to run their helpers. It needs
 * no header of Slurm: the number of the version is given when it is compiled.
 */
#include <sys/wait.h>
#include <unistd.h>

const char plugin_name[] = "fork";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_NUMBER;
const unsigned int spank_plugin_version = 1;

struct spank_handle;

static void run_child(int with_exec)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (with_exec)
			execl("/bin/true", "true", (char *)0);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, 0, 0);
}

#define HOOK(name) \
	int slurm_spank_##name(struct spank_handle *spank, int argc, char *argv[]) \
	{ \
		(void)spank, (void)argc, (void)argv; \
		run_child(0); \
		run_child(1); \
		return 0; \
	}

HOOK(init)
HOOK(init_post_opt)
HOOK(local_user_init)
HOOK(user_init)
HOOK(task_init_privileged)
HOOK(task_init)
HOOK(task_post_fork)
HOOK(task_exit)
HOOK(exit)
