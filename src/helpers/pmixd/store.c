/* SPDX-License-Identifier: BSD-3-Clause */
/* A name for the files of shared memory, and less memory for them. */
#include "helpers/pmixd/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers/pmixd/pmixd.h"

#define PIECE 65536 /* bytes looked at in one go; a multiple of each page size */

/* How the names of large files begin. Clients write into none of them. */
static const char *const segments[] = { "smseg-", "smdataseg-" };

/* The directory below `dir` in which libpmix makes its files. */
static void name_store(char out[NAME_MAX])
{
	snprintf(out, NAME_MAX, "pmix_dstor_ds21_%d", (int)getpid());
}

int store_show(const char *dir)
{
	char store[NAME_MAX], path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/" PMIXD_DS21, dir);

	if (len >= (int)sizeof(path))
		return -ENAMETOOLONG;
	name_store(store);
	(void)unlink(path); /* of an earlier server */
	return symlink(store, path) ? -errno : 0;
}

/* Bytes up to the last one that is not zero, in whole pieces. */
static size_t used(const char *bytes, size_t size)
{
	static const char zeros[PIECE];

	while (size >= PIECE && !memcmp(bytes + size - PIECE, zeros, PIECE))
		size -= PIECE;
	return size;
}

static void trim_file(int fd, size_t size)
{
	char *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	size_t end;

	if (bytes == MAP_FAILED)
		return;
	end = used(bytes, size);
	munmap(bytes, size);
	if (end < size)
		(void)fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
				(off_t)end, (off_t)(size - end));
}

static void trim_entry(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size % PIECE == 0 &&
	    st.st_size > 0)
		trim_file(fd, (size_t)st.st_size);
	close(fd);
}

static bool is_segment(const char *name)
{
	for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++)
		if (!strncmp(name, segments[i], strlen(segments[i])))
			return true;
	return false;
}

void store_trim(const char *dir)
{
	char store[NAME_MAX], path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	name_store(store);
	snprintf(path, sizeof(path), "%s/%s", dir, store);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (is_segment(e->d_name))
			trim_entry(dirfd(d), e->d_name);
	if (d)
		closedir(d);
}
