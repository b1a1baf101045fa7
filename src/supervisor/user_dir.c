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
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<linux/openat2.h>) && defined(SYS_openat2)
#include <linux/openat2.h>
#define HAVE_OPENAT2 1
#endif
#endif

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define NUMBER_TEXT 24
#define TRIES 3

/* ---- opening ---- */

/*
 * A directory that is no other file system. The user may mount one there by FUSE, which
 * lets root in (allow_other) and then never answers. Before Linux 5.6 that is not seen.
 */
static int open_same(int at, const char *name)
{
#ifdef HAVE_OPENAT2
	const struct open_how how = { .flags = OPEN_DIR, .resolve = RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, at, name, &how, sizeof(how));

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
#endif
	return openat(at, name, OPEN_DIR);
}

/* The directory of this path, in one of root's; a negative errno. */
static int open_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];
	int at, fd;

	snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	at = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	fd = open_same(at, slash + 1);
	fd = fd < 0 ? -errno : fd;
	close(at);
	return fd;
}

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

/* There is something of that name which a directory does not replace. */
static bool is_taken(int rc)
{
	return rc == -ENOTEMPTY || rc == -EEXIST || rc == -ENOTDIR || rc == -EBUSY;
}

static void move_up(struct emptying *e, int dir, const char *name)
{
	char number[NUMBER_TEXT];
	int rc;

	if (is_unlinked(dir, name))
		return;
	do {
		snprintf(number, sizeof(number), ".%u", e->moved++);
		rc = renameat(dir, name, e->top, number) ? -errno : 0;
	} while (is_taken(rc) && e->moved < USER_DIR_ENTRIES_MAX);
	if (rc && rc != -ENOENT)
		e->error = rc;
}

static void remove_entry(struct emptying *e, int dir, const char *name)
{
	int fd;

	if (is_unlinked(dir, name))
		return;
	fd = open_same(dir, name);
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
	int now = open_path(path);
	bool same = now >= 0 && !fstat(fd, &held) && !fstat(now, &there) &&
		    held.st_ino == there.st_ino && held.st_dev == there.st_dev;

	if (now >= 0)
		close(now);
	return same;
}

/* A locked descriptor of the directory of this path, or a negative errno. */
static int lock(const char *path, int how)
{
	int rc, fd = open_path(path);

	if (fd < 0)
		return fd;
	rc = flock(fd, how | LOCK_NB) ? -errno : 0;
	if (!rc && is_there(fd, path))
		return fd;
	rc = rc == -EWOULDBLOCK ? -EBUSY : -ENOENT;
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
	int fd = open_path(path);

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
