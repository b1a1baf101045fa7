/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-topology: what it writes into memory becomes a file of slurmstepd's, under its
 * name only when it is complete, and is removed with the step. The program has the
 * user's rights, so nothing that it writes or says is believed but its length, and it
 * never has the file.
 *
 * It lives in the cpuset of the ranks, and where that is version 2's in their cgroup, so
 * that hwloc finds what they may use.
 */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers/topology/topology.h"
#include "libconfine/host_msg.h"
#include "libio/fd.h"

#define LIMIT_MS 60000       /* for hwloc; ranks wait less */
#define PIECE 65536          /* bytes that are copied at once */
#define CGROUP_TEXT_MAX 8192 /* bytes of a /proc/PID/cgroup */
#define WHO_TEXT_MAX 64

/* ---- what is said of it ---- */

static void answer(struct supervisor *s)
{
	const char *path = s->options.topology_path;
	struct host_msg m = { .type = HOST_TOPOLOGY, .code = -ENOENT };

	if (!s->topology.asked)
		return;
	s->topology.asked = false;
	if (s->topology.state == TOPOLOGY_THERE) {
		m.code = 0;
		m.data = path;
		m.len = strlen(path);
	}
	service_send(s, &m);
}

static void end_in(struct supervisor *s, enum topology_state state)
{
	struct topology *h = &s->topology;

	h->state = state;
	child_hang_up(&h->child);
	fd_close(&h->xml);
	if (h->done >= 0)
		(void)eventfd_write(h->done, 1);
	answer(s);
}

static void fail(struct supervisor *s, const char *why)
{
	log_info(s->log, "ranks of node %s get no topology file: %s; each rank reads the topology itself",
		 supervisor_node_name(s), why);
	end_in(s, TOPOLOGY_FAILED);
}

static void fail_with(struct supervisor *s, const char *what, int rc)
{
	char why[SUPERVISOR_WHY_MAX];

	snprintf(why, sizeof(why), "%.300s: %s", what, strerror(-rc));
	fail(s, why);
}

/* ---- the file ---- */

/* The user's process may change it while it is read. */
static int copy(int from, int to)
{
	char piece[PIECE];
	size_t have = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = pread(from, piece, sizeof(piece), (off_t)have)) > 0) {
		have += (size_t)n;
		rc = have > TOPOLOGY_BYTES_MAX ? -EFBIG :
						 fd_write_all(to, piece, (size_t)n);
	}
	if (rc)
		return rc;
	return n < 0 ? -errno : have ? 0 : -ENODATA;
}

/* Locked as long as this process has it: by that others see that it is in use. */
static int fill(int fd, int xml)
{
	int rc = flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : copy(xml, fd);

	return rc || !fchmod(fd, S_IRUSR | S_IRGRP | S_IROTH) ? rc : -errno;
}

/* Nobody sees half of it. Its descriptor, or a negative errno. */
static int make_file(const char *unfinished, const char *path, int xml)
{
	int rc, fd;

	unlink(unfinished); /* of an earlier step of this number, killed */
	fd = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		  S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	rc = fill(fd, xml);
	if (!rc && rename(unfinished, path) < 0)
		rc = -errno;
	if (!rc)
		return fd;
	unlink(unfinished);
	close(fd);
	return rc;
}

static int publish(const char *path, int xml)
{
	char *unfinished;
	int fd;

	if (asprintf(&unfinished, "%s" SUPERVISOR_UNFINISHED, path) < 0)
		return -ENOMEM;
	fd = make_file(unfinished, path, xml);
	free(unfinished);
	return fd;
}

static void on_complete(struct supervisor *s)
{
	char what[SUPERVISOR_WHY_MAX];
	int fd;

	child_become_root();
	fd = publish(s->options.topology_path, s->topology.xml);
	if (fd >= 0) {
		s->topology.file = fd;
		end_in(s, TOPOLOGY_THERE);
		return;
	}
	snprintf(what, sizeof(what), "cannot write %.250s",
		 s->options.topology_path);
	fail_with(s, what, fd);
}

