/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a process that confines itself, and hears its reports. */
#include "confined.h"

#include "unit.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "libconfine/filter.h"

void confined_report(int rc, const char *why)
{
	struct report r = { .rc = rc };

	snprintf(r.why, sizeof(r.why), "%s", why);
	if (write(REPORT, &r, sizeof(r)) < 0)
		_exit(1);
}

static void on_denied(int number, siginfo_t *info, void *context)
{
	confined_report(DENIED + info->si_syscall, "denied");
	_exit(0);
}

const struct confine_options as_nobody = { .uid = NOBODY,
						  .gid = GROUP,
						  .fds = FDS };

/* In the child: whatever slurmd may hand on. */
static void inherit_mess(int to_report, int to_hold)
{
	const gid_t groups[] = { 0, 27 };
	sigset_t all;

	dup2(to_report, REPORT);
	dup2(to_hold, HOLD);
	dup2(HOLD, FDS);
	dup2(HOLD, 200);
	alarm(PATIENCE_SECONDS);
	if (geteuid() == 0)
		setgroups(2, groups);
	umask(0);
	setenv("LD_PRELOAD", "/nowhere", 1);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(GROUP, GROUP, GROUP) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
}

static _Noreturn void run(const struct confine_options *o, void (*then)(void))
{
	struct report r = { .why = "" };

	r.rc = confine_begin(o, r.why);
	if (!r.rc && !o->traced) {
		r.rc = filter_install(on_denied);
		if (r.rc == -ENOSYS && CONFINE_SANITIZED)
			r.rc = 0;
	}
	confined_report(r.rc, r.why);
	if (then) {
		then();
		confined_report(0, "back");
	}
	if (read(HOLD, &r, 1) < 0)
		_exit(1);
	_exit(0);
}

struct report confined_hear(const struct confined *c)
{
	struct report r = { .rc = -EPIPE };
	ssize_t n = read(c->report, &r, sizeof(r));

	assert_true(n == 0 || n == sizeof(r));
	return r;
}

struct report confined_start(struct confined *c,
			     const struct confine_options *o,
			     void (*first)(void), void (*then)(void))
{
	int reports[2], hold[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    reports),
			 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	c->pid = fork();
	if (c->pid == 0) {
		close(hold[1]);
		close(reports[0]);
		if (first)
			first();
		inherit_mess(reports[1], hold[0]);
		run(o, then);
	}
	close(reports[1]);
	close(hold[0]);
	c->report = reports[0];
	c->hold = hold[1];
	return confined_hear(c);
}

int confined_end(struct confined *c)
{
	int status = -1;

	close(c->hold);
	close(c->report);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	return status;
}

int confined_skip(void)
{
	const char *why = geteuid() ? "only root has rights to give up" : NULL;

	if (getenv("PMI2X_EMULATOR"))
		why = "the emulator has no filter of system calls";
	if (why) {
		print_message("SKIP: %s\n", why);
		return 77;
	}
	return 0;
}
