/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory of a DVM: rundir.h. Its lock goes with it, so that who has opened a lock
 * that another one removes meanwhile begins again.
 */
#include "dvm/common/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK "lock"

/* -ESTALE: it has gone meanwhile. */
static int open_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		rc = -errno;
	else if (!st.st_nlink)
		rc = -ESTALE;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int place_take(const char *dir)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/" LOCK, dir);
	do {
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return -errno;
		rc = open_lock(path);
	} while (rc == -ESTALE);
	return rc;
}

static void remove_in(const char *dir, const char *file)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	unlink(path);
}

/* Removes the directory of all DVMs, where the user has not made it. */
static void leave_parent(const char *dir)
{
	const char *given = getenv(DVM_BASE_VARIABLE);
	char parent[PATH_MAX];

	if (given && *given)
		return;
	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(dir, '/') - dir), dir);
	rmdir(parent);
}

void place_leave(const char *dir, bool keep)
{
	remove_in(dir, HEADD_SOCKET);
	if (!keep)
		remove_in(dir, HEADD_LOG);
	remove_in(dir, LOCK); /* then another one may have the directory */
	if (!rmdir(dir))
		leave_parent(dir);
}
