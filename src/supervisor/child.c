/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a program beside slurmstepd, hears it, and ends it. */
#include "supervisor/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libconfine/agent_fd.h"
#include "libio/fd.h"
#include "libio/hang_up.h"
#include "supervisor/supervisor.h"

#define NUMBER_TEXT 16 /* bytes of a number's text */
#define ARGS_FIXED 5   /* NAME UID GID STEP NODE */
#define STACK_BYTES 32768 /* posix_spawn has one of its own for what it does */

extern char **environ;

/* ---- starting it ---- */

int supervisor_program_open(const char *path)
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
	int ends[2], yes = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	(void)setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	c->fd = ends[0];
	*theirs = ends[1];
	return 0;
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

/* The work of the process between slurmstepd and the program. */
struct birth {
	const char *path;
	char **argv;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attributes;
	pid_t pid; /* the program's */
};

static int give_birth(void *arg)
{
	struct birth *b = arg;

	return posix_spawn(&b->pid, b->path, b->actions, b->attributes, b->argv,
			   environ);
}

/* ThreadSanitizer takes clone for a fork, whose child has memory of its own. */
#ifdef __SANITIZE_THREAD__
extern int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

/*
 * The process between shares this one's memory, which waits for it, and ends at once:
 * the program is left without a parent. Slurm's wait for any child would take a
 * child's end for a task's, and then sleep, for 100 ms, through the end of a real one;
 * it does not see a process that ends without a signal.
 */
static int run_orphan(struct birth *b)
{
	_Alignas(16) char stack[STACK_BYTES];
	sigset_t all, before;
	pid_t between;
	int rc, status = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	between = clone(give_birth, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, b);
	rc = between < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (!rc && waitpid(between, &status, __WCLONE) < 0)
		rc = errno == EINTR ? 0 : -errno;
	if (rc)
		return rc;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* A pidfd of the process; for one that has exited, a descriptor that can always be read. */
static int watch(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 && errno == ESRCH ? eventfd(1, EFD_CLOEXEC) : fd;
}

static int execute(struct child *c, const struct child_program *p, int file,
		   const posix_spawn_file_actions_t *actions,
		   const posix_spawnattr_t *attributes)
{
	char path[32], uid[NUMBER_TEXT], gid[NUMBER_TEXT];
	char *argv[CHILD_ARGS_MAX + 1] = {
		(char *)p->name, uid, gid, (char *)p->step, (char *)p->node,
	};
	struct birth b = { path, argv, actions, attributes, -1 };
	size_t n = ARGS_FIXED;
	int rc;

	for (size_t i = 0; p->more[i] && n < CHILD_ARGS_MAX; i++)
		argv[n++] = p->more[i];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	snprintf(uid, sizeof(uid), "%u", (unsigned)p->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)p->gid);
	rc = run_orphan(&b);
	if (!rc)
		c->pidfd = watch(b.pid);
	return rc;
}

/* In a process group of its own, of slurmstepd's session: see child.h. */
static int set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
		  const struct child_program *p)
{
	int rc = give_all(actions, p);

	rc = rc ? rc : -posix_spawnattr_setpgroup(attributes, 0);
	return rc ? rc : -posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP);
}

static int start(struct child *c, const struct child_program *p, int file)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc = -posix_spawn_file_actions_init(&actions);

	if (rc)
		return rc;
	rc = -posix_spawnattr_init(&attributes);
	if (!rc) {
		rc = set_up(&actions, &attributes, p);
		rc = rc ? rc : execute(c, p, file, &actions, &attributes);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

int child_start(struct child *c, const struct child_program *p)
{
	int rc, file = fcntl(p->file, F_DUPFD_CLOEXEC, AGENT_FD_END);

	if (file < 0)
		return -errno;
	child_become_root();
	rc = start(c, p, file);
	close(file);
	return rc;
}

/* ---- what it says ---- */

int child_receive(const struct child *c, char room[HOST_MSG_MAX], struct host_msg *m)
{
	return host_msg_receive(c->fd, room, m);
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
	if (c->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

void child_wait_end(const struct child *c, int ms)
{
	struct pollfd ended = { .fd = c->pidfd, .events = POLLIN };

	if (c->pidfd >= 0)
		(void)poll(&ended, 1, ms);
}

void child_hang_up(struct child *c)
{
	hang_up(&c->fd);
}

void child_forget(struct child *c)
{
	fd_close(&c->pidfd);
}
