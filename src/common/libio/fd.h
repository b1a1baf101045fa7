/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors: one that may not be there is -1; and writing all of something. */
#ifndef PMI2X_FD_H
#define PMI2X_FD_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Close it, if it is there; then it is not any more. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
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

#endif
