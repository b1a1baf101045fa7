/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks and their agent get to know each other: one message a rank. */
#include "agent/registration.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "libio/attach_fds.h"
#include "libio/peer.h"

#define REGISTER_SECONDS 30 /* a child waits for the agent */

/* Linux's value, for C libraries older than the kernel. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- in the child ---- */

static int send_registration(int fd, uint32_t slot, int server_end)
{
	const struct passed_fds fds = { 1, { server_end } };
	union attached_fds control;
	struct iovec iov = { &slot, sizeof(slot) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	attach_fds(&msg, &fds, &control);
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Not CLOEXEC: one end is the rank's, and the other is closed here. */
int agent_register_rank(int registration_fd, uint32_t slot, int *pmi_fd)
{
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return -errno;
	rc = send_registration(registration_fd, slot, fds[0]);
	close(fds[0]);
	if (rc) {
		close(fds[1]);
		return rc;
	}
	*pmi_fd = fds[1];
	return 0;
}

int agent_rank_takes_place(int registration_fd, int pmi_fd)
{
	if (dup2(pmi_fd, registration_fd) < 0)
		return pmi_fd;
	close(pmi_fd);
	return registration_fd;
}

/* ---- in the agent ---- */

/* A number below is as good for who only registers. */
static int move_up(int fd, int at_least)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, at_least);

	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

int registration_open(int at_least, int *ours, int *theirs)
{
	struct timeval limit = { .tv_sec = REGISTER_SECONDS };
	int rc, fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	if (setsockopt(fds[1], SOL_SOCKET, SO_SNDTIMEO, &limit,
		       sizeof(limit)) < 0) {
		rc = -errno;
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	*ours = fds[0];
	*theirs = move_up(fds[1], at_least);
	return 0;
}

/* Exactly one descriptor is what we asked for; close whatever else came. */
static void take_fds(const struct cmsghdr *c, struct registration *out)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (size_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (out->fd < 0)
			out->fd = fd;
		else
			close(fd);
	}
}

static void take_message(struct msghdr *msg, unsigned int len,
			 struct registration *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			take_fds(c, out);
	}
	out->lost = out->fd < 0 && (msg->msg_flags & MSG_CTRUNC);
	if (len != sizeof(out->slot))
		out->slot = UINT32_MAX;
}

union registration_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int registration_receive(int ours,
			 struct registration out[REGISTRATIONS_AT_ONCE])
{
	union registration_control control[REGISTRATIONS_AT_ONCE];
	struct mmsghdr messages[REGISTRATIONS_AT_ONCE];
	struct iovec iov[REGISTRATIONS_AT_ONCE];
	int n;

	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < REGISTRATIONS_AT_ONCE; i++) {
		out[i] = (struct registration){ .slot = UINT32_MAX, .fd = -1 };
		iov[i] = (struct iovec){ &out[i].slot, sizeof(out[i].slot) };
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_control = &control[i];
		messages[i].msg_hdr.msg_controllen = sizeof(control[i]);
	}
	do {
		n = recvmmsg(ours, messages, REGISTRATIONS_AT_ONCE,
			     MSG_CMSG_CLOEXEC | MSG_DONTWAIT, NULL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	for (int i = 0; i < n; i++)
		take_message(&messages[i].msg_hdr, messages[i].msg_len,
			     &out[i]);
	return n;
}

/* Kernels before 6.5 know the number only. */
static int pidfd_by_number(int fd)
{
	struct ucred peer;
	int pidfd, rc = peer_credentials(fd, &peer);

	if (rc)
		return rc;
	if (peer.pid <= 0)
		return -EINVAL;
	pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

int registration_pidfd(int fd, bool *any_time)
{
	int pidfd;
	socklen_t len = sizeof(pidfd);

	*any_time = true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT) /* EINVAL: how some kernels say ESRCH */
		return errno == EINVAL ? -ESRCH : -errno;
	*any_time = false;
	return pidfd_by_number(fd);
}
