/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a journal. */
#include "journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libio/fd.h"

#define CHUNK ((size_t)1 << 20)

static int open_in(const char *dir, const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* A file system that knows no locks has none. */
static int lock(struct journal_file *f)
{
	f->lock = open_in(f->dir, "lock", O_RDWR | O_CREAT);
	if (f->lock < 0)
		return f->lock;
	if (flock(f->lock, LOCK_EX | LOCK_NB) < 0 && errno != ENOSYS &&
	    errno != EOPNOTSUPP && errno != ENOLCK)
		return -errno;
	return 0;
}

static int open_present(struct journal_file *f)
{
	struct stat st;

	f->fd = open_in(f->dir, "journal", O_RDWR);
	if (f->fd < 0)
		return f->fd == -ENOENT ? 0 : f->fd;
	if (fstat(f->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != getuid())
		return -EPERM;
	f->end = (uint64_t)st.st_size;
	return 0;
}

int journal_file_open(struct journal_file *f, const char *dir)
{
	int rc;

	*f = (struct journal_file){ .dir = dir, .lock = -1, .fd = -1 };
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	rc = lock(f);
	return rc ? rc : open_present(f);
}

int journal_file_map(const struct journal_file *f, void **data, size_t *len)
{
	*len = (size_t)f->end;
	*data = *len ? mmap(NULL, *len, PROT_READ, MAP_PRIVATE, f->fd, 0) : NULL;
	return *data == MAP_FAILED ? -errno : 0;
}

void journal_file_unmap(void *data, size_t len)
{
	if (len)
		munmap(data, len);
}

static int read_all(int fd, char *data, size_t *len)
{
	size_t at = 0;
	ssize_t n = 1;

	while (at < *len && n) {
		n = pread(fd, data + at, *len - at, (off_t)at);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	*len = at;
	return 0;
}

int journal_file_read(const char *dir, void **data, size_t *len)
{
	int rc = 0, fd = open_in(dir, "journal", O_RDONLY | O_NONBLOCK);
	struct stat st;

	*data = NULL;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = -EPERM;
	*len = rc ? 0 : (size_t)st.st_size;
	*data = rc ? NULL : malloc(*len + 1);
	if (!rc)
		rc = *data ? read_all(fd, *data, len) : -ENOMEM;
	if (rc)
		free(*data);
	close(fd);
	return rc;
}

static int write_all(int fd, const char *data, size_t len, uint64_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int journal_file_append(struct journal_file *f, const void *data, size_t len)
{
	int rc = write_all(f->fd, data, len, f->end);

	if (!rc)
		f->end += len;
	else if (ftruncate(f->fd, (off_t)f->end) < 0)
		return rc; /* what is behind the end is written over, or cut off */
	return rc;
}

int journal_file_keep(const struct journal_file *f)
{
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/journal", f->dir);
	snprintf(to, sizeof(to), "%s/journal.damaged", f->dir);
	unlink(to);
	return link(from, to) < 0 ? -errno : 0;
}

/* ---- another one ---- */

void journal_file_new(const struct journal_file *f, struct journal_file_new *n)
{
	*n = (struct journal_file_new){ 0 };
	buf_init(&n->out, SIZE_MAX / 2);
	n->fd = open_in(f->dir, "journal.new", O_RDWR | O_CREAT | O_TRUNC);
	n->error = n->fd < 0 ? n->fd : 0;
}

static void write_out(struct journal_file_new *n)
{
	if (!n->error)
		n->error = write_all(n->fd, n->out.data, n->out.len, n->len);
	n->len += n->out.len;
	buf_clear(&n->out);
}

void journal_file_put(struct journal_file_new *n, const void *data, size_t len)
{
	if (!n->error)
		n->error = buf_append(&n->out, data, len);
	if (n->out.len >= CHUNK)
		write_out(n);
}

static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc == -EINVAL ? 0 : rc; /* a file system that cannot */
}

static int rename_new(const struct journal_file *f)
{
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/journal.new", f->dir);
	snprintf(to, sizeof(to), "%s/journal", f->dir);
	return rename(from, to) < 0 ? -errno : sync_dir(f->dir);
}

static void drop_new(const struct journal_file *f, struct journal_file_new *n)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/journal.new", f->dir);
	unlink(path);
	fd_close(&n->fd);
}

int journal_file_replace(struct journal_file *f, struct journal_file_new *n)
{
	int rc;

	write_out(n);
	buf_free(&n->out);
	rc = n->error;
	if (!rc && fsync(n->fd) < 0)
		rc = -errno;
	rc = rc ? rc : rename_new(f);
	if (rc) {
		drop_new(f, n);
		return rc;
	}
	fd_close(&f->fd);
	f->fd = n->fd;
	f->end = n->len;
	return 0;
}
