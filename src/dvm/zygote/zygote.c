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
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utlist.h>

#include "dvm/common/strays.h"
#include "libio/attach_fds.h"
#include "libio/clock.h"
#include "libio/fd.h"
#include "libio/frames.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"
#include "supervisor/user_dir.h"

#define EVENTS 64
#define STRAYS_MS 20  /* between two looks for strays, at least */
#define STRAYS_PART 20 /* ... and what they cost at most: this part of the time */
#define LINK_END_MS 1000 /* for the head's answer, each time */
#define PMIX_END_S 10 /* for pmi2x-pmixd, which ends when pmi2x-dvmd has been killed */
/* Values of epoll events of others than outputs: no number of a part is so large. */
#define EVENT_HEAD UINT64_MAX
#define EVENT_SIGNAL (UINT64_MAX - 1)

struct answer {
	uint32_t part, count;
	int error;
	struct answer *prev, *next;
	uint64_t processes[];
};

struct zygote {
	int epoll, signals;
	struct dvm_node *node;
	struct outputs *outputs;
	struct resources has;
	struct parts *parts;
	struct answer *answers; /* for the node: what has been started */
	int registration; /* of the part that is being started; -1 */
	struct frame_reader reader;
	bool reaped;        /* something, since strays were looked for */
	uint64_t strays_ms; /* when they may be looked for again */
	bool terminated; /* by a signal: what its ranks do is not told any more */
	bool over;
};

static struct dvm_time now(void)
{
	return (struct dvm_time){
		.wall_ns = (uint64_t)clock_ns(CLOCK_REALTIME),
		.ms = clock_ms(CLOCK_MONOTONIC),
	};
}

/* ---- operations of the node ---- */

static void on_send(void *arg, const void *data, size_t len)
{
	struct zygote *z = arg;
	struct payload *frame = frame_whole(FRAME_CONTROL_UP, data, len);

	if (!frame || fd_write_all(ZYGOTE_FD, (const char *)frame->data, frame->len))
		z->over = true;
	payload_unref(frame);
}

static int on_open_output(void *arg, uint32_t part)
{
	struct zygote *z = arg;

	return outputs_open(z->outputs, part);
}

static void on_close_output(void *arg, uint32_t part)
{
	struct zygote *z = arg;

	outputs_close(z->outputs, part);
}

static void on_limit_output(void *arg, uint32_t part, size_t bytes)
{
	struct zygote *z = arg;

	outputs_limit(z->outputs, part, bytes);
}

static int on_open_pmi(void *arg, uint32_t part, const struct dvm_launch *l)
{
	struct zygote *z = arg;

	fd_close(&z->registration);
	return zygote_pmi_open(part, l, &z->registration);
}

static void on_pmi_rank_ended(void *arg, uint32_t part, uint32_t slot,
			      int32_t status)
{
	zygote_pmi_rank_ended(part, slot, status);
}

static void on_close_pmi(void *arg, uint32_t part)
{
	zygote_pmi_close(part);
}

static void on_all_started(void *arg, uint32_t part)
{
	struct zygote *z = arg;

	outputs_started(z->outputs, part);
	fd_close(&z->registration);
}

static void on_start(void *arg, const struct node_start *what)
{
	const size_t most = what->launch->ranks_here;
	struct rank_fds fds = { .registration = -1 };
	struct zygote *z = arg;
	struct answer *a = malloc(sizeof(*a) + most * sizeof(*a->processes));

	if (!a) {
		z->over = true;
		return;
	}
	outputs_of(z->outputs, what->part, fds.output);
	if (node_wants_pmi(what->launch))
		fds.registration = z->registration;
	a->part = what->part;
	a->error = zygote_start(z->parts, what, &z->has, &fds, a->processes, &a->count);
	DL_APPEND(z->answers, a);
}

static void on_give_up(void *arg, uint32_t part)
{
	struct zygote *z = arg;

	parts_give_up(z->parts, part);
}

static void answer_starts(struct zygote *z)
{
	struct answer *a, *next;

	DL_FOREACH_SAFE(z->answers, a, next) {
		DL_DELETE(z->answers, a);
		dvm_node_started(z->node, a->part, a->processes, a->count, a->error, now());
		free(a);
	}
}

static void on_ask_pmi(void *arg, const struct dvm_pmi_ask *ask)
{
	zygote_pmi_ask(ask);
}

/* proc(5): "PID (NAME) STATE", and 11 fields on the time in user and kernel mode. */
static void on_look(void *arg, uint64_t process, struct dvm_rank *out)
{
	char path[64], line[1024], *end;
	unsigned long user = 0, kernel = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)process);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
		sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		       &out->state, &user, &kernel);
	if (file)
		fclose(file);
	out->cpu_us = (user + kernel) * 1000000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

