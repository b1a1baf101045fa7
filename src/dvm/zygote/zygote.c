/* SPDX-License-Identifier: BSD-3-Clause */
/* The program pmi2x-dvm-zygote: zygote.h. */
#include "dvm/zygote/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/common/strays.h"
#include "dvm/zygote/warm.h"
#include "libio/clock.h"
#include "libio/fd.h"
#include "libio/frames.h"
#include "libutil/decimal.h"
#include "supervisor/user_dir.h"

#define OUT_MAX ((size_t)64 << 20) /* bytes of messages of a turn */
#define LATER_MS 5 /* delay of messages for which pmi2x-dvmd does not wait */
#define STRAYS_MS 20  /* between two looks for strays, at least */
#define STRAYS_PART 20 /* ... which take at most this part of the time */
#define LINK_END_MS 1000 /* for the head's answer, each time */
#define SIGNALS 2       /* kinds of signals: SIGCHLD, SIGTERM */
#define PMIX_END_S 10 /* limit of waiting for pmi2x-pmixd, which ends after pmi2x-dvmd */

struct zygote {
	int signals;
	struct resources has;
	struct parts *parts;
	struct held_profile *profiles;
	struct orders orders;
	struct buf out;     /* for pmi2x-dvmd, sent at the end of a turn */
	uint64_t say_ms;    /* ... and not before this time */
	bool reaped;        /* a process, since the last look for strays */
	uint64_t strays_ms; /* time of the next look for strays */
	bool terminated; /* by a signal: ends of ranks are not reported any more */
	bool over;
};

static void say(struct zygote *z, const struct dvm_msg *m)
{
	z->say_ms = 0;
	if (dvm_msg_pack(&z->out, m))
		z->over = true;
}

/* Queue a message for which no process waits: it is sent with the next one, or soon. */
static void say_later(struct zygote *z, const struct dvm_msg *m)
{
	const uint64_t ms = z->out.len ? z->say_ms : clock_ms(CLOCK_MONOTONIC) + LATER_MS;

	say(z, m);
	z->say_ms = ms;
}

/* Milliseconds until the next call; -1: never. */
static int flush(struct zygote *z)
{
	struct payload *frame;
	uint64_t now;

	if (!z->out.len)
		return -1;
	now = z->say_ms ? clock_ms(CLOCK_MONOTONIC) : 0;
	if (now < z->say_ms)
		return (int)(z->say_ms - now);
	frame = frame_whole(FRAME_CONTROL_UP, z->out.data, z->out.len);
	if (!frame || fd_write_all(ZYGOTE_FD, (const char *)frame->data, frame->len))
		z->over = true;
	payload_unref(frame);
	buf_clear(&z->out);
	return -1;
}

/* ---- ends of processes ---- */

static uint64_t us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* The process of a rank has been reaped; `m` has how it ended. */
static void rank_ended(struct zygote *z, pid_t pid, struct dvm_msg *m)
{
	struct dvm_exited *e = &m->exited;

	e->why.data = zygote_exec_failure(pid, e->status, &e->lacks);
	e->why.len = e->why.data ? strlen(e->why.data) : 0;
	parts_ended(z->parts, pid);
	say(z, m);
}

/*
 * A rank's process group ends with the rank; the rank is not reaped yet, so the group's
 * number is no other group's. A process that a rank has left behind may end and leave a
 * group that runs on: the first process of a classic daemon does. strays.h ends that.
 */
static void reap(struct zygote *z, pid_t pid)
{
	struct dvm_msg m = { .type = DVM_EXITED };
	struct dvm_exited *e = &m.exited;
	const bool is_rank = parts_find(z->parts, pid, &e->part, &e->slot);
	struct rusage usage;

	if (is_rank)
		kill(-pid, SIGKILL);
	if (wait4(pid, &e->status, 0, &usage) != pid || !is_rank)
		return;
	e->user_us = us(&usage.ru_utime);
	e->system_us = us(&usage.ru_stime);
	e->peak_kib = (uint64_t)usage.ru_maxrss;
	rank_ended(z, pid, &m);
}

/* A rank that the interpreter has reaped. */
static void take_end(struct zygote *z, const struct warm_message *end)
{
	struct dvm_msg m = { .type = DVM_EXITED };
	struct dvm_exited *e = &m.exited;

	z->reaped = true;
	if (!parts_find(z->parts, end->process, &e->part, &e->slot))
		return;
	e->status = end->status;
	e->user_us = end->user_us;
	e->system_us = end->system_us;
	e->peak_kib = end->peak_kib;
	rank_ended(z, end->process, &m);
}

/* False: there was no signal. */
static bool note_signals(struct zygote *z)
{
	struct signalfd_siginfo infos[SIGNALS]; /* at most one of each */
	ssize_t n = read(z->signals, infos, sizeof(infos));

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*infos); i++)
		z->terminated |= infos[i].ssi_signo == SIGTERM;
	z->over |= z->terminated;
	return n > 0;
}