/* ---- where it lives ---- */

/* Read a file of a process of /proc; "" when that cannot be. */
static void read_proc(const char *of, const char *name,
		      char out[CGROUP_TEXT_MAX])
{
	char path[WHO_TEXT_MAX];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", of, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, CGROUP_TEXT_MAX - 1);
		close(fd);
	}
	out[n < 0 ? 0 : n] = '\0';
}

/* A number may have become another process's. */
static bool is_own_child(const char *pid)
{
	char text[CGROUP_TEXT_MAX];
	const char *name_end;
	int parent;

	read_proc(pid, "stat", text);
	name_end = strrchr(text, ')');
	return name_end && sscanf(name_end, ") %*c %d", &parent) == 1 &&
	       parent == getpid();
}

/* The path in the hierarchy that `key` names, up to the end of its line; or NULL. */
static const char *path_in(const char *groups, const char *key, size_t *len)
{
	const char *at = strstr(groups, key);

	if (!at)
		return NULL;
	at += strlen(key);
	*len = strcspn(at, "\n");
	return at;
}

/* The rank's cgroup below `mount`, if slurmstepd is in another one; or NULL. */
static char *other_cgroup(const char *theirs, const char *own, const char *key,
			  const char *mount)
{
	size_t len, own_len;
	const char *at = path_in(theirs, key, &len);
	const char *here = path_in(own, key, &own_len);
	char *dir;

	if (!at || !here || (len == own_len && !memcmp(at, here, len)))
		return NULL;
	return asprintf(&dir, "%s%.*s", mount, (int)len, at) < 0 ? NULL : dir;
}

/* With version 1 of cpusets slurmstepd itself is mostly in the step's. */
static char *cgroup_of_ranks(const struct supervisor *s)
{
	char who[WHO_TEXT_MAX], theirs[CGROUP_TEXT_MAX], own[CGROUP_TEXT_MAX];
	pid_t rank = s->topology.rank;

	if (!rank && s->host.rank_pid)
		rank = s->host.rank_pid(s->host.arg, 0);
	snprintf(who, sizeof(who), "%d", (int)rank);
	if (!rank || geteuid())
		return NULL;
	read_proc(who, "cgroup", theirs);
	read_proc("self", "cgroup", own);
	if (!is_own_child(who))
		return NULL;
	if (strstr(own, ":cpuset:"))
		return other_cgroup(theirs, own, ":cpuset:",
				    LEAF_MOUNT "/cpuset");
	return other_cgroup(theirs, own, "0::", LEAF_MOUNT);
}

/* ---- starting it ---- */

/* Directory of the file, and the cgroup. */
static int execute(struct supervisor *s, int *host)
{
	const char *path = s->options.topology_path;
	char *dir = strndup(path, (size_t)(strrchr(path, '/') - path));
	char *more[] = { dir, cgroup_of_ranks(s), NULL };
	int *const fds[] = { &s->topology.xml, host };
	struct child_program p = launch_program(s, s->options.topology_program,
						"pmi2x-topology");
	int rc;

	p.more = more;
	p.fds = fds;
	p.nfds = sizeof(fds) / sizeof(*fds);
	rc = dir ? child_start(&s->topology.child, &p) : -ENOMEM;
	free(more[1]);
	free(dir);
	return rc;
}

static int start(struct supervisor *s)
{
	int rc, host = -1;

	s->topology.xml = memfd_create("pmi2x-topology", MFD_CLOEXEC);
	if (s->topology.xml < 0)
		return -errno;
	child_become_root();
	rc = child_connect(&s->topology.child, &host);
	rc = rc ? rc : execute(s, &host);
	fd_close(&host);
	return rc;
}