static void on_signal(void *arg, uint32_t part, int number)
{
	struct zygote *z = arg;

	parts_signal(z->parts, part, number);
}

static void on_leave(void *arg)
{
	struct zygote *z = arg;

	z->over = true;
}

/* ---- ends of processes ---- */

static uint64_t us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/*
 * A rank's process group ends with the rank; the rank is not reaped yet, so the group's
 * number is no other group's. A process that a rank has left behind may end and leave a
 * group that runs on: the first process of a classic daemon does. strays.h ends that.
 */
static void reap(struct zygote *z, pid_t pid)
{
	struct node_end end = { 0 };
	uint32_t part, slot;
	struct rusage usage;
	const bool is_rank = parts_find(z->parts, pid, &part, &slot);
	int status;

	if (is_rank)
		kill(-pid, SIGKILL);
	if (wait4(pid, &status, 0, &usage) != pid)
		return;
	end.status = status;
	end.user_us = us(&usage.ru_utime);
	end.system_us = us(&usage.ru_stime);
	end.peak_kib = (uint64_t)usage.ru_maxrss;
	end.why = zygote_exec_failure(pid, status, &end.lacks);
	if (!is_rank)
		return;
	answer_starts(z); /* that comes first */
	parts_ended(z->parts, pid);
	dvm_node_ended(z->node, part, slot, &end, now());
}

static void note_signals(struct zygote *z)
{
	struct signalfd_siginfo info;

	while (read(z->signals, &info, sizeof(info)) > 0) {
		z->terminated |= info.ssi_signo == SIGTERM;
		if (info.ssi_signo == SIGCONT)
			dvm_node_continued(z->node, now());
	}
	z->over |= z->terminated;
}

/*
 * After SIGTERM, report no more ends of ranks: the head takes this node for lost. A rank
 * whose end shows may have had a signal of Slurm's that this process had at the same time.
 */
static void take_signals(struct zygote *z)
{
	siginfo_t who;

	for (;;) {
		who.si_pid = 0;
		if (waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT))
			who.si_pid = 0;
		note_signals(z);
		if (z->terminated || !who.si_pid)
			return;
		reap(z, who.si_pid);
		z->reaped = true;
	}
}

/* ---- what the head says ---- */

static int on_frame(void *arg, enum frame_type type, struct payload *body)
{
	struct zygote *z = arg;

	return dvm_node_input(z->node, body->data, body->len, now());
}

static void read_head(struct zygote *z)
{
	static const struct frame_ops ops = { .frame = on_frame };
	void *at;
	size_t room = frame_reader_room(&z->reader, &at);
	ssize_t n = recv(ZYGOTE_FD, at, room, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || frame_reader_input(&z->reader, (size_t)n, &ops, z))
		z->over = true;
}

/* ---- life ---- */

/* The maker of the files has removed them, unless it was killed. */
static void remove_pmix_files(const struct zygote *z)
{
	if (!*z->has.pmix.dir)
		return;
	alarm(PMIX_END_S); /* this process has nothing else to do */
	user_dir_remove_orphan(z->has.pmix.dir);
}

/*
 * Kills the rest of tasks that have ended. Milliseconds until it is to be called; -1:
 * never.
 */
static int look_for_strays(struct zygote *z)
{
	uint64_t began = now().ms, ended;

	if (!z->reaped)
		return -1;
	if (began < z->strays_ms)
		return (int)(z->strays_ms - began);
	z->reaped = false;
	strays_kill_ended(parts_may_run, z->parts);
	ended = now().ms;
	z->strays_ms = ended + STRAYS_MS + STRAYS_PART * (ended - began);
	return -1;
}

/* That to the head that came last. */
static void take_link(void)
{
	union attached_fds control;
	ssize_t n;
	char byte;

	do {
		struct iovec iov = { &byte, 1 };
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes),
		};
		int fd;

		n = recvmsg(ZYGOTE_PMI_FD, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		fd = n > 0 ? passed_fd(&msg) : -1;
		if (fd >= 0) {
			dup2(fd, ZYGOTE_LINK_FD);
			close(fd);
		}
	} while (n > 0);
}

