/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvmd: start and end of the zygote, and passing on what it and the head say. */
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

#define GONE_MS 2000 /* for the head to hear that no rank is left */
#define ZYGOTE "pmi2x-dvm-zygote"

/* That a head has been killed may be seen here first. */
static int on_zygote_says(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;
	int rc;

	if (!d->joined && *(const uint8_t *)data != DVM_REGISTER)
		return 0; /* it was for another head */
	if (!d->joined)
		dvmd_join(d);
	rc = d->head ? link_send_bytes(d->head, FRAME_CONTROL_UP, data, len) : 0;
	if (!rc || !dvmd_outlives_head(d))
		return rc;
	dvmd_wait_for_head(d);
	return 0;
}

bool dvmd_end_ranks(struct dvmd *d)
{
	if (d->process > 0)
		waitpid(d->process, NULL, 0);
	d->process = 0;
	return strays_kill_all();
}

static void on_told_gone(uv_timer_t *timer)
{
	dvmd_finish(timer->data, 0);
}

/* That no rank is left is the last that the head hears: others may have the work now. */
static void tell_gone(struct dvmd *d)
{
	static const char message = DVM_GONE;

	d->ended = true;
	if (!d->head || link_send_bytes(d->head, FRAME_CONTROL_UP, &message, 1)) {
		dvmd_finish(d, 0);
		return;
	}
	uv_timer_start(&d->orphan, on_told_gone, GONE_MS, 0);
	link_finish(d->head);
}

/* It ends by itself when the head has said so, and otherwise when it is killed. */
static void on_zygote_end(void *arg, int error)
{
	struct dvmd *d = arg;

	dvmd_leave_others(d);
	if (dvmd_end_ranks(d))
		tell_gone(d);
	else
		dvmd_finish(d, 1);
}

/* Each may have another's number: they are put above those first. */
static bool place_fds(const struct dvmd *d, int fd, int pmi)
{
	const int from[] = { fd, pmi, link_fd(d->head), pool_listener(d->pool) };
	const int to[] = { ZYGOTE_FD, ZYGOTE_PMI_FD, ZYGOTE_LINK_FD, ZYGOTE_LISTENER_FD };
	int high[4];
	bool ok = true;

	for (int i = 0; i < 4; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ZYGOTE_LISTENER_FD + 1);
	for (int i = 0; i < 4; i++)
		ok = dup2(high[i], to[i]) >= 0 && ok;
	return ok;
}

static void become_zygote(const struct dvmd *d, int fd, int pmi)
{
	const struct pmix_offer *pmix = pmix_hub_offer(d->pmix);
	char port[16], pmix_port[16], file[sizeof(d->programs) + 32];
	char *const argv[] = {
		ZYGOTE, (char *)d->name, (char *)d->welcome.slots,
		(char *)d->welcome.gpus, (char *)d->welcome.dvm, port, pmix_port,
		(char *)(pmix->port ? pmix->gds : ""), (char *)pmix->dir, NULL,
	};
	sigset_t none;

	snprintf(port, sizeof(port), "%u", pool_port(d->pool));
	snprintf(pmix_port, sizeof(pmix_port), "%u", pmix->port);
	snprintf(file, sizeof(file), "%s/" ZYGOTE, d->programs);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &d->core);
	if (!place_fds(d, fd, pmi))
		_exit(126);
	execv(file, argv);
	fprintf(stderr, "pmi2x-dvmd on %s: cannot execute %s: %s\n", d->name, file,
		strerror(errno));
	_exit(126);
}

static void on_task_says(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;

	if (d->channel)
		(void)channel_send(d->channel, data, len);
}

static int on_task_says_head(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;

	return d->head && d->joined ?
	       link_send_bytes(d->head, FRAME_CONTROL_UP, data, len) : -ENOTCONN;
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

/* Takes over the descriptors. */
static int listen_to_zygote(struct dvmd *d, int fd, int pmi)
{
	static const struct channel_ops ops = {
		.message = on_zygote_says, .end = on_zygote_end,
	};
	bool pmix = pmix_hub_offer(d->pmix)->port;
	const struct tasks_ops task_ops = {
		.say = on_task_says, .say_head = on_task_says_head,
		.send = on_task_sends,
		.pmix_send = pmix ? on_task_pmix_sends : NULL,
		.pmix_drop = pmix ? on_task_pmix_drops : NULL,
	};
	const struct tasks_options options = { d->welcome.dvm, d->name };
	int rc = tasks_open(&d->tasks, d->loop, pmi, &options, &task_ops, d,
			    &d->log);

	if (!rc)
		return channel_open(&d->channel, loop_uv(d->loop), fd, &ops, d);
	close(fd);
	return rc;
}

int dvmd_start_zygote(struct dvmd *d)
{
	int ends[2], pmi[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pmi) < 0) {
		rc = -errno;
		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	d->process = fork();
	if (!d->process)
		become_zygote(d, ends[1], pmi[1]);
	rc = d->process < 0 ? -errno : 0;
	close(ends[1]);
	close(pmi[1]);
	rlimits_raise(&(struct rlimit){ 0 }); /* each rank's connection is one */
	d->pmi = rc ? -1 : fcntl(pmi[0], F_DUPFD_CLOEXEC, 0);
	if (!rc)
		return listen_to_zygote(d, ends[0], pmi[0]);
	close(ends[0]);
	close(pmi[0]);
	return rc;
}
