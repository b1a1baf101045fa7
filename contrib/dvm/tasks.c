/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of tasks that have PMI, as the zygote tells of them. */
#include "tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uthash.h>

#include "libdvm/dvm_msg.h"
#include "libio/fd.h"
#include "task.h"

#define PACKET_MAX 256  /* bytes of a message */
#define AT_ONCE 64      /* messages until others have their turn */

struct tasks {
	struct loop *loop;
	struct task_host host; /* of all */
	struct tasks_ops ops;
	void *arg;
	struct task *all;      /* by part; task.h */
	uv_poll_t poll;
	int fd;
};

/* ---- what tasks say ---- */

static void say(const struct tasks *t, const struct dvm_msg *m)
{
	char room[DVM_TEXT_MAX + 64];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (t->fd >= 0 && !dvm_msg_pack(&b, m))
		t->ops.say(t->arg, b.data, b.len);
}

static void say_over(const struct tasks *t, uint32_t part)
{
	const struct dvm_msg m = {
		.type = DVM_PMI_OVER, .pmi_part = { .part = part },
	};

	say(t, &m);
}

static void on_failed(void *arg, uint32_t part, const struct task_failure *f)
{
	const struct dvm_msg m = {
		.type = DVM_FAIL,
		.fail = { part, f->status, f->rank, { f->why, strlen(f->why) } },
	};

	say(arg, &m);
}

static void on_gone(void *arg, struct task *task)
{
	struct tasks *t = arg;

	say_over(t, task->part);
	HASH_DEL(t->all, task);
	task_destroy(task);
}

/* ---- what the zygote says ---- */

static struct task *find(struct tasks *t, uint32_t part)
{
	struct task *task;

	HASH_FIND(hh, t->all, &part, sizeof(part), task);
	return task;
}

/* `registration`: taken over. */
static void begin(struct tasks *t, const struct dvm_pmi_part *m, int registration)
{
	const struct task_failure f = {
		.status = 126 << 8, .why = "no memory for its PMI",
	};
	struct task *task = task_create(&t->host, m, registration);

	if (task)
		HASH_ADD(hh, t->all, part, sizeof(task->part), task);
	if (task)
		task_begin(task);
	else
		on_failed(t, m->part, &f);
}

/* `fd`: of the packet, taken over; or -1. */
static void take(struct tasks *t, const struct dvm_msg *m, int fd)
{
	struct task *task = find(t, m->pmi_part.part); /* first in all of them */

	if (m->type == DVM_PMI_PART && !task && fd >= 0) {
		begin(t, &m->pmi_part, fd);
		return;
	}
	fd_close(&fd);
	if (m->type == DVM_PMI_RANK && task)
		task_rank_ended(task, m->pmi_rank.slot, m->pmi_rank.status);
	else if (m->type == DVM_PMI_OVER && task)
		task_over(task);
	else if (m->type == DVM_PMI_OVER)
		say_over(t, m->pmi_part.part); /* there was no memory for it */
}

/* ---- packets ---- */

static int passed_fd(struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* False: there is none. */
static bool receive(struct tasks *t)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char room[PACKET_MAX];
	struct iovec iov = { room, sizeof(room) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = recvmsg(t->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct dvm_msg m;
	struct cursor c;
	int fd;

	if (n <= 0) {
		if (n == 0)
			uv_poll_stop(&t->poll); /* its end shows elsewhere, too */
		return false;
	}
	fd = passed_fd(&msg);
	cursor_init(&c, room, (size_t)n);
	if (dvm_msg_unpack(&c, &m))
		fd_close(&fd);
	else
		take(t, &m, fd);
	return true;
}

static void on_packets(uv_poll_t *poll, int status, int events)
{
	struct tasks *t = poll->data;

	for (int i = 0; i < AT_ONCE && t->fd >= 0 && receive(t); i++)
		;
}

/* ---- life ---- */

int tasks_open(struct tasks **out, struct loop *loop, int fd,
	       const struct tasks_options *options, const struct tasks_ops *ops,
	       void *arg, const struct log_hook *log)
{
	struct tasks *t = calloc(1, sizeof(*t));
	int rc;

	*out = t;
	if (!t) {
		close(fd);
		return -ENOMEM;
	}
	t->fd = fd;
	t->ops = *ops;
	t->arg = arg;
	t->host = (struct task_host){
		.loop = loop, .dvm = options->dvm, .node = options->node,
		.failed = on_failed, .gone = on_gone, .arg = t, .log = log,
	};
	rc = uv_poll_init(loop_uv(loop), &t->poll, fd);
	t->poll.data = t;
	return rc ? rc : uv_poll_start(&t->poll, UV_READABLE, on_packets);
}

void tasks_close(struct tasks *t)
{
	struct task *task, *next;

	if (!t || t->fd < 0)
		return;
	if (t->poll.type != UV_UNKNOWN_HANDLE)
		uv_close((uv_handle_t *)&t->poll, NULL);
	fd_close(&t->fd);
	HASH_ITER(hh, t->all, task, next)
		task_leave_alone(task);
}

void tasks_destroy(struct tasks *t)
{
	free(t);
}
