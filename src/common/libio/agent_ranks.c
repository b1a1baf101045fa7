/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a node: how a child registers its connection before it becomes
 * a rank, what the rank sends, and how its end is noticed.
 *
 * Each rank's socket pair is made by the child itself, and its end reaches the
 * agent in one message of a SOCK_SEQPACKET pair with the child's credentials.
 * So nobody but the agent holds the server's end, and the pid is known: the
 * rank's death shows on its pidfd, even when a grandchild keeps PMI_FD open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "libio/agent_internal.h"
#include "libio/stream.h"

#define RANK_READ_BYTES 65536 /* read from a rank at once */
#define RANK_QUEUE_MAX ((size_t)64 << 20) /* bytes of answers it has not read */
#define RANK_PAUSE_BYTES ((size_t)1 << 20) /* then its requests wait */
#define RANK_LAST_INPUT (2 * PMI_INPUT_MAX) /* bytes read after its end */
#define RANK_REGISTER_SECONDS 30 /* a child waits for the agent */
#define RANK_REGISTRATIONS_PER_TURN 64

struct rank {
	struct agent *agent;
	uint32_t slot;
	bool registered;
	struct stream *stream; /* NULL: none yet, or closed */
	uv_poll_t exit;        /* of the pidfd */
	int pidfd;             /* -1: not watched */
};

struct agent_ranks {
	struct rank *slots;
	uint32_t count;
	int ours;   /* the agent's end of the registration socket */
	int theirs; /* what children inherit */
	uv_poll_t registration;
	char input[RANK_READ_BYTES]; /* used during one callback only */
};

/* ---- in the child ---- */

static int send_registration(int fd, uint32_t slot, int server_end)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &slot, sizeof(slot) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &server_end, sizeof(int));
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int agent_register_rank(int registration_fd, uint32_t slot, int *pmi_fd)
{
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	rc = send_registration(registration_fd, slot, fds[0]);
	close(fds[0]);
	if (!rc && fcntl(fds[1], F_SETFD, 0) < 0)
		rc = -errno;
	if (rc) {
		close(fds[1]);
		return rc;
	}
	*pmi_fd = fds[1];
	return 0;
}

/* ---- a rank's connection ---- */

static size_t on_room(void *arg, void **at)
{
	struct rank *r = arg;

	*at = r->agent->ranks->input;
	return sizeof(r->agent->ranks->input);
}

static void on_input(void *arg, size_t n)
{
	struct rank *r = arg;
	struct agent *a = r->agent;

	pmi_server_client_input(a->server, r->slot, a->ranks->input, n);
}

static void close_stream(struct rank *r)
{
	stream_close(r->stream);
	r->stream = NULL;
}

static uint32_t rank_number(const struct rank *r)
{
	const struct pmi_step *step = r->agent->step;
	uint32_t count;

	return layout_ranks_at(step->layout, step->position, &count)[r->slot];
}

static void on_end(void *arg, int error)
{
	struct rank *r = arg;

	if (error == -ENOBUFS)
		log_error(r->agent->log,
			  "rank %u is dropped: it asks without reading the answers",
			  rank_number(r));
	close_stream(r);
	pmi_server_client_eof(r->agent->server, r->slot);
}

static int open_stream(struct rank *r, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = {
		.queue = RANK_QUEUE_MAX,
		.pause = RANK_PAUSE_BYTES,
	};

	return stream_open(&r->stream, loop_uv(r->agent->loop), fd, &limits,
			   &ops, r);
}

/* ---- a rank's end ---- */

static void stop_watching(struct rank *r)
{
	if (r->pidfd < 0)
		return;
	agent_close_handle(&r->exit);
	close(r->pidfd);
	r->pidfd = -1;
}

/* What it wrote last counts; what a grandchild may still write does not. */
static void rank_exited(struct rank *r)
{
	stop_watching(r);
	if (r->stream)
		stream_read_now(r->stream, RANK_LAST_INPUT);
	if (r->stream)
		close_stream(r);
	pmi_server_client_exit(r->agent->server, r->slot);
}

static void on_exit_poll(uv_poll_t *poll, int status, int events)
{
	rank_exited(poll->data);
}

/* Kernels without pidfds: the connection's end has to do. */
static void watch(struct rank *r, pid_t pid)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd < 0 && pid > 0 && errno == ESRCH) {
		rank_exited(r);
		return;
	}
	if (fd < 0)
		return;
	if (uv_poll_init(loop_uv(r->agent->loop), &r->exit, fd)) {
		close(fd);
		return;
	}
	r->pidfd = fd;
	r->exit.data = r;
	uv_poll_start(&r->exit, UV_READABLE, on_exit_poll);
}

/* ---- registration in the agent ---- */

