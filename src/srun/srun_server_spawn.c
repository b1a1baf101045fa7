/* SPDX-License-Identifier: BSD-3-Clause */
/* Sruns that srun's server has started for spawns, and the one that started it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utlist.h>

#include "libpmi/pmix_nspace.h"
#include "libpmi/rc.h"
#include "srun/srun_server_internal.h"

void srun_server_step_ended(struct srun_server *h, const char *jobid)
{
	char nspace[PMIX_NSPACE_NAME_MAX + 1];

	pmix_nspace_name(nspace, jobid);
	step_services_namespace_ended(h->launcher, nspace);
}

/* ---- spawned sruns ---- */

static void send_to_child(struct asker *to, const void *data, size_t len)
{
	struct child *c = (struct child *)to;

	spawned_send(c->process, data, len);
}

/* Takes only requests about names and the news that it runs from a child. */
static int on_child_message(void *arg, const void *data, size_t len)
{
	struct child *c = arg;
	struct step_services *l = c->server->launcher;
	struct control_msg msg;
	int rc = control_unpack(data, len, &msg);

	if (rc)
		return rc;
	switch (msg.type) {
	case CONTROL_READY:
		if (msg.code) {
			step_services_spawned(l, c->token, PMI_RC_FAIL, msg.text);
			break;
		}
		c->ready = true;
		step_services_spawned(l, c->token, PMI_RC_OK, msg.text);
		free(c->jobid);
		c->jobid = msg.text;
		msg.text = NULL;
		break;
	case CONTROL_PUBLISH:
	case CONTROL_UNPUBLISH:
	case CONTROL_LOOKUP:
	case CONTROL_NAMES:
		rc = srun_server_receive(c->server, &c->asker, data, len);
		break;
	default:
		rc = -EPROTO;
	}
	control_free(&msg);
	return rc;
}

static void on_child_hung_up(void *arg)
{
	struct child *c = arg;

	step_services_link_lost(c->server->launcher, &c->asker);
	if (c->jobid)
		srun_server_step_ended(c->server, c->jobid);
}

static void free_child(struct child *c)
{
	spawned_close(c->process);
	free(c->jobid);
	free(c);
}

/*
 * Before its first rank was there this is the answer to the spawn; afterwards
 * the launcher knows of no such spawn. A program that never starts PMI may
 * have ended well.
 */
static void on_child_exited(void *arg, int status)
{
	struct child *c = arg;
	struct srun_server *h = c->server;
	char why[128] = "";

	if (WIFEXITED(status) && WEXITSTATUS(status))
		snprintf(why, sizeof(why), "srun ended with exit code %d before "
			 "the first process started", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "srun was killed by signal %d before "
			 "the first process started", WTERMSIG(status));
	else if (!WIFEXITED(status))
		snprintf(why, sizeof(why), "srun ended in an unknown way");
	step_services_spawned(h->launcher, c->token, *why ? PMI_RC_FAIL : PMI_RC_OK,
			 why);
	if (!c->jobid) /* as the answer calls it: nobody is to connect with it */
		srun_server_step_ended(h, "");
	DL_DELETE(h->children, c);
	free_child(c);
	srun_server_advance(h);
}

static int watch_child(struct srun_server *h, uint32_t token, pid_t pid, int fd)
{
	static const struct spawned_ops ops = {
		.message = on_child_message,
		.hung_up = on_child_hung_up,
		.exited = on_child_exited,
	};
	struct child *c = calloc(1, sizeof(*c));
	int rc;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->asker.send = send_to_child;
	c->server = h;
	c->token = token;
	rc = spawned_watch(&c->process, loop_uv(h->loop), pid, fd, &ops, c);
	if (rc) {
		free(c);
		return rc;
	}
	DL_APPEND(h->children, c);
	return 0;
}

int srun_server_spawn(void *arg, uint32_t token,
		      const struct spawn_request *request)
{
	struct srun_server *h = arg;
	int fd = -1, rc;
	pid_t pid;

	if (h->phase != RUNNING)
		return -ESHUTDOWN;
	pid = h->host.spawn(h->host.arg, token, request, &fd);
	if (pid < 0)
		return pid;
	rc = watch_child(h, token, pid, fd);
	if (rc)
		kill(pid, SIGTERM);
	return rc;
}

bool srun_server_spawn_end_unwanted(struct srun_server *h)
{
	struct child *c;
	bool others = false;

	DL_FOREACH(h->children, c) {
		if (!c->ready)
			spawned_signal(c->process, SIGTERM);
		others |= c->ready;
	}
	return others;
}

void srun_server_spawn_terminate(struct srun_server *h)
{
	struct child *c;

	DL_FOREACH(h->children, c)
		spawned_signal(c->process, SIGTERM);
}

/* ---- the srun that spawned this one ---- */

static int on_parent_message(void *arg, const void *data, size_t len)
{
	struct srun_server *h = arg;
	struct control_msg msg;
	int rc = control_unpack(data, len, &msg);

	if (rc)
		return rc;
	if (msg.type == CONTROL_REPLY)
		step_services_forwarded(h->launcher, msg.id, data, len);
	else
		rc = -EPROTO;
	control_free(&msg);
	return rc;
}

static void on_parent_end(void *arg, int error)
{
	struct srun_server *h = arg;

	channel_close(h->parent);
	h->parent = NULL;
	step_services_parent_lost(h->launcher);
}

static void tell_parent(struct srun_server *h, int code, char *text)
{
	const struct control_msg msg = {
		.type = CONTROL_READY, .code = code, .text = text,
	};
	struct buf frame;

	if (!h->parent)
		return;
	buf_init(&frame, CONTROL_FRAME_MAX);
	if (!control_pack(&frame, &msg))
		channel_send(h->parent, frame.data, frame.len);
	buf_free(&frame);
}

void srun_server_ready(void *arg)
{
	struct srun_server *h = arg;

	tell_parent(h, 0, h->jobid);
}

void srun_server_not_ready(void *arg, const char *why)
{
	tell_parent(arg, 1, (char *)why);
}

int srun_server_forward(void *arg, uint32_t token, const void *data, size_t len)
{
	struct srun_server *h = arg;

	return h->parent ? channel_send(h->parent, data, len) : -EPIPE;
}

/* ---- life ---- */

int srun_server_spawn_open(struct srun_server *h, int fd)
{
	static const struct channel_ops ops = {
		.message = on_parent_message,
		.end = on_parent_end,
	};

	if (fd < 0)
		return 0;
	fcntl(fd, F_SETFD, FD_CLOEXEC); /* not for this srun's own children */
	return channel_open(&h->parent, loop_uv(h->loop), fd, &ops, h);
}

void srun_server_spawn_close(struct srun_server *h)
{
	struct child *c, *next;

	DL_FOREACH_SAFE(h->children, c, next)
		free_child(c);
	h->children = NULL;
	channel_close(h->parent);
	h->parent = NULL;
}
