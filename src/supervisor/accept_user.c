/* SPDX-License-Identifier: BSD-3-Clause */
/* Accepts connections over the loopback device, and asks the kernel whose they are. */
#include "supervisor/accept_user.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/owner.h"

static bool is_of(int fd, uid_t uid)
{
	uint32_t owner;

	return !owner_of_peer(fd, &owner) && owner == uid;
}

bool accept_user(int listener, uid_t uid, int *client)
{
	*client = -1;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return errno == EMFILE || errno == ENFILE;
		if (is_of(fd, uid)) {
			*client = fd;
			return true;
		}
		close(fd);
	}
	return false;
}
