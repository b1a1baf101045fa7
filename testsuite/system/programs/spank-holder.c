/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A SPANK plugin that has slurmstepd, and so every task, hold a file open. Arguments:
 * the number of the descriptor, and the file.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(spank_holder, 1);

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	int wanted, fd;

	if (!spank_remote(sp) || ac < 2)
		return 0;
	wanted = atoi(av[0]);
	fd = open(av[1], O_RDONLY);
	if (fd < 0 || dup2(fd, wanted) != wanted)
		return -1;
	return fd == wanted ? 0 : close(fd);
}
