/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvmd: the signals with which Slurm ends a step.
 *
 * Slurm sends them to all processes, in any order. So this process looks for them before it
 * handles an end of a rank, and the node doubts ends after a SIGCONT (node.h). SIGTERM ends
 * this process, as it would without this file: the zygote kills the ranks.
 */
#include "dvm/node/dvmd.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "libio/fd.h"

__attribute__((noreturn))
static void die(void)
{
	sigset_t terminate;

	signal(SIGTERM, SIG_DFL);
	sigemptyset(&terminate);
	sigaddset(&terminate, SIGTERM);
	raise(SIGTERM);
	sigprocmask(SIG_UNBLOCK, &terminate, NULL);
	_exit(1);
}

void dvmd_take_signals(struct dvmd *d)
{
	struct signalfd_siginfo info;

	while (read(d->signals, &info, sizeof(info)) > 0) {
		if (info.ssi_signo == SIGTERM)
			die();
		dvm_node_continued(d->node, dvmd_now());
	}
}

static void on_signals(uv_poll_t *poll, int status, int events)
{
	dvmd_take_signals(poll->data);
}

int dvmd_open_signals(struct dvmd *d)
{
	sigset_t taken;
	int rc;

	sigemptyset(&taken);
	sigaddset(&taken, SIGCONT);
	sigaddset(&taken, SIGTERM);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	d->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signals < 0)
		return -errno;
	rc = uv_poll_init(loop_uv(d->loop), &d->signalled, d->signals);
	d->signalled.data = d;
	return rc ? rc : uv_poll_start(&d->signalled, UV_READABLE, on_signals);
}

void dvmd_close_signals(struct dvmd *d)
{
	if (d->signalled.type != UV_UNKNOWN_HANDLE &&
	    !uv_is_closing((uv_handle_t *)&d->signalled))
		uv_close((uv_handle_t *)&d->signalled, NULL);
	fd_close(&d->signals);
}
