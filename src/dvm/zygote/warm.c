/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter of up --preload, as the zygote sees it: warm.h. */
#include "dvm/zygote/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/common/rlimits.h"
#include "dvm/common/self_path.h"
#include "dvm/zygote/rank_files.h"
#include "dvm/zygote/zygote.h"
#include "libio/attach_fds.h"
#include "libio/fd.h"

#define PROGRAM "pmi2x-dvm-warm"
#define REQUEST_MAX (2 * DVM_LAUNCH_MAX)
#define MESSAGES_MAX ((size_t)16 << 20)
#define ANSWER_S 10 /* then the interpreter is given up */
#define TRIES 2

struct warm {
	const char *code, *node;
	char program[PATH_MAX + sizeof("/" PROGRAM)];
	pid_t process;
	int fd; /* -1: the process has ended, or was given up */
	bool lost;
	struct buf in, ends; /* struct warm_message: the last one may be incomplete; ends */
	bool answered;
	int32_t answer;
};

bool warm_is(const struct warm *w, pid_t process)
{
	return w && w->fd >= 0 && w->process == process;
}

/* ---- the process ---- */

static void drop(struct warm *w)
{
	kill(w->process, SIGKILL);
	waitpid(w->process, NULL, 0);
	fd_close(&w->fd);
	buf_clear(&w->in);
	w->lost = true;
}

/* ---- messages of it ---- */

static int take_message(struct warm *w)
{
	struct warm_message m;

	memcpy(&m, w->in.data, sizeof(m));
	buf_consume(&w->in, sizeof(m));
	if (m.what == WARM_ENDED)
		return buf_append(&w->ends, &m, sizeof(m));
	w->answered = true;
	w->answer = m.process;
	return 0;
}

/* 0, -EAGAIN, or another negative errno: it has ended. */
static int receive(struct warm *w, int flags)
{
	char piece[4096];
	ssize_t n = recv(w->fd, piece, sizeof(piece), flags);
	int rc = n > 0 ? buf_append(&w->in, piece, (size_t)n) : n ? -errno : -EPIPE;

	while (!rc && w->in.len >= sizeof(struct warm_message))
		rc = take_message(w);
	return rc;
}

int warm_fd(const struct warm *w)
{
	return w ? w->fd : -1;
}

void warm_read(struct warm *w)
{
	int rc = 0;

	if (!w || w->fd < 0)
		return;
	while (!rc)
		rc = receive(w, MSG_DONTWAIT);
	if (rc != -EAGAIN && rc != -EINTR)
		drop(w);
}

bool warm_next_end(struct warm *w, struct warm_message *out)
{
	if (!w || !w->ends.len)
		return false;
	memcpy(out, w->ends.data, sizeof(*out));
	buf_consume(&w->ends, sizeof(*out));
	return true;
}

bool warm_was_lost(struct warm *w)
{
	bool lost = w && w->lost;

	if (lost)
		w->lost = false;
	return lost;
}

/* ---- its start ---- */

static void become_interpreter(const struct warm *w, int fd)
{
	char link[16], faults[16], count[16], size[16];
	char *const argv[] = {
		"python3", (char *)w->program, link, faults, count, size,
		(char *)(uintptr_t)w->code, (char *)(uintptr_t)w->node, NULL,
	};
	size_t ncount, nsize;
	sigset_t none;
	int faults_fd = zygote_exec_faults(&ncount, &nsize);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	fcntl(fd, F_SETFD, 0);
	fcntl(faults_fd, F_SETFD, 0);
	snprintf(link, sizeof(link), "%d", fd);
	snprintf(faults, sizeof(faults), "%d", faults_fd);
	snprintf(count, sizeof(count), "%zu", ncount);
	snprintf(size, sizeof(size), "%zu", nsize);
	execvp(argv[0], argv);
	fprintf(stderr, "pmi2x-dvmd on %s: --preload: cannot execute python3: %s\n",
		w->node, strerror(errno));
	_exit(127);
}

/* Until its code has run. False: it has ended, or pmi2x-dvmd has. */
static bool wait_until_loaded(struct warm *w)
{
	struct pollfd in[] = { { w->fd, POLLIN, 0 }, { ZYGOTE_FD, 0, 0 } };

	w->answered = false;
	while (poll(in, 2, -1) < 0 && errno == EINTR)
		;
	return !in[1].revents && !receive(w, 0) && w->answered;
}

static int start_interpreter(struct warm *w)
{
	const struct timeval limit = { .tv_sec = ANSWER_S };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	w->process = fork();
	if (!w->process)
		become_interpreter(w, ends[1]);
	close(ends[1]);
	w->fd = ends[0];
	if (w->process > 0 && wait_until_loaded(w) &&
	    !setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) &&
	    !setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return 0;
	if (w->process > 0)
		drop(w);
	fd_close(&w->fd);
	return -EAGAIN;
}

int warm_create(struct warm **out, const char *code, const char *node)
{
	struct warm *w = calloc(1, sizeof(*w));
	char dir[PATH_MAX];

	*out = w;
	if (!w)
		return -ENOMEM;
	w->code = code;
	w->node = node;
	w->fd = -1;
	buf_init(&w->in, MESSAGES_MAX);
	buf_init(&w->ends, MESSAGES_MAX);
	if (!own_dir(dir, sizeof(dir)))
		return -ENOENT;
	snprintf(w->program, sizeof(w->program), "%s/" PROGRAM, dir);
	return start_interpreter(w) ? -ECHILD : 0;
}

