/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and removes a directory of the step's user. */
#include "supervisor/user_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define NUMBER_TEXT 24
#define TRIES 3

/* ---- emptying ---- */

/*
 * Directories in it are not descended into: what they hold is moved to the top, so that
 * no depth needs more descriptors, nor longer paths.
 */
struct emptying {
	int top;
	unsigned int entries; /* met so far, */
	unsigned int most;    /* at most this number */
	unsigned int moved;   /* the next name at the top */
	int error;            /* negative errno; 0 */
};

typedef void entry_visit(struct emptying *e, int dir, const char *name);

static void visit_entries(struct emptying *e, int dir, entry_visit *visit)
{
	int fd = openat(dir, ".", OPEN_DIR);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		e->error = -errno;
		if (fd >= 0)
			close(fd);
		return;
	}
	while (!e->error && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (++e->entries > e->most)
			e->error = -E2BIG;
		else
			visit(e, dir, entry->d_name);
	}
	closedir(d);
}

/* True: the entry is unlinked, or is a directory, which unlink cannot remove. */
static bool is_unlinked(int dir, const char *name)
{
	return !unlinkat(dir, name, 0) || errno == ENOENT;
}

static void move_up(struct emptying *e, int dir, const char *name)
{
	char number[NUMBER_TEXT];

	if (is_unlinked(dir, name))
		return;
	do
		snprintf(number, sizeof(number), ".%u", e->moved++);
	while (!faccessat(e->top, number, F_OK, AT_SYMLINK_NOFOLLOW) &&
	       e->moved < USER_DIR_ENTRIES_MAX);
	if (renameat(dir, name, e->top, number) && errno != ENOENT)
		e->error = -errno;
}

static void remove_entry(struct emptying *e, int dir, const char *name)
{
	int fd;

	if (is_unlinked(dir, name))
		return;
	fd = openat(dir, name, OPEN_DIR);
	if (fd >= 0) {
		visit_entries(e, fd, move_up);
		close(fd);
	}
	if (unlinkat(dir, name, AT_REMOVEDIR) && errno != ENOENT &&
	    errno != ENOTEMPTY && !e->error)
		e->error = -errno;
}

/* Until a look finds nothing: what has been moved is met by the next. */
static void empty(struct emptying *e)
{
	unsigned int before;

	(void)fchown(e->top, geteuid(), getegid()); /* its owner enters it no more */
	do {
		before = e->entries;
		visit_entries(e, e->top, remove_entry);
	} while (!e->error && e->entries != before);
}

/* As user_dir_remove, after at most `most` entries. How many were met is in *met. */
static int remove_some(int fd, const char *path, unsigned int most, unsigned int *met)
{
	struct emptying e = { .top = fd, .most = most };

	empty(&e);
	if (!e.error && rmdir(path) && errno != ENOENT)
		e.error = -errno;
	close(fd);
	*met = e.entries;
	return e.error;
}

/* ---- making ---- */

static bool is_there(int fd, const char *path)
{
	struct stat held, there;

	return !fstat(fd, &held) && !lstat(path, &there) &&
	       held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

/* A locked descriptor of the directory of this path, or a negative errno. */
static int lock(const char *path, int how)
{
	int rc, fd = open(path, OPEN_DIR);

	if (fd < 0)
		return -errno;
	if (!flock(fd, how | LOCK_NB) && is_there(fd, path))
		return fd;
	rc = errno == EWOULDBLOCK ? -EBUSY : -ENOENT;
	close(fd);
	return rc;
}

static void remove_unused(const char *path)
{
	int fd = lock(path, LOCK_EX);

	if (fd >= 0)
		(void)user_dir_remove(fd, path);
}

/*
 * Processes that look for stale directories may remove it before it is locked: -ENOENT
 * or -EBUSY.
 */
static int make_locked(const char *path)
{
	remove_unused(path);
	if (mkdir(path, S_IRWXU) < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	return lock(path, LOCK_SH);
}

int user_dir_make(const char *path, uid_t uid, gid_t gid)
{
	int rc, fd = -EBUSY;

	for (int i = 0; i < TRIES && (fd == -EBUSY || fd == -ENOENT); i++)
		fd = make_locked(path);
	if (fd < 0)
		return fd;
	/* The umask is the user's by now. */
	if (fchmod(fd, S_IRWXU) || (!geteuid() && fchown(fd, uid, gid))) {
		rc = -errno;
		(void)user_dir_remove(fd, path);
		return rc;
	}
	return fd;
}

/* ---- removing ---- */

int user_dir_remove(int fd, const char *path)
{
	unsigned int met;

	return remove_some(fd, path, USER_DIR_ENTRIES_MAX, &met);
}

void user_dir_remove_orphan(const char *path)
{
	int fd = open(path, OPEN_DIR);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX) && is_there(fd, path))
		(void)user_dir_remove(fd, path);
	else
		close(fd);
}

/* Takes what it has met off *left. */
static void remove_stale(const char *path, unsigned int *left)
{
	unsigned int met;
	int fd = lock(path, LOCK_EX);

	if (fd < 0)
		return;
	(void)remove_some(fd, path, *left, &met);
	*left -= met < *left ? met : *left;
}

void user_dir_remove_stale(const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX], other[PATH_MAX + NAME_MAX + 2];
	unsigned int left = USER_DIR_STALE_MAX;
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	d = opendir(dir);
	while (d && left && (e = readdir(d))) {
		snprintf(other, sizeof(other), "%s/%s", dir, e->d_name);
		if (!strncmp(e->d_name, prefix, strlen(prefix)) &&
		    strcmp(other, path))
			remove_stale(other, &left);
	}
	if (d)
		closedir(d);
}
