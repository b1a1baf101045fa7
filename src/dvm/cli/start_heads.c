/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the heads of pmi2x-dvm up: their directories, processes and first words. */
#include "dvm/cli/up.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/cli/dvm.h"
#include "dvm/cli/interrupt.h"
#include "dvm/common/inherited_fds.h"
#include "dvm/common/rundir.h"
#include "libutil/buf.h"

/* A DVM that is being started. */
struct start {
	char name[DVM_PATH_MAX / 2];
	char dir[DVM_PATH_MAX];
	char address[DVM_PATH_MAX]; /* for clients on other nodes; or "" */
	uint32_t member;    /* of several, from 1; 0: it is the only one */
	uint32_t first, nodes; /* of those of the job */
	pid_t head;
	int hold;           /* its words */
	int lock;           /* of the directory, until the head has it */
};

static uint32_t starts(const struct up *u)
{
	return u->dvms ? u->dvms : 1;
}

/* Nodes before those of the DVM of this index. */
static uint32_t nodes_before(const struct up *u, uint32_t index)
{
	uint64_t n = u->dvm_nodes ? (uint64_t)index * u->dvm_nodes :
				    (uint64_t)index * u->nodes / u->dvms;

	return n < u->nodes ? (uint32_t)n : u->nodes;
}

/* ---- starting a head ---- */

/* A head on one machine has no clients on others. */
static void make_address(const struct up *u, struct start *s)
{
	char *slash;

	if (u->local || !dvm_address(s->address, s->name)) {
		*s->address = '\0';
		return;
	}
	slash = strrchr(s->address, '/');
	*slash = '\0';
	(void)mkdir(s->address, 0700); /* without it, the head says so */
	*slash = '/';
}

static int take_dir(const char *dir)
{
	int rc;

	do { /* the last one that ends takes what they are all in with it */
		dvm_make_base();
		rc = place_take(dir);
	} while (rc == -ENOENT);
	return rc;
}

/* False: another DVM has it, and batch joins that. */
static bool make_dir(const struct up *u, struct start *all, uint32_t i)
{
	struct start *s = &all[i];

	dvm_dir(s->dir, s->name);
	s->lock = take_dir(s->dir);
	while (s->lock < 0 && i)
		place_leave(all[--i].dir, false);
	if (s->lock == -EWOULDBLOCK && u->ends)
		return false;
	if (s->lock == -EWOULDBLOCK)
		die("another DVM uses %s: that DVM is starting, or has not ended yet", s->dir);
	if (s->lock < 0)
		die("cannot make %s: %s", s->dir, strerror(-s->lock));
	make_address(u, s);
	return true;
}

static void add_number(struct up *u, const char *option, uint32_t number)
{
	char *text;

	if (asprintf(&text, "%u", number) < 0)
		die("out of memory");
	up_add(u, option, text);
}

/* The whole path of its directory: clients elsewhere are told of it. */
static void add_journal(struct up *u, const struct start *s)
{
	char *here = realpath(".", NULL), *dir;

	if (!u->journal)
		return;
	if (*u->journal != '/' && !here)
		die("the working directory cannot be found: %s", strerror(errno));
	if (asprintf(&dir, s->member ? "%s%s%s/%u" : "%s%s%s", *u->journal == '/' ? "" : here,
		     *u->journal == '/' ? "" : "/", u->journal, s->member) < 0)
		die("out of memory");
	free(here);
	up_add(u, "-J", dir);
}

/* Give the head its part of the nodes of --nodelist. */
static void add_nodes(struct up *u, const struct start *s)
{
	struct buf b;

	if (!u->names)
		return;
	buf_init(&b, SIZE_MAX / 2);
	for (uint32_t i = 0; i < s->nodes; i++)
		if ((i && buf_append(&b, ",", 1)) ||
		    buf_puts(&b, json_string_value(json_array_get(u->names, s->first + i))))
			die("out of memory");
	if (buf_append(&b, "", 1))
		die("out of memory");
	up_add(u, "-V", b.data);
}

static void add_place(struct up *u, const struct start *s)
{
	up_add(u, "-n", s->name);
	up_add(u, "-d", s->dir);
	add_number(u, "-N", s->nodes);
	add_nodes(u, s);
	if (u->local)
		up_add(u, "-l", NULL);
	if (*s->address)
		up_add(u, "-A", s->address);
	if (!s->member)
		return;
	add_number(u, "-r", s->first);
	add_number(u, "-k", s->member);
	add_number(u, "-K", u->dvms);
}

