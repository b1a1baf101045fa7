/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk of a journal: journal_file.h. */
#include "dvm/common/journal_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libio/fd.h"

#define FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

static int open_in(void *arg, const char *name, int flags)
{
	const struct journal_dir *d = arg;
	int fd = openat(d->fd, name, flags | FLAGS, 0600);

	return fd < 0 ? -errno : fd;
}

/* ---- operations ---- */

static int dir_lock(void *arg)
{
	struct journal_dir *d = arg;

	d->lock = open_in(d, "lock", O_RDWR | O_CREAT);
	if (d->lock < 0)
		return d->lock;
	if (!flock(d->lock, LOCK_EX | LOCK_NB))
		return 0;
	return errno == ENOSYS || errno == EOPNOTSUPP ? -ENOLCK : -errno;
}

static int dir_create(void *arg, const char *name)
{
	return open_in(arg, name, O_RDWR | O_CREAT | O_EXCL);
}

static int dir_open(void *arg, const char *name)
{
	return open_in(arg, name, O_RDWR);
}

static void dir_close(void *arg, int file)
{
	close(file);
}

static int64_t dir_read(void *arg, int file, void *data, size_t len, uint64_t at)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < len && n) {
		n = pread(file, (char *)data + done, len - done, (off_t)(at + done));
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return (int64_t)done;
}

static int dir_write(void *arg, int file, const void *data, size_t len, uint64_t at)
{
	const char *from = data;

	while (len) {
		ssize_t n = pwrite(file, from, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		from += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int dir_truncate(void *arg, int file, uint64_t len)
{
	return ftruncate(file, (off_t)len) < 0 ? -errno : 0;
}

static void describe(const struct stat *st, struct disk_stat *out)
{
	out->id = st->st_ino;
	out->size = (uint64_t)st->st_size;
	out->own = S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

static int dir_stat(void *arg, int file, struct disk_stat *out)
{
	struct stat st;

	if (fstat(file, &st) < 0)
		return -errno;
	describe(&st, out);
	return 0;
}

/*
 * A file of NFS that is gone; also all of the directory, after a file server has failed
 * over, and that says nothing of its files.
 */
static int stale(const struct journal_dir *d)
{
	struct statx st;
	int rc = statx(d->fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_TYPE, &st);

	return rc < 0 && errno == ESTALE ? -EIO : -ENOENT;
}

static int look_cached(const struct journal_dir *d, const char *name,
		       struct disk_stat *out)
{
	struct stat st;

	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ESTALE ? stale(d) : -errno;
	describe(&st, out);
	return 0;
}

/*
 * A client of NFS asks its server again, instead of what it remembers; where statx is not
 * allowed, as in old containers, it may not.
 */
static int dir_look(void *arg, const char *name, struct disk_stat *out)
{
	const struct journal_dir *d = arg;
	struct statx st;

	if (statx(d->fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
		  STATX_TYPE | STATX_UID | STATX_INO | STATX_SIZE, &st) < 0) {
		if (errno == ENOSYS || errno == EPERM)
			return look_cached(d, name, out);
		return errno == ESTALE ? stale(d) : -errno;
	}
	out->id = st.stx_ino;
	out->size = st.stx_size;
	out->own = S_ISREG(st.stx_mode) && st.stx_uid == geteuid();
	return 0;
}

static int dir_rename(void *arg, const char *from, const char *to)
{
	const struct journal_dir *d = arg;

	return renameat(d->fd, from, d->fd, to) < 0 ? -errno : 0;
}

static int dir_link(void *arg, const char *from, const char *to)
{
	const struct journal_dir *d = arg;

	return linkat(d->fd, from, d->fd, to, 0) < 0 ? -errno : 0;
}

static int dir_unlink(void *arg, const char *name)
{
	const struct journal_dir *d = arg;

	return unlinkat(d->fd, name, 0) < 0 ? -errno : 0;
}

static int dir_list(void *arg, const char *prefix,
		    void (*each)(void *ctx, const char *name), void *ctx)
{
	int fd = open_in(arg, ".", O_RDONLY | O_DIRECTORY), rc;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (fd < 0)
		return fd;
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	errno = 0;
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			each(ctx, e->d_name), errno = 0;
	rc = -errno;
	closedir(dir);
	return rc;
}

/* Sync the directory; some file systems cannot, which is no error. */
static int dir_sync(void *arg, int file)
{
	const struct journal_dir *d = arg;

	if (fsync(file == DISK_DIRECTORY ? d->fd : file) == 0)
		return 0;
	return file == DISK_DIRECTORY && errno == EINVAL ? 0 : -errno;
}

static int dir_begin_sync(void *arg, int file)
{
	const struct journal_dir *d = arg;

	return d->begin_sync(d->arg, file);
}

const struct disk_ops journal_dir_ops = {
	.lock = dir_lock, .create = dir_create, .open = dir_open, .close = dir_close,
	.read = dir_read, .write = dir_write, .truncate = dir_truncate,
	.stat = dir_stat, .look = dir_look, .rename = dir_rename, .link = dir_link,
	.unlink = dir_unlink, .list = dir_list, .sync = dir_sync,
	.begin_sync = dir_begin_sync,
};

/* ---- life ---- */

/* Sync the directory of the path, unless this user may not read it. */
static int sync_parent(const char *path)
{
	char up[PATH_MAX];
	struct journal_dir d;
	int rc;

	if ((size_t)snprintf(up, sizeof(up), "%s/..", path) >= sizeof(up))
		return -ENAMETOOLONG;
	d.fd = open(up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d.fd < 0)
		return errno == EACCES ? 0 : -errno;
	rc = dir_sync(&d, DISK_DIRECTORY);
	close(d.fd);
	return rc;
}

int journal_dir_make(const char *path)
{
	return mkdir(path, 0700) < 0 ? -errno : sync_parent(path);
}

int journal_dir_open(struct journal_dir *d, const char *path)
{
	struct stat st;
	int rc = journal_dir_make(path);

	d->lock = -1;
	if (rc && rc != -EEXIST)
		return rc;
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return -errno;
	if (fstat(d->fd, &st) < 0)
		return -errno;
	return st.st_uid != geteuid() || st.st_mode & 022 ? -EPERM : 0;
}

void journal_dir_close(struct journal_dir *d)
{
	fd_close(&d->lock);
	fd_close(&d->fd);
}

/* ---- for reports ---- */

int journal_file_read(const char *dir, void **data, size_t *len)
{
	struct journal_dir d = { .fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int fd, rc = 0;
	struct stat st;
	int64_t n = 0;

	*data = NULL;
	if (d.fd < 0)
		return -errno;
	fd = open_in(&d, "journal", O_RDONLY);
	close(d.fd);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = -EPERM;
	*data = rc ? NULL : malloc((size_t)st.st_size + 1);
	if (!rc)
		n = *data ? dir_read(NULL, fd, *data, (size_t)st.st_size, 0) : -ENOMEM;
	if (n < 0) {
		free(*data);
		rc = (int)n;
	}
	*len = (size_t)n;
	close(fd);
	return rc;
}
