/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that go along with a message over a unix socket. */
#pragma once

#include <string.h>
#include <sys/socket.h>

#include "libutil/passed_fds.h"

union attached_fds {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PASSED_FDS_MAX * sizeof(int))];
};

/* Attach at least one descriptor; `control` must live until `msg` has been sent. */
static inline void attach_fds(struct msghdr *msg, const struct passed_fds *fds,
			      union attached_fds *control)
{
	size_t len = fds->count * sizeof(*fds->fds);
	struct cmsghdr *c;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(len);
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), fds->fds, len);
}

/* The one that came with a message that has been received, or -1. The caller's. */
static inline int passed_fd(struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}
