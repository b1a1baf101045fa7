/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor that may not be there: -1. */
#ifndef PMI2X_FD_H
#define PMI2X_FD_H

#include <unistd.h>

/* Close it, if it is there; then it is not any more. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