/* pmi2x-dvmd has been killed, and the head is told by its link: no more comes over that. */
static void say_gone(void)
{
	static const char message = DVM_GONE;
	struct payload *frame = frame_whole(FRAME_CONTROL_UP, &message, 1);
	struct pollfd daemon = { .fd = ZYGOTE_FD }, link = { ZYGOTE_LINK_FD, POLLOUT, 0 };
	char rest[4096];

	take_link();
	if (!frame || poll(&daemon, 1, 0) <= 0 || !(daemon.revents & POLLHUP) ||
	    poll(&link, 1, LINK_END_MS) <= 0 ||
	    send(ZYGOTE_LINK_FD, frame->data, frame->len, MSG_NOSIGNAL) < 0)
		return;
	shutdown(ZYGOTE_LINK_FD, SHUT_WR);
	link.events = POLLIN; /* what is not read would reset the connection */
	while (poll(&link, 1, LINK_END_MS) > 0 && recv(ZYGOTE_LINK_FD, rest, sizeof(rest), 0) > 0)
		;
}

/* The work after each turn. Milliseconds until there is more to do; -1: none. */
static int turn(struct zygote *z)
{
	int left, strays;

	left = dvm_node_turn(z->node, now());
	while (z->answers) {
		answer_starts(z);
		left = dvm_node_turn(z->node, now());
	}
	strays = look_for_strays(z);
	return left < 0 || (strays >= 0 && strays < left) ? strays : left;
}

static void handle(struct zygote *z, uint64_t data)
{
	if (data == EVENT_HEAD)
		read_head(z);
	else if (data == EVENT_SIGNAL)
		take_signals(z);
	else
		outputs_event(z->outputs, data);
}

static void serve(struct zygote *z)
{
	struct epoll_event events[EVENTS];
	int n, left = turn(z);

	while (!z->over) {
		n = epoll_wait(z->epoll, events, EVENTS, left);
		for (int i = 0; i < n; i++)
			handle(z, events[i].data.u64);
		if (!z->terminated)
			left = turn(z);
	}
	if (strays_kill_all())
		say_gone();
}

static int watch(struct zygote *z, int fd, uint64_t data)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = data };

	return epoll_ctl(z->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_all(struct zygote *z)
{
	static const struct dvm_node_ops ops = {
		.send = on_send,
		.open_output = on_open_output,
		.limit_output = on_limit_output,
		.close_output = on_close_output,
		.all_started = on_all_started,
		.open_pmi = on_open_pmi,
		.pmi_rank_ended = on_pmi_rank_ended,
		.close_pmi = on_close_pmi,
		.start = on_start,
		.give_up = on_give_up,
		.look = on_look,
		.ask_pmi = on_ask_pmi,
		.signal = on_signal,
		.leave = on_leave,
	};
	sigset_t taken;
	int rc;

	sigemptyset(&taken);
	sigaddset(&taken, SIGCHLD);
	sigaddset(&taken, SIGCONT);
	sigaddset(&taken, SIGTERM);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	signal(SIGPIPE, SIG_IGN);
	z->epoll = epoll_create1(EPOLL_CLOEXEC);
	z->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (z->epoll < 0 || z->signals < 0 ||
	    fcntl(ZYGOTE_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ZYGOTE_PMI_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ZYGOTE_LINK_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ZYGOTE_LISTENER_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	frame_reader_init(&z->reader);
	rc = watch(z, ZYGOTE_FD, EVENT_HEAD);
	rc = rc ? rc : watch(z, z->signals, EVENT_SIGNAL);
	rc = rc ? rc : outputs_create(&z->outputs, z->epoll, &z->node);
	rc = rc ? rc : zygote_exec_init();
	z->parts = parts_create();
	if (!z->parts)
		rc = -ENOMEM;
	return rc ? rc : dvm_node_create(&z->node, &ops, z);
}

static void say_hello(struct zygote *z, uint16_t port)
{
	const struct dvm_register r = {
		.version = DVM_VERSION,
		.has = z->has.has,
		.port = port,
		.name = { z->has.node, strlen(z->has.node) },
		.build = { PMI2X_BUILD, strlen(PMI2X_BUILD) },
	};

	dvm_node_register(z->node, &r);
}

/*
 * NAME SLOTS GPUS DVM PORT: the node's name; as pmi2x-dvmd was told; where that listens;
 * PMIXPORT GDS DIR: struct pmix_offer.
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
	static struct zygote z = { .registration = -1 };
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
	if (rc) {
		fprintf(stderr, "pmi2x-dvm-zygote: %s\n", strerror(-rc));
		return 1;
	}
	z.has.node = argv[1];
	z.has.dvm = argv[4];
	take_pmix(&z.has.pmix, argv + 6);
	say_hello(&z, (uint16_t)atoi(argv[5]));
	serve(&z);
	remove_pmix_files(&z);
	return 0;
}
