/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel which process is at the other end of a unix socket. */
#include "libio/peer.h"

#include <errno.h>
#include <sys/socket.h>

int peer_credentials(int fd, struct ucred *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out, &len) ? -errno : 0;
}