/*
 * After SIGTERM, report no more ends of ranks: the head takes this node for lost. Slurm may
 * have sent the signal that ended a rank to this process, too: so read signals after an end
 * has shown, and before it is reported. After a signal look for ends again: the end that it
 * caused may not have shown before.
 */
static void take_signals(struct zygote *z)
{
	siginfo_t who;
	bool noted;

	do {
		who.si_pid = 0;
		if (waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT))
			who.si_pid = 0;
		noted = note_signals(z);
		if (z->terminated)
			return;
		if (who.si_pid)
			reap(z, who.si_pid);
		z->reaped |= who.si_pid != 0;
	} while (noted || who.si_pid);
}

/* Signals first: as in take_signals. */
static void take_warm_ends(struct zygote *z)
{
	struct warm_message end;
	bool lost;

	warm_read(z->has.warm);
	(void)note_signals(z);
	if (z->terminated)
		return;
	lost = warm_was_lost(z->has.warm);
	while (warm_next_end(z->has.warm, &end))
		take_end(z, &end);
	end = (struct warm_message){ .status = SIGKILL };
	while (lost && (end.process = parts_vanished(z->parts)))
		take_end(z, &end);
}

/* ---- messages of pmi2x-dvmd ---- */

static void say_processes(struct zygote *z, const struct node_start *what,
			  const struct rank_fds *fds, uint64_t *numbers)
{
	struct dvm_msg m = { .type = DVM_PROCESSES, .processes = { .part = what->part } };
	uint32_t count;

	m.processes.error = zygote_start(z->parts, what, &z->has, fds, numbers, &count);
	m.processes.numbers = (struct dvm_bytes){ numbers, count * sizeof(*numbers) };
	if (m.processes.error)
		say(z, &m);
	else
		say_later(z, &m);
}

