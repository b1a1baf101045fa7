/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a program beside slurmstepd, hears it, and ends it. */
#include "starter/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/setup.h"
#include "libio/fd.h"
#include "starter/starter.h"

#define NUMBER_TEXT 16 /* bytes of a number's text */
#define ARGS_FIXED 5   /* NAME UID GID STEP NODE */

extern char **environ;

/* ---- starting it ---- */

int starter_program_open(const char *path)
{
	int rc, fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		rc = -errno;
		fd_close(&fd);
		return rc;
	}
	if ((!st.st_uid || st.st_uid == getuid()) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return -EPERM;
}

/*
 * For a while slurmstepd has the step's user as its effective one, in all threads.
 * The kernel's call changes this thread only; the C library's would change all.
 */
void child_become_root(void)
{
	uid_t real, effective, saved;

	if (getresuid(&real, &effective, &saved) || !effective ||
	    (real && saved))
		return;
	(void)syscall(SYS_setresuid, -1, 0, -1);
	(void)syscall(SYS_setresgid, -1, 0, -1);
}

int child_connect(struct child *c, int *theirs)
{
	int one = 1, ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	c->fd = ends[0];
	*theirs = ends[1];
	/* The kernel says who it is. */
	return setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) ?
		       -errno : 0;
}

/* No number that others get is taken away by giving them theirs. */
static int move_up(int *fd)
{
	int up;

	if (*fd < 0 || *fd >= AGENT_FD_END)
		return 0;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, AGENT_FD_END);
	if (up < 0)
		return -errno;
	close(*fd);
	*fd = up;
	return 0;
}

static int give(posix_spawn_file_actions_t *actions, int *fd, int number)
{
	int rc = move_up(fd);

	if (rc)
		return rc;
	return *fd < 0 ? -posix_spawn_file_actions_addclose(actions, number) :
		-posix_spawn_file_actions_adddup2(actions, *fd, number);
}

static int give_all(posix_spawn_file_actions_t *actions,
		    const struct child_program *p)
{
	int rc = 0;

	for (int fd = 0; fd <= STDERR_FILENO && !rc; fd++)
		rc = -posix_spawn_file_actions_addopen(
			actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	for (size_t i = 0; i < p->nfds && !rc; i++)
		rc = give(actions, p->fds[i], AGENT_FD_SETUP + (int)i);
	return rc;
}

static int execute(const struct child_program *p, int file,
		   const posix_spawn_file_actions_t *actions, pid_t *pid)
{
	char path[32], uid[NUMBER_TEXT], gid[NUMBER_TEXT];
	char *argv[CHILD_ARGS_MAX + 1] = {
		(char *)p->name, uid, gid, (char *)p->step, (char *)p->node,
	};
	size_t n = ARGS_FIXED;

	for (size_t i = 0; p->more[i] && n < CHILD_ARGS_MAX; i++)
		argv[n++] = p->more[i];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	snprintf(uid, sizeof(uid), "%u", (unsigned)p->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)p->gid);
	return -posix_spawn(pid, path, actions, NULL, argv, environ);
}

int child_start(struct child *c, const struct child_program *p)
{
	posix_spawn_file_actions_t actions;
	int rc, file = fcntl(p->file, F_DUPFD_CLOEXEC, AGENT_FD_END);
	pid_t pid;

	if (file < 0)
		return -errno;
	child_become_root();
	rc = -posix_spawn_file_actions_init(&actions);
	if (!rc) {
		rc = give_all(&actions, p);
		rc = rc ? rc : execute(p, file, &actions, &pid);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(file);
	if (!rc)
		c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return rc;
}

/* ---- what it says ---- */

/* The sender, as the kernel says it. */
static void learn_pid(struct child *c, const struct msghdr *msg)
{
	struct cmsghdr *m = CMSG_FIRSTHDR(msg);
	struct ucred who;

	if (c->own_pidfd >= 0 || !m || m->cmsg_level != SOL_SOCKET ||
	    m->cmsg_type != SCM_CREDENTIALS)
		return;
	memcpy(&who, CMSG_DATA(m), sizeof(who));
	if (who.pid > 0 && who.pid != getpid())
		c->own_pidfd = (int)syscall(SYS_pidfd_open, who.pid, 0);
}

int child_receive(struct child *c, char room[HOST_MSG_MAX], struct host_msg *m)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { room, HOST_MSG_MAX };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT);

	/* ECONNRESET: it has left answers unread; what it said still comes. */
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ||
		       errno == ECONNRESET ? 0 : -EPIPE;
	if (n > 0)
		learn_pid(c, &msg);
	child_reap(c); /* it has forked, or is another program and has ended */
	if (n == 0)
		return -EPIPE;
	return host_msg_unpack(m, room, (size_t)n) ? -EPROTO : 1;
}

void child_text(char *out, size_t size, const struct host_msg *m)
{
	size_t n = m->len < size ? m->len : size - 1;

	memcpy(out, m->data, n);
	out[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)out[i] < ' ' || out[i] == 127)
			out[i] = '?';
}

/* ---- its end ---- */

void child_kill(const struct child *c)
{
	const int all[] = { c->pidfd, c->own_pidfd };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			syscall(SYS_pidfd_send_signal, all[i], SIGKILL, NULL, 0);
}

void child_reap(struct child *c)
{
	siginfo_t info;

	if (c->pidfd < 0)
		return;
	(void)waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED);
	fd_close(&c->pidfd);
}

void child_wait_end(const struct child *c, int ms)
{
	struct pollfd ended = { .fd = c->own_pidfd, .events = POLLIN };

	if (c->own_pidfd >= 0)
		(void)poll(&ended, 1, ms);
}

void child_forget(struct child *c)
{
	child_reap(c);
	fd_close(&c->own_pidfd);
}
