/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks and their agent get to know each other: one message a rank. */
#include "libio/registration.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "libio/attach_fds.h"
#include "libio/fd.h"
#include "libio/hang_up.h"
#include "libio/peer.h"

#define REGISTER_SECONDS 30 /* a child waits for the agent */

/* Linux's value, for C libraries older than the kernel. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define PROCESS_ASK 0    /* the receiver asks for the pidfd */
#define PROCESS_PASSED 1 /* the second descriptor is the process's */

/* On the wire. */
struct message {
	uint32_t slot;
	int32_t process; /* PROCESS_*, or a negative errno: there is no pidfd */
	struct registration_times times;
};

static int send_message(int fd, const struct message *m, const struct passed_fds *fds)
{
	union attached_fds control;
	struct iovec iov = { (void *)m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	attach_fds(&msg, fds, &control);
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* ---- in the child ---- */

/* Not CLOEXEC: one end is the rank's, and the other is closed here. */
int registration_of_timed_rank(int theirs, uint32_t slot,
			       const struct registration_times *times,
			       int *pmi_fd)
{
	struct message m = { .slot = slot, .process = PROCESS_ASK };
	struct passed_fds passed = { .count = 1 };
	int fds[2], rc;

	if (times)
		m.times = *times;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return -errno;
	/* The receiver shall know which process has written each message. */
	(void)setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
	passed.fds[0] = fds[0];
	rc = send_message(theirs, &m, &passed);
	close(fds[0]);
	if (rc) {
		close(fds[1]);
		return rc;
	}
	*pmi_fd = fds[1];
	return 0;
}

int registration_of_rank(int theirs, uint32_t slot, int *pmi_fd)
{
	return registration_of_timed_rank(theirs, slot, NULL, pmi_fd);
}

int registration_takes_place(int theirs, int pmi_fd)
{
	if (dup2(pmi_fd, theirs) < 0)
		return pmi_fd;
	close(pmi_fd);
	return theirs;
}

/* ---- in the agent, or who starts it ---- */

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

/* Take the one or two descriptors that belong to the message, and close all others. */
static void take_fds(const struct cmsghdr *c, struct registration *out)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (size_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (out->fd < 0)
			out->fd = fd;
		else if (out->pidfd < 0)
			out->pidfd = fd;
		else
			close(fd);
	}
}

static void take_message(struct msghdr *msg, const struct message *m,
			 unsigned int len, struct registration *out)
{
	bool whole = len == sizeof(*m);

	*out = (struct registration){ .slot = UINT32_MAX, .fd = -1, .pidfd = -1 };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			take_fds(c, out);
	}
	out->lost = out->fd < 0 && (msg->msg_flags & MSG_CTRUNC);
	if (whole) {
		out->slot = m->slot;
		out->times = m->times;
	}
	if (!whole || m->process != PROCESS_PASSED)
		fd_close(&out->pidfd);
	if (whole && m->process < -1)
		out->pidfd = m->process;
}

union registration_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

int registration_receive(int ours,
			 struct registration out[REGISTRATIONS_AT_ONCE])
{
	union registration_control control[REGISTRATIONS_AT_ONCE];
	struct mmsghdr messages[REGISTRATIONS_AT_ONCE];
	struct message bodies[REGISTRATIONS_AT_ONCE];
	struct iovec iov[REGISTRATIONS_AT_ONCE];
	int n;

	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < REGISTRATIONS_AT_ONCE; i++) {
		iov[i] = (struct iovec){ &bodies[i], sizeof(bodies[i]) };
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
		take_message(&messages[i].msg_hdr, &bodies[i],
			     messages[i].msg_len, &out[i]);
	/* At the end there is no end of empty messages. */
	return n && !messages[0].msg_len && out[0].fd < 0 ? -EPIPE : n;
}

int registration_pass(int theirs, struct registration *reg)
{
	struct message m = {
		.slot = reg->slot,
		.process = PROCESS_ASK,
		.times = reg->times,
	};
	struct passed_fds passed = { 1, { reg->fd } };
	int rc;

	if (reg->pidfd >= 0) {
		m.process = PROCESS_PASSED;
		passed.fds[passed.count++] = reg->pidfd;
	} else if (reg->pidfd != -1) {
		m.process = reg->pidfd;
	}
	rc = send_message(theirs, &m, &passed);
	if (rc)
		hang_up(&reg->fd);
	fd_close(&reg->fd);
	fd_close(&reg->pidfd);
	return rc;
}

void registration_refuse(struct registration *reg, bool is_there,
			 const struct log_hook *log)
{
	log_error(log, "refused a process that registered as local rank %u: %s", reg->slot,
		  is_there ? "that rank has registered already" : "the node has no such rank");
	hang_up(&reg->fd);
	fd_close(&reg->pidfd);
}

/* ---- the process behind a connection ---- */

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

/* *any_time: asking later will answer about the same process for sure. */
static int ask_for_pidfd(int fd, bool *any_time)
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

int registration_process(struct registration *reg)
{
	bool any_time;

	return reg->pidfd == -1 ? ask_for_pidfd(reg->fd, &any_time) :
				  reg->pidfd;
}

void registration_find_process(struct registration *reg, bool *any_time)
{
	if (!*any_time)
		reg->pidfd = ask_for_pidfd(reg->fd, any_time);
}