/* Handle a message. 0, or -EPROTO or -ENOMEM. */
static int exec(struct zygote *z, const struct dvm_exec *e, const struct rank_fds *fds)
{
	struct node_start what = { .part = e->part, .first = e->first };
	uint64_t *numbers;
	struct dvm_msg m;
	struct cursor c;
	int rc;

	cursor_init(&c, e->launch.data, e->launch.len);
	rc = dvm_msg_unpack(&c, &m);
	what.launch = &m.launch;
	what.profile = profiles_find(z->profiles, e->profile);
	if (rc || m.type != DVM_LAUNCH || !what.profile || what.first >= m.launch.ranks_here)
		return -EPROTO;
	numbers = calloc(m.launch.ranks_here, sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	say_processes(z, &what, fds, numbers);
	free(numbers);
	return 0;
}

static int take_exec(struct zygote *z, const struct dvm_exec *e)
{
	const int out = orders_fd(&z->orders), err = orders_fd(&z->orders);
	struct rank_fds fds = { { out, err }, e->pmi ? orders_fd(&z->orders) : -1 };
	int rc;

	rc = z->over ? 0 : exec(z, e, &fds);
	fd_close(&fds.output[0]);
	fd_close(&fds.output[1]);
	fd_close(&fds.registration);
	return rc;
}

static void take_link(struct zygote *z)
{
	int fd = orders_fd(&z->orders);

	dup3(fd, ZYGOTE_LINK_FD, O_CLOEXEC);
	fd_close(&fd);
}

static int take(void *arg, const struct dvm_msg *m)
{
	struct zygote *z = arg;

	if (z->over && m->type != DVM_HEAD_LINK && m->type != DVM_EXEC)
		return 0;
	switch (m->type) {
	case DVM_PROFILE:
		return profiles_add(&z->profiles, &m->profile);
	case DVM_FORGET:
		profiles_forget(&z->profiles, m->profile.number);
		return 0;
	case DVM_EXEC:
		return take_exec(z, &m->exec);
	case DVM_GIVE_UP:
		parts_give_up(z->parts, m->give_up);
		return 0;
	case DVM_KILL:
		parts_signal(z->parts, m->kill.part, (int)m->kill.number);
		return 0;
	case DVM_HEAD_LINK:
		take_link(z);
		return 0;
	default:
		return -EPROTO;
	}
}

/* Ends first: the number of a process that was reaped may be another's soon. */
static void read_orders(struct zygote *z)
{
	if (z->has.warm)
		take_warm_ends(z);
	if (orders_read(&z->orders, take, z))
		z->over = true;
}

/* ---- life ---- */

/* Remove the files of PMIx: their owner has not, if it was killed. */
static void remove_pmix_files(const struct zygote *z)
{
	if (!*z->has.pmix.dir)
		return;
	alarm(PMIX_END_S); /* this process has nothing else to do */
	user_dir_remove_orphan(z->has.pmix.dir);
}

static bool may_run(void *arg, pid_t process)
{
	struct zygote *z = arg;

	return warm_is(z->has.warm, process) || parts_may_run(z->parts, process);
}

/*
 * Kill stray processes of tasks that have ended. Milliseconds until the next call; -1:
 * never.
 */
static int look_for_strays(struct zygote *z)
{
	uint64_t began, ended;

	if (!z->reaped)
		return -1;
	began = clock_ms(CLOCK_MONOTONIC);
	if (began < z->strays_ms)
		return (int)(z->strays_ms - began);
	z->reaped = false;
	strays_kill_ended(may_run, z);
	ended = clock_ms(CLOCK_MONOTONIC);
	z->strays_ms = ended + STRAYS_MS + STRAYS_PART * (ended - began);
	return -1;
}

static bool daemon_is_gone(void)
{
	struct pollfd daemon = { .fd = ZYGOTE_FD };

	return poll(&daemon, 1, 0) > 0 && (daemon.revents & POLLHUP);
}

/*
 * pmi2x-dvmd has been killed: tell the head over its link, which has no other messages any
 * more.
 */
static void say_gone(struct zygote *z)
{
	static const char message = DVM_GONE;
	struct payload *frame = frame_whole(FRAME_CONTROL_UP, &message, 1);
	struct pollfd link = { ZYGOTE_LINK_FD, POLLOUT, 0 };
	char rest[4096];

	z->over = true;
	while (!orders_read(&z->orders, take, z))
		; /* an order may bring a newer link */
	if (!frame || poll(&link, 1, LINK_END_MS) <= 0 ||
	    send(link.fd, frame->data, frame->len, MSG_NOSIGNAL) < 0)
		return;
	shutdown(link.fd, SHUT_WR);
	link.events = POLLIN; /* unread bytes would reset the connection */
	while (poll(&link, 1, LINK_END_MS) > 0 && recv(link.fd, rest, sizeof(rest), 0) > 0)
		;
}

static void serve(struct zygote *z)
{
	struct pollfd in[] = { { ZYGOTE_FD, POLLIN, 0 }, { z->signals, POLLIN, 0 },
			       { -1, POLLIN, 0 } };

	while (!z->over) {
		int strays, left;

		if (z->has.warm)
			take_warm_ends(z); /* also those that came before an answer */
		strays = look_for_strays(z);
		left = flush(z);
		in[2].fd = warm_fd(z->has.warm);
		if (poll(in, 3, left < 0 || (strays >= 0 && strays < left) ? strays : left) < 0)
			continue;
		if (in[1].revents)
			take_signals(z);
		/* Orders of a daemon that has gone may be old: others may have the tasks. */
		z->over |= (in[0].revents & POLLHUP) != 0;
		if (in[0].revents && !z->over)
			read_orders(z);
	}
	if (strays_kill_all() && daemon_is_gone())
		say_gone(z);
}

static int open_all(struct zygote *z)
{
	sigset_t taken;

	sigemptyset(&taken);
	sigaddset(&taken, SIGCHLD);
	sigaddset(&taken, SIGTERM);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	signal(SIGPIPE, SIG_IGN);
	buf_init(&z->out, OUT_MAX);
	orders_init(&z->orders, ZYGOTE_FD);
	z->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	z->parts = parts_create();
	if (!z->parts)
		return -ENOMEM;
	if (z->signals < 0 || fcntl(ZYGOTE_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ZYGOTE_LINK_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ZYGOTE_LISTENER_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return zygote_exec_init();
}

/*
 * NAME SLOTS GPUS DVM: the node's name; as in pmi2x-dvmd's options; PMIXPORT GDS DIR:
 * struct pmix_offer; CODE: of --preload, or "".
 */
static bool take_arguments(struct resources_options *o, int argc, char **argv)
{
	o->gpus = RESOURCES_GPUS_FOUND;
	return argc == 9 && resources_parse_slots(o, argv[2]) &&
	       (!strcmp(argv[3], "found") ||
		decimal_u32(argv[3], 0, LEDGER_GPUS_MAX, &o->gpus));
}

static void take_pmix(struct pmix_offer *o, char **argv)
{
	o->port = (uint16_t)atoi(argv[0]);
	o->gds = argv[1];
	snprintf(o->dir, sizeof(o->dir), "%s", argv[2]);
}

int main(int argc, char **argv)
{
	static struct zygote z;
	struct resources_options options;
	int rc;

	prctl(PR_SET_NAME, "pmi2x-dvm-zygot", 0, 0, 0);
	if (!take_arguments(&options, argc, argv)) {
		fputs("pmi2x-dvm-zygote: pmi2x-dvmd starts this program; see pmi2x-dvm(1)\n",
		      stderr);
		return 2;
	}
	strays_adopt();
	zygote_limits_init();
	rc = open_all(&z);
	rc = rc ? rc : resources_find(&z.has, &options);
	z.has.node = argv[1];
	z.has.dvm = argv[4];
	take_pmix(&z.has.pmix, argv + 5);
	if (!rc && *argv[8])
		rc = warm_create(&z.has.warm, argv[8], argv[1]);
	if (rc) {
		fprintf(stderr, "pmi2x-dvm-zygote: %s\n", strerror(-rc));
		return 1;
	}
	say(&z, &(struct dvm_msg){ .type = DVM_RESOURCES, .resources = z.has.has });
	serve(&z);
	remove_pmix_files(&z);
	return 0;
}