/* ---- requests ---- */

static int add(struct buf *b, char kind, const char *text)
{
	int rc = buf_append(b, &kind, 1);

	return rc ? rc : buf_append(b, text, strlen(text) + 1);
}

static int add_list(struct buf *b, char kind, char *const *texts)
{
	int rc = 0;

	for (; !rc && *texts; texts++)
		rc = add(b, kind, *texts);
	return rc;
}

static int add_cpus(struct buf *b, const struct node_rank *r, const struct resources *has)
{
	cpu_set_t set;
	int rc;

	if (!resources_cpus(has, &r->cores, &set))
		return 0;
	rc = buf_append(b, "c", 1);
	for (int i = 0; !rc && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			rc = buf_printf(b, "%d ", i);
	return rc ? rc : buf_append(b, "", 1);
}

static int add_limits(struct buf *b, const struct dvm_limits *limits)
{
	char text[64];
	int rc = 0;

	for (int i = 0; !rc && i < DVM_LIMITS; i++) {
		const struct rlimit limit = zygote_limits_of(limits, i);

		snprintf(text, sizeof(text), "%d %lld %lld", rlimits_numbers[i],
			 (long long)limit.rlim_cur, (long long)limit.rlim_max);
		rc = add(b, 'l', text);
	}
	snprintf(text, sizeof(text), "%u", limits->umask & 0777);
	return rc || !limits->umask ? rc : add(b, 'u', text);
}

static int add_file(struct buf *b, char kind, const struct node_rank *r, const char *name)
{
	char path[PATH_MAX], text[PATH_MAX + 16];

	if (!rank_file_path(path, sizeof(path), r, name))
		return -ENAMETOOLONG;
	snprintf(text, sizeof(text), "%d %s", rank_file_flags(r, name), path);
	return add(b, kind, text);
}

static int add_files(struct buf *b, const struct node_rank *r)
{
	const struct dvm_launch *l = r->launch;
	int rc = 0;

	if (l->output == DVM_OUTPUT_FILE)
		rc = add_file(b, '1', r, l->path.data);
	return rc || !l->error.len ? rc : add_file(b, '2', r, l->error.data);
}

static int make_request(struct buf *b, const struct node_rank *r, const struct resources *has,
			const struct program *p)
{
	const char *cwd = r->launch->cwd.len ? r->launch->cwd.data : r->profile->cwd.data;
	uint32_t len = 0;
	int rc = buf_append(b, &len, sizeof(len));

	rc = rc ? rc : add_list(b, 'a', p->argv);
	rc = rc ? rc : add_list(b, 'e', p->env);
	rc = rc ? rc : add(b, 'd', cwd);
	rc = rc ? rc : add_cpus(b, r, has);
	rc = rc ? rc : add_limits(b, &r->profile->limits);
	rc = rc ? rc : add_files(b, r);
	len = (uint32_t)(b->len - sizeof(len));
	if (!rc)
		memcpy(b->data, &len, sizeof(len));
	return rc;
}

/* The length goes with the descriptors. */
static int send_request(int fd, const struct buf *request, const struct passed_fds *fds)
{
	struct iovec iov = { request->data, sizeof(uint32_t) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union attached_fds control;

	attach_fds(&m, fds, &control);
	if (sendmsg(fd, &m, MSG_NOSIGNAL) != (ssize_t)iov.iov_len)
		return -EPIPE;
	return fd_write_all(fd, request->data + iov.iov_len, request->len - iov.iov_len);
}

/* The process of the rank, the interpreter's errno, or -EPIPE: it does not answer. */
static pid_t ask(struct warm *w, const struct buf *request, const struct passed_fds *fds)
{
	w->answered = false;
	if (send_request(w->fd, request, fds))
		return -EPIPE;
	while (!w->answered)
		if (receive(w, 0))
			return -EPIPE;
	return w->answer;
}

static pid_t ask_any(struct warm *w, const struct buf *request, const struct passed_fds *fds)
{
	pid_t pid = -EPIPE;
	int rc = 0;

	for (int i = 0; i < TRIES && !rc && pid == -EPIPE; i++) {
		if (w->fd < 0)
			rc = start_interpreter(w);
		pid = rc ? rc : ask(w, request, fds);
		if (pid == -EPIPE)
			drop(w);
	}
	return pid == -EPIPE ? -EAGAIN : pid;
}

pid_t warm_start(struct warm *w, const struct node_rank *rank, const struct resources *has,
		 const struct program *program, const int stdio[2])
{
	const bool none = rank->launch->output == DVM_OUTPUT_NONE;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), in = rank_file_input(rank, null);
	const struct passed_fds fds = { 3, {
		in, none || stdio[0] < 0 ? null : stdio[0], none || stdio[1] < 0 ? null : stdio[1],
	} };
	struct buf request;
	pid_t pid = w ? (null < 0 || in < 0 ? -errno : 0) : -ENOEXEC;

	buf_init(&request, REQUEST_MAX);
	if (!pid)
		pid = make_request(&request, rank, has, program);
	if (!pid)
		pid = ask_any(w, &request, &fds);
	buf_free(&request);
	if (in != null)
		fd_close(&in);
	fd_close(&null);
	return pid;
}
