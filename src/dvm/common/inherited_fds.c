/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a program has inherited: inherited_fds.h. */
#include "dvm/common/inherited_fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLOEXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC */

/* Kernels before 5.11 cannot do it with one call. */
static void one_by_one(int first)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name); /* "." and ".." are 0 */

		if (fd >= first)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	if (dir)
		closedir(dir);
}

void inherited_fds_forbid(int first)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, CLOEXEC) == 0)
		return;
#endif
	one_by_one(first);
}

static void close_one_by_one(int first)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd >= first && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

void inherited_fds_close(int first)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif
	close_one_by_one(first);
}