void topology_begin(struct supervisor *s)
{
	struct topology *h = &s->topology;
	int rc;

	if (h->state != TOPOLOGY_NONE)
		return;
	h->state = TOPOLOGY_RUNNING;
	h->limit = supervisor_now() + LIMIT_MS;
	rc = start(s);
	if (rc)
		fail_with(s, "pmi2x-topology cannot be started", rc);
}

void topology_asked(struct supervisor *s)
{
	s->topology.asked = true;
	if (s->options.topology != TOPOLOGY_START_NEVER)
		topology_begin(s);
	if (s->topology.state != TOPOLOGY_RUNNING)
		answer(s);
}

void topology_met_rank(struct supervisor *s, int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (s->topology.rank || s->options.topology == TOPOLOGY_START_NEVER ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		return;
	s->topology.rank = who.pid;
	if (s->options.topology == TOPOLOGY_START_RANKS)
		topology_begin(s);
}

/* ---- what it says ---- */

static void fail_as_said(struct supervisor *s, const struct host_msg *m)
{
	char why[TOPOLOGY_WHY_MAX];

	child_text(why, sizeof(why), m);
	fail(s, why);
}

static void take_message(struct supervisor *s, const struct host_msg *m)
{
	char why[TOPOLOGY_WHY_MAX];

	switch (m->type) {
	case HOST_READY:
		break;
	case HOST_END:
		on_complete(s);
		break;
	case HOST_KILL:
		fail_as_said(s, m);
		break;
	case HOST_CRASHED:
		snprintf(why, sizeof(why), "pmi2x-topology crashed: signal %u",
			 m->number);
		fail(s, why);
		break;
	default:
		fail(s, "pmi2x-topology sent an invalid message");
	}
}

/* Until it has left slurmstepd's cgroup it is killed with the step. */
static void died(struct supervisor *s)
{
	if (s->service.killed || service_step_ends_here(s))
		end_in(s, TOPOLOGY_FAILED);
	else
		fail(s, "pmi2x-topology was killed (by the user, or for lack of memory)");
}

void topology_event(struct supervisor *s)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;

	switch (child_receive(&s->topology.child, room, &m)) {
	case 0:
		break;
	case 1:
		take_message(s, &m);
		break;
	case -EPIPE:
		died(s);
		break;
	default:
		fail(s, "pmi2x-topology sent an invalid message");
	}
}

/* ---- its end ---- */

int topology_left_ms(const struct supervisor *s)
{
	const struct topology *h = &s->topology;
	uint64_t now = supervisor_now();

	if (h->state != TOPOLOGY_RUNNING)
		return -1;
	return h->limit > now ? (int)(h->limit - now) : 0;
}

void topology_check(struct supervisor *s)
{
	if (topology_left_ms(s))
		return;
	child_kill(&s->topology.child);
	fail(s, "killed pmi2x-topology: it took longer than a minute");
}

int topology_open(struct supervisor *s)
{
	struct topology *h = &s->topology;

	h->child = CHILD_NONE;
	h->xml = h->file = h->done = -1;
	if (s->options.topology != TOPOLOGY_START_RANKS)
		return 0;
	h->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return h->done < 0 ? -errno : 0;
}

void topology_close(struct supervisor *s)
{
	struct topology *h = &s->topology;

	child_kill(&h->child);
	child_forget(&h->child);
	if (h->file >= 0)
		unlink(s->options.topology_path);
	fd_close(&h->file);
	child_hang_up(&h->child);
	fd_close(&h->xml);
	fd_close(&h->done);
}

void topology_abandon(const struct supervisor *s)
{
	child_kill(&s->topology.child);
	if (s->topology.file >= 0)
		unlink(s->options.topology_path);
}

const char *supervisor_topology_file(const struct supervisor *s, int ms)
{
	return s->topology.done >= 0 && supervisor_wait_event(s->topology.done, ms) &&
			       !access(s->options.topology_path, R_OK) ?
		       s->options.topology_path : NULL;
}
