/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A SPANK plugin that changes what srun has put into the environment of a step, before
 * slurmstepd's MPI plugin sees it: what a modified srun may send. Arguments:
 * NAME=VALUE, in which %n is a new line, or NAME, which is then taken out.
 */
#include <stdint.h>
#include <string.h>

#include <slurm/spank.h>

SPANK_PLUGIN(spank_env, 1);

static void break_lines(char *text)
{
	char *at;

	while ((at = strstr(text, "%n"))) {
		*at = '\n';
		memmove(at + 1, at + 2, strlen(at + 2) + 1);
	}
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	if (!spank_remote(sp))
		return 0;
	for (int i = 0; i < ac; i++) {
		char name[4096];
		char *value;

		strncpy(name, av[i], sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		value = strchr(name, '=');
		if (!value) {
			spank_unsetenv(sp, name);
			continue;
		}
		*value++ = '\0';
		break_lines(value);
		spank_setenv(sp, name, value, 1);
	}
	return 0;
}
