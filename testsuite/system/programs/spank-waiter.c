/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A SPANK plugin that holds slurmstepd of one node when the MPI plugin has prepared the
 * step there, and no task has been forked. Arguments: the node's number in the job, and
 * the file to which the pid of slurmstepd is written then.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <slurm/spank.h>

#define WAIT_S 300 /* after it the step goes on, and the test fails */

SPANK_PLUGIN(spank_waiter, 1);

/* The file appears with what is in it. */
static int tell(const char *path)
{
	char made[4096];
	FILE *file;

	snprintf(made, sizeof(made), "%s.made", path);
	file = fopen(made, "w");
	if (!file)
		return -1;
	fprintf(file, "%d", (int)getpid());
	return fclose(file) || rename(made, path) ? -1 : 0;
}

int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
	uint32_t node;

	if (ac < 2 || spank_get_item(sp, S_JOB_NODEID, &node) ||
	    node != (uint32_t)atoi(av[0]))
		return 0;
	if (tell(av[1]))
		return -1;
	for (unsigned left = WAIT_S; left; left = sleep(left))
		;
	return 0;
}
