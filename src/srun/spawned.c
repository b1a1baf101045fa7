/* SPDX-License-Identifier: BSD-3-Clause */
/* An srun that this srun has started: process and channel. */
#include "srun/spawned.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libio/channel.h"

struct spawned {
	pid_t pid;
	int pidfd; /* -1: the kernel has none, `timer` looks instead */
	bool exited;
	int handles; /* not yet closed */
	uv_poll_t poll;
	uv_timer_t timer;
	struct channel *channel; /* NULL: closed */
	struct spawned_ops ops;
	void *arg;
};

static void hang_up(struct spawned *s)
{
	if (!s->channel)
		return;
	channel_close(s->channel);
	s->channel = NULL;
	s->ops.hung_up(s->arg);
}

static int on_message(void *arg, const void *data, size_t len)
{
	struct spawned *s = arg;

	return s->ops.message(s->arg, data, len);
}

static void on_end(void *arg, int error)
{
	hang_up(arg);
}

/* Look whether the spawned srun has exited. */
static void look(struct spawned *s)
{
	int status = 0;
	pid_t pid;

	do {
		pid = waitpid(s->pid, &status, WNOHANG);
	} while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return;
	if (pid < 0)
		status = -1;
	s->exited = true;
	uv_timer_stop(&s->timer);
	if (s->pidfd >= 0)
		uv_poll_stop(&s->poll);
	if (s->channel)
		channel_read_now(s->channel);
	hang_up(s);
	s->ops.exited(s->arg, status);
}

static void on_pidfd(uv_poll_t *poll, int status, int events)
{
	look(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

static int pidfd_of(pid_t pid)
{
#ifdef SYS_pidfd_open
	return syscall(SYS_pidfd_open, pid, 0); /* CLOEXEC by itself */
#else
	return -1;
#endif
}

static void watch_process(struct spawned *s, uv_loop_t *loop)
{
	uv_timer_init(loop, &s->timer);
	s->handles = 1;
	s->timer.data = s->poll.data = s;
	s->pidfd = pidfd_of(s->pid);
	if (s->pidfd >= 0 && uv_poll_init(loop, &s->poll, s->pidfd)) {
		close(s->pidfd);
		s->pidfd = -1;
	}
	if (s->pidfd >= 0) {
		s->handles++;
		uv_poll_start(&s->poll, UV_READABLE, on_pidfd);
	} else {
		uv_timer_start(&s->timer, on_timer, 0, SPAWNED_POLL_MS);
	}
}

int spawned_watch(struct spawned **out, uv_loop_t *loop, pid_t pid, int fd,
		  const struct spawned_ops *ops, void *arg)
{
	static const struct channel_ops channel_ops = {
		.message = on_message,
		.end = on_end,
	};
	struct spawned *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->pid = pid;
	s->ops = *ops;
	s->arg = arg;
	rc = channel_open(&s->channel, loop, fd, &channel_ops, s);
	if (rc) {
		free(s);
		return rc;
	}
	watch_process(s, loop);
	*out = s;
	return 0;
}

int spawned_send(struct spawned *s, const void *data, size_t len)
{
	return s->channel ? channel_send(s->channel, data, len) : -EPIPE;
}

void spawned_signal(struct spawned *s, int signal)
{
	if (!s->exited)
		kill(s->pid, signal);
}

static void on_closed(uv_handle_t *handle)
{
	struct spawned *s = handle->data;

	if (--s->handles)
		return;
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s);
}

void spawned_close(struct spawned *s)
{
	channel_close(s->channel);
	s->channel = NULL;
	uv_close((uv_handle_t *)&s->timer, on_closed);
	if (s->pidfd >= 0)
		uv_close((uv_handle_t *)&s->poll, on_closed);
}
