/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of ranks, in /proc. The filter of the agent lets it list no directory: descriptors
 * are tried by their numbers.
 */
#include "agent/step/torch_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/step/ranks.h"
#include "libpmi/status.h"
#include "libutil/array.h"

#define LINE_MAX_BYTES 512    /* of /proc/net/tcp6 */
#define CONNECTED 1           /* a state in it */
#define SOCKETS_MAX 65536     /* connections to the port */
#define PROCESSES_MAX 64      /* of a rank */
#define DESCRIPTORS_MAX 4096  /* that are tried of a process */

struct socket {
	unsigned long inode;
	uint16_t port;
};

struct search {
	struct socket *sockets; /* by inode */
	size_t n, room;
	uint16_t to;
	uint32_t rank;
	void (*fn)(void *arg, uint32_t rank, uint16_t from);
	void *arg;
};

/* ---- the kernel's list ---- */

static void take_line(struct search *x, const char *line)
{
	unsigned from, to, state;
	unsigned long inode;

	if (sscanf(line, "%*u: %*32[0-9A-F]:%x %*32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
		   &from, &to, &state, &inode) != 4 ||
	    to != x->to || state != CONNECTED || x->n == SOCKETS_MAX ||
	    array_grow(&x->sockets, x->n, &x->room, sizeof(*x->sockets)))
		return;
	x->sockets[x->n++] = (struct socket){ inode, (uint16_t)from };
}

static void take_list(struct search *x, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_BYTES];

	while (file && fgets(line, sizeof(line), file))
		take_line(x, line);
	if (file)
		fclose(file);
}

static int by_inode(const void *a, const void *b)
{
	const struct socket *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* ---- a rank ---- */

/* How many descriptors the process may have; 0: it has gone. */
static int descriptors_of(pid_t pid)
{
	char path[40], line[LINE_MAX_BYTES];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "FDSize: %d", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count < DESCRIPTORS_MAX ? count : DESCRIPTORS_MAX;
}

/* False: /proc hides the descriptors of the process. */
static bool look_at_descriptor(const struct search *x, pid_t pid, int fd)
{
	char path[48], name[64];
	struct socket key = { 0 };
	const struct socket *found;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	len = readlink(path, name, sizeof(name) - 1);
	if (len < 0)
		return errno != EACCES && errno != EPERM;
	name[len] = '\0';
	if (sscanf(name, "socket:[%lu]", &key.inode) != 1)
		return true;
	found = bsearch(&key, x->sockets, x->n, sizeof(key), by_inode);
	if (found)
		x->fn(x->arg, x->rank, found->port);
	return true;
}

/* Add the children of a process that its first thread has started. Returns how many there are then. */
static size_t add_children(pid_t pid, pid_t *pids, size_t n)
{
	char path[64];
	FILE *file;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	file = fopen(path, "re");
	while (file && n < PROCESSES_MAX && fscanf(file, "%d", &child) == 1)
		pids[n++] = (pid_t)child;
	if (file)
		fclose(file);
	return n;
}

static bool look_at_process(const struct search *x, pid_t pid)
{
	int count = descriptors_of(pid);

	for (int fd = 0; fd < count; fd++)
		if (!look_at_descriptor(x, pid, fd))
			return false;
	return true;
}

static void look_at_rank(const struct search *x, pid_t pid)
{
	pid_t pids[PROCESSES_MAX] = { pid };
	size_t n = 1;

	for (size_t i = 0; i < n; i++) {
		if (!look_at_process(x, pids[i])) {
			x->fn(x->arg, x->rank, STATUS_PORT_HIDDEN);
			return;
		}
		n = add_children(pids[i], pids, n);
	}
}

void torch_ranks_look(const struct service *s, uint16_t port,
		      void (*fn)(void *arg, uint32_t rank, uint16_t from), void *arg)
{
	struct search x = { .to = port, .fn = fn, .arg = arg };
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(s->step->layout, s->step->position, &count);

	take_list(&x, "/proc/net/tcp");
	take_list(&x, "/proc/net/tcp6");
	if (x.n)
		qsort(x.sockets, x.n, sizeof(*x.sockets), by_inode);
	for (uint32_t i = 0; x.n && i < count && i < ranks_count(s); i++) {
		pid_t pid = ranks_pid(s, i);

		x.rank = ranks[i];
		if (pid > 0)
			look_at_rank(&x, pid);
		else
			fn(arg, ranks[i], STATUS_PORT_HIDDEN);
	}
	free(x.sockets);
}
