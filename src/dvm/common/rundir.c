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

#include "libio/clock.h"

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

/* place_is_taken has the lock for a moment. */
static bool is_for_a_moment(int rc, int *tries)
{
	if (rc != -EWOULDBLOCK || !(*tries)--)
		return false;
	sleep_ms(5);
	return true;
}

static void write_job(int lock)
{
	const char *job = getenv("SLURM_JOB_ID");

	if (ftruncate(lock, 0) == 0 && job)
		(void)!pwrite(lock, job, strlen(job), 0);
}

int place_take(const char *dir)
{
	char path[PATH_MAX];
	int rc, tries = 10;

	snprintf(path, sizeof(path), "%s/" LOCK, dir);
	do {
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return -errno;
		rc = open_lock(path);
	} while (rc == -ESTALE || is_for_a_moment(rc, &tries));
	if (rc >= 0)
		write_job(rc);
	return rc;
}

bool place_is_taken(const char *dir)
{
	char path[PATH_MAX];
	bool taken;
	int fd;

	snprintf(path, sizeof(path), "%s/" LOCK, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	taken = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return taken;
}

void place_job(const char *dir, char *out, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/" LOCK, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
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
	remove_in(dir, LOCK); /* from here on another head may have the directory */
	if (!rmdir(dir))
		leave_parent(dir);
}