static void become_head(struct up *u, const struct start *s, int hold)
{
	char program[DVM_PATH_MAX + 32], log[DVM_PATH_MAX + 8];
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(program, sizeof(program), "%s/pmi2x-dvm-head", u->own);
	snprintf(log, sizeof(log), "%s/" HEADD_LOG, s->dir);
	u->args[0] = program;
	add_place(u, s);
	add_journal(u, s);
	add_number(u, "-H", (uint32_t)hold);
	add_number(u, "-D", (uint32_t)s->lock);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 ||
	    dup2(fd, 2) < 0) {
		dprintf(hold, "failed cannot write %s: %s\n", log, strerror(errno));
		_exit(126);
	}
	setsid();
	u->args[u->nargs] = NULL;
	execv(program, u->args);
	dprintf(hold, "failed cannot execute %s: %s\n", program, strerror(errno));
	place_leave(s->dir, false);
	_exit(126);
}

static void start_head(struct up *u, struct start *s)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot create a pipe: %s", strerror(errno));
	s->head = interrupt_fork();
	if (s->head < 0)
		die("cannot create a process: %s", strerror(errno));
	if (!s->head) {
		inherited_fds_forbid(STDERR_FILENO + 1);
		fcntl(ends[1], F_SETFD, 0);
		fcntl(s->lock, F_SETFD, 0);
		become_head(u, s, ends[1]);
	}
	close(ends[1]);
	close(s->lock);
	s->hold = ends[0];
}

/* ---- all of them ---- */

static int hold = -1; /* of a DVM that ends with its last client, until there is one */

/* When one cannot be, none is. */
static void __attribute__((noreturn, format(printf, 3, 4)))
give_up(const struct up *u, const struct start *all, const char *fmt, ...)
{
	char why[2 * DVM_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < starts(u); i++)
		if (all[i].head > 0 && (u->dvms || interrupt_number()))
			kill(all[i].head, SIGTERM);
	for (uint32_t i = 0; i < starts(u); i++)
		if (all[i].head > 0)
			waitpid(all[i].head, NULL, 0);
	fprintf(stderr, isatty(STDERR_FILENO) ? "\n" : "");
	for (uint32_t i = 0; i < starts(u); i++)
		dvm_say_log(all[i].dir);
	if (!interrupt_number())
		die("%s", why);
	fprintf(stderr, "pmi2x-dvm: %s\n", why);
	interrupt_die();
}

/* A line of its words. False: it has ended, or a signal has come. */
static bool next_word(const struct start *s, char *line, size_t size)
{
	struct pollfd fds[2] = {
		{ .fd = s->hold, .events = POLLIN },
		{ .fd = interrupt_fd(), .events = POLLIN },
	};
	size_t n = 0;

	while (n < size - 1 && (!n || line[n - 1] != '\n')) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return false;
		if (interrupt_number())
			return false;
		if (fds[0].revents && read(s->hold, line + n, 1) != 1)
			return false;
		n += fds[0].revents != 0;
	}
	line[n - 1] = '\0';
	return true;
}

/* Read the head's messages until it is ready or has failed. */
static void wait_ready(const struct up *u, const struct start *all, const struct start *s)
{
	bool tty = isatty(STDERR_FILENO);
	char line[2048];

	while (next_word(s, line, sizeof(line))) {
		if (!strncmp(line, "up ", 3) && tty)
			fprintf(stderr, "\r%u of %u nodes up",
				s->first + (uint32_t)atoi(line + 3), u->nodes);
		if (!strcmp(line, "ready")) {
			if (!u->ends)
				close(s->hold);
			return;
		}
		if (!strncmp(line, "note ", 5))
			fprintf(stderr, "%spmi2x-dvm: %s\n", tty ? "\n" : "", line + 5);
		if (!strncmp(line, "failed ", 7))
			give_up(u, all, "%s", line + 7);
	}
	if (interrupt_number())
		give_up(u, all, "the DVM %s is not up: up was interrupted", s->name);
	give_up(u, all, "the head of the DVM %s has ended", s->name);
}

static void name_start(const struct up *u, struct start *s, uint32_t index)
{
	s->member = u->dvms ? index + 1 : 0;
	s->first = u->dvms ? nodes_before(u, index) : 0;
	s->nodes = u->dvms ? nodes_before(u, index + 1) - s->first : u->nodes;
	if ((size_t)snprintf(s->name, sizeof(s->name), s->member ? "%s.%u" : "%s", u->name,
			     s->member) >= sizeof(s->name))
		die_usage("the name is too long");
}

bool start_heads(struct up *u)
{
	uint32_t count = starts(u);
	struct start *all = calloc(count, sizeof(*all));
	bool tty = isatty(STDERR_FILENO);

	if (!all)
		die("out of memory");
	for (uint32_t i = 0; i < count; i++) {
		name_start(u, &all[i], i);
		if (!make_dir(u, all, i)) {
			free(all);
			return false;
		}
	}
	interrupt_catch();
	for (uint32_t i = 0; i < count; i++)
		start_head(u, &all[i]);
	for (uint32_t i = 0; i < count; i++)
		wait_ready(u, all, &all[i]);
	fprintf(stderr, tty ? "\n" : "");
	hold = u->ends ? all[0].hold : -1;
	free(all);
	return true;
}

void up_joined(void)
{
	if (hold >= 0)
		close(hold);
	hold = -1;
}
