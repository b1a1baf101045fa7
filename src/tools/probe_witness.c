/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-probe: stands between a rank and its PMI server, whichever that is, and sees what
 * is spoken. The pmi2x extension is off meanwhile: descriptors are not passed on.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libutil/decimal.h"
#include "tools/probe.h"
#include "tools/probe_mpi.h"
#include "tools/probe_process.h"

#define HEAD_MAX 64 /* bytes: enough to know a first request */

struct witness {
	int server;          /* the connection that this process was given */
	int program;         /* the one that it has made; -1: closed */
	int ended;           /* pidfd of the program; -1: not on this kernel */
	char head[HEAD_MAX]; /* the first bytes of the program's output */
	size_t len;
};

static bool write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static void keep_head(struct witness *w, const char *data, size_t len)
{
	if (len > sizeof(w->head) - w->len)
		len = sizeof(w->head) - w->len;
	memcpy(w->head + w->len, data, len);
	w->len += len;
}

/* Read and write once. False: one of the two sides has closed. */
static bool pass_on(struct witness *w, int from, int to)
{
	char data[65536];
	ssize_t n = read(from, data, sizeof(data));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	if (from == w->program)
		keep_head(w, data, (size_t)n);
	return write_all(to, data, (size_t)n);
}

static void close_program(struct witness *w)
{
	close(w->program);
	w->program = -1;
}

/*
 * Until the program has closed its end, or has ended: what it has started may hold that
 * end open.
 */
static void relay(struct witness *w)
{
	while (w->program >= 0) {
		struct pollfd fds[] = { { w->program, POLLIN, 0 },
					{ w->server, POLLIN, 0 },
					{ w->ended, POLLIN, 0 } };

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents && !pass_on(w, w->program, w->server))
			close_program(w);
		else if (fds[1].revents && !pass_on(w, w->server, w->program))
			close_program(w);
		else if (!fds[0].revents && !fds[1].revents)
			close_program(w);
	}
}

/* The first line of both asks for a version: cmd=init pmi_version=2 ... */
static const char *spoken(const struct witness *w)
{
	static const char FIRST[] = "cmd=init", VERSION2[] = "pmi_version=2";

	if (!w->len)
		return PROBE_SPOKE_NOTHING;
	if (w->len < strlen(FIRST) || memcmp(w->head, FIRST, strlen(FIRST)))
		return PROBE_SPOKE_OTHER;
	return memmem(w->head, w->len, VERSION2, strlen(VERSION2)) ?
		       PROBE_SPOKE_PMI2 :
		       PROBE_SPOKE_PMI1;
}

static void run_program(struct witness *w, int end, char *const argv[])
{
	char number[16];

	close(w->program);
	close(w->server);
	snprintf(number, sizeof(number), "%d", end);
	setenv("PMI_FD", number, 1);
	setenv("PMI2X_DISABLE", "1", 1);
	execvp(argv[0], argv);
	fprintf(stderr, "pmi2x-probe: %s: %s\n", argv[0], strerror(errno));
	_exit(PROBE_NOT_STARTED);
}

static int watch(struct witness *w, char *const argv[])
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || (pid = fork()) < 0) {
		perror("pmi2x-probe");
		return PROBE_NOT_STARTED;
	}
	w->program = ends[0];
	if (pid == 0)
		run_program(w, ends[1], argv);
	close(ends[1]);
	w->ended = (int)syscall(SYS_pidfd_open, pid, 0);
	relay(w);
	return probe_process_wait(pid);
}

int probe_witness(char *const argv[])
{
	const char *text = getenv("PMI_FD");
	struct witness w = { .program = -1 };
	uint32_t fd;
	int code;

	if (!argv[0])
		return PROBE_USAGE;
	if (!text || !decimal_u32(text, 0, INT32_MAX, &fd)) {
		fputs("pmi2x-probe: the launcher has set no PMI_FD: is it srun --mpi=pmi2x?\n",
		      stderr);
		return PROBE_NO_PMI;
	}
	w.server = (int)fd;
	code = watch(&w, argv);
	/* Whatever the program wrote last: a line of its own. */
	printf("\n" PROBE_SPOKE "%s\n", spoken(&w));
	return code;
}