struct registration {
	uint32_t slot;
	int fd;    /* -1: none came */
	pid_t pid; /* 0: unknown */
};

/* Exactly one descriptor is what we asked for; close whatever else came. */
static void take_fds(struct cmsghdr *c, struct registration *out)
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

/* 1: a message; 0: none is there; or a negative errno. */
static int receive(int fd, struct registration *out)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int)) +
					      CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { &out->slot, sizeof(out->slot) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct ucred cred;
	ssize_t n;

	*out = (struct registration){ .slot = UINT32_MAX, .fd = -1 };
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n == 0 || errno == EAGAIN ? 0 : -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			take_fds(c, out);
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			out->pid = cred.pid;
		}
	}
	if (n != sizeof(out->slot))
		out->slot = UINT32_MAX;
	return 1;
}

static void register_rank(struct agent *a, const struct registration *reg)
{
	struct agent_ranks *ranks = a->ranks;
	struct rank *r;
	int rc;

	if (reg->fd < 0)
		return;
	if (reg->slot >= ranks->count || ranks->slots[reg->slot].registered) {
		log_error(a->log, "a process registered as local rank %u: %s",
			  reg->slot,
			  reg->slot < ranks->count ? "it is there already" :
						     "there is none");
		close(reg->fd);
		return;
	}
	r = &ranks->slots[reg->slot];
	rc = open_stream(r, reg->fd);
	if (rc) {
		log_error(a->log, "cannot serve rank %u: %s", rank_number(r),
			  strerror(-rc));
		return;
	}
	r->registered = true;
	pmi_server_client_open(a->server, r->slot);
	watch(r, reg->pid);
}

static void on_registration(uv_poll_t *poll, int status, int events)
{
	struct agent *a = poll->data;
	struct registration reg;

	for (int i = 0; i < RANK_REGISTRATIONS_PER_TURN; i++) {
		if (receive(a->ranks->ours, &reg) <= 0)
			return;
		register_rank(a, &reg);
	}
}

/* ---- life ---- */

static int open_registration(struct agent_ranks *ranks)
{
	struct timeval limit = { .tv_sec = RANK_REGISTER_SECONDS };
	int on = 1, fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	ranks->ours = fds[0];
	ranks->theirs = fds[1];
	if (setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    setsockopt(fds[1], SOL_SOCKET, SO_SNDTIMEO, &limit,
		       sizeof(limit)) < 0)
		return -errno;
	return 0;
}

int agent_ranks_open(struct agent *a)
{
	struct agent_ranks *ranks = calloc(1, sizeof(*ranks));
	int rc;

	if (!ranks)
		return -ENOMEM;
	a->ranks = ranks;
	ranks->ours = ranks->theirs = -1;
	layout_ranks_at(a->step->layout, a->step->position, &ranks->count);
	ranks->slots = calloc(ranks->count, sizeof(*ranks->slots));
	if (!ranks->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranks->count; i++) {
		ranks->slots[i].agent = a;
		ranks->slots[i].slot = i;
		ranks->slots[i].pidfd = -1;
	}
	rc = open_registration(ranks);
	rc = rc ? rc : uv_poll_init(loop_uv(a->loop), &ranks->registration,
				    ranks->ours);
	if (rc)
		return rc;
	ranks->registration.data = a;
	return uv_poll_start(&ranks->registration, UV_READABLE,
			     on_registration);
}

void agent_ranks_close(struct agent *a)
{
	struct agent_ranks *ranks = a->ranks;

	if (!ranks)
		return;
	for (uint32_t i = 0; ranks->slots && i < ranks->count; i++) {
		close_stream(&ranks->slots[i]);
		stop_watching(&ranks->slots[i]);
	}
	agent_close_handle(&ranks->registration);
}

void agent_ranks_free(struct agent *a)
{
	if (!a->ranks)
		return;
	if (a->ranks->ours >= 0) {
		close(a->ranks->ours);
		close(a->ranks->theirs);
	}
	free(a->ranks->slots);
	free(a->ranks);
}

int agent_ranks_registration_fd(const struct agent *a)
{
	return a->ranks->theirs;
}

void agent_ranks_send(struct agent *a, uint32_t slot, const void *data,
		      size_t len, int fd)
{
	/* What cannot be sent ends the stream; the loop tells the engine. */
	if (a->ranks->slots[slot].stream)
		stream_write(a->ranks->slots[slot].stream, data, len, fd);
}

void agent_ranks_finish(struct agent *a, uint32_t slot)
{
	if (a->ranks->slots[slot].stream)
		stream_finish(a->ranks->slots[slot].stream);
}

bool agent_ranks_ended(const struct agent *a)
{
	for (uint32_t i = 0; i < a->ranks->count; i++) {
		if (a->ranks->slots[i].stream)
			return false;
	}
	return true;
}
