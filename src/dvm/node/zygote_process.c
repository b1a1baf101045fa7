/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvmd: start and end of the zygote. */
#include "dvm/node/dvmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/common/rlimits.h"
#include "dvm/common/strays.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/zygote/zygote.h"
#include "dvm/node/tree_link.h"
#include "libio/clock.h"

#define GONE_MS 2000 /* for the head to hear that no rank is left */
#define LEAVE_MS 5000 /* for the zygote to kill its ranks; it may stand still */
#define LOOK_MS 10    /* between two looks at it */
#define ZYGOTE "pmi2x-dvm-zygote"

/* Give the zygote a moment to end by itself. */
static void wait_for_zygote(pid_t zygote)
{
	for (int i = 0; i < LEAVE_MS / LOOK_MS; i++) {
		if (waitpid(zygote, NULL, WNOHANG))
			return;
		sleep_ms(LOOK_MS);
	}
	kill(zygote, SIGKILL);
	waitpid(zygote, NULL, 0);
}

bool dvmd_end_ranks(struct dvmd *d)
{
	if (d->process > 0)
		wait_for_zygote(d->process);
	d->process = 0;
	return strays_kill_all();
}

static void on_told_gone(uv_timer_t *timer)
{
	dvmd_finish(timer->data, 0);
}

/* Send GONE, the last message to the head: no rank is left, and others may get the work. */
static void tell_gone(struct dvmd *d)
{
	static const char message = DVM_GONE;

	if (!d->head || dvmd_send_head(d, &message, 1)) {
		dvmd_finish(d, 0);
		return;
	}
	if (d->tree)
		dvmd_tree_flush(d);
	uv_timer_start(&d->orphan, on_told_gone, GONE_MS, 0);
	link_finish(d->head);
}

/* The zygote was killed, or has ended after dvmd_leave. */
static void on_zygote_end(void *arg, int error)
{
	struct dvmd *d = arg;

	dvmd_leave_others(d);
	if (!dvmd_end_ranks(d)) {
		dvmd_finish(d, 1);
		return;
	}
	d->ended = true;
	dvm_node_send_rest(d->node);
	if (d->tree)
		dvmd_tree_leave(d, tell_gone);
	else
		tell_gone(d);
}

static void on_late(uv_timer_t *timer)
{
	const struct dvmd *d = timer->data;

	if (d->process > 0)
		kill(d->process, SIGKILL); /* on_zygote_end kills its ranks */
}

/* Close the channel: the zygote kills its ranks, and on_zygote_end follows. */
void dvmd_leave(struct dvmd *d)
{
	dvmd_close_node(d);
	channel_shutdown(d->channel);
	uv_timer_start(&d->late, on_late, LEAVE_MS, 0);
}

/* Each descriptor may have another's number: first move all above those. */
static bool place_fds(const struct dvmd *d, int fd)
{
	const int from[] = { fd, link_fd(d->head), pool_listener(d->pool) };
	const int to[] = { ZYGOTE_FD, ZYGOTE_LINK_FD, ZYGOTE_LISTENER_FD };
	int high[3];
	bool ok = true;

	for (int i = 0; i < 3; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ZYGOTE_LISTENER_FD + 1);
	for (int i = 0; i < 3; i++)
		ok = dup2(high[i], to[i]) >= 0 && ok;
	return ok;
}

static void become_zygote(const struct dvmd *d, int fd)
{
	const struct pmix_offer *pmix = pmix_hub_offer(d->pmix);
	char pmix_port[16], file[sizeof(d->programs) + 32];
	char *const argv[] = {
		ZYGOTE, (char *)d->name, (char *)d->welcome.slots,
		(char *)d->welcome.gpus, (char *)d->welcome.dvm, pmix_port,
		(char *)(pmix->port ? pmix->gds : ""), (char *)pmix->dir,
		(char *)d->welcome.preload, NULL,
	};
	sigset_t none;

	snprintf(pmix_port, sizeof(pmix_port), "%u", pmix->port);
	snprintf(file, sizeof(file), "%s/" ZYGOTE, d->programs);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &d->core);
	if (!place_fds(d, fd))
		_exit(126);
	execv(file, argv);
	fprintf(stderr, "pmi2x-dvmd on %s: cannot execute %s: %s\n", d->name, file,
		strerror(errno));
	_exit(126);
}

static int on_task_says_head(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;

	return d->joined ? dvmd_send_head(d, data, len) : -ENOTCONN;
}

static bool on_task_names(void *arg, uint32_t node, char out[DVM_TEXT_MAX])
{
	const struct dvmd *d = arg;

	return dvm_node_name(d->node, node, out);
}

static int on_task_sends(void *arg, uint32_t node, const struct dvm_address *address,
			 const struct pool_frame *f, const struct payload_vec *body)
{
	struct dvmd *d = arg;

	return d->pool ? pool_send(d->pool, node, address, f, body) : -ENOTCONN;
}

static void on_task_pmix_sends(void *arg, uint32_t part, const void *head, size_t len,
			       struct payload *data)
{
	struct dvmd *d = arg;

	pmix_hub_send(d->pmix, part, head, len, data);
}

static void on_task_pmix_drops(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	pmix_hub_drop(d->pmix, part);
}

static int open_tasks(struct dvmd *d)
{
	const bool pmix = pmix_hub_offer(d->pmix)->port;
	const struct tasks_ops ops = {
		.failed = dvmd_pmi_failed, .failed_late = dvmd_pmi_failed_late,
		.over = dvmd_pmi_over, .say_head = on_task_says_head,
		.name = on_task_names, .send = on_task_sends,
		.pmix_send = pmix ? on_task_pmix_sends : NULL,
		.pmix_drop = pmix ? on_task_pmix_drops : NULL,
	};
	const struct tasks_options options = { d->welcome.dvm, d->name };

	return tasks_open(&d->tasks, d->loop, &options, &ops, d, &d->log);
}

int dvmd_start_zygote(struct dvmd *d)
{
	static const struct channel_ops ops = {
		.message = dvmd_zygote_says, .end = on_zygote_end,
	};
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	d->process = fork();
	if (!d->process)
		become_zygote(d, ends[1]);
	rc = d->process < 0 ? -errno : 0;
	close(ends[1]);
	rlimits_raise(&(struct rlimit){ 0 }); /* the connection of each rank is a descriptor */
	if (rc) {
		close(ends[0]);
		return rc;
	}
	rc = channel_open(&d->channel, loop_uv(d->loop), ends[0], &ops, d);
	rc = rc ? rc : open_tasks(d);
	rc = rc ? rc : dvmd_open_node(d);
	return rc ? rc : dvmd_open_signals(d);
}
