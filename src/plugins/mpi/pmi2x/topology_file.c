/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of the node's topology in slurmd's spool directory. */
#include "slurm_compat.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "spool.h"
#include "topology_env.h"
#include "topology_file.h"

#define SUFFIX ".xml"

char *topology_file_path(const char *node, uint32_t node_id, const char *jobid)
{
	return spool_path(TOPOLOGY_FILE_PREFIX, node, node_id, jobid, SUFFIX);
}

/* A slurmstepd that lives holds a lock. */
static void check(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(dir, name, 0);
	close(fd);
}

static bool is_ours(const char *name)
{
	size_t len = strlen(name);

	return !strncmp(name, TOPOLOGY_FILE_PREFIX,
			strlen(TOPOLOGY_FILE_PREFIX)) &&
	       len > 4 && !strcmp(name + len - 4, SUFFIX);
}

void topology_file_remove_stale(const char *path)
{
	char *dir = path && !access(path, F_OK) ? strdup(path) : NULL;
	struct dirent *e;
	DIR *d;

	if (!dir)
		return;
	*strrchr(dir, '/') = '\0';
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (is_ours(e->d_name))
			check(dirfd(d), e->d_name);
	if (d)
		closedir(d);
	free(dir);
}

void topology_env_set(char ***env, const char *path)
{
	env_array_overwrite(env, TOPOLOGY_ENV_FILE, path);
	env_array_overwrite(env, TOPOLOGY_ENV_HERE, "1");
}
