/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors: one that may not be there is -1; and writing all of something. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Close it, if it is there; then it is not any more. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* `most`, or half of the descriptors that this process may have, where these are fewer. */
static inline uint32_t fd_at_most_half(uint32_t most)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / 2 < most)
		return (uint32_t)(files.rlim_cur / 2);
	return most;
}

/* Write all of it, to a file or to memory. Blocks. 0 or a negative errno. */
static inline int fd_write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Write a short text into a file of the kernel's, at once. 0 or a negative errno. */
static inline int fd_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	fd_close(&fd);
	return rc;
}
