/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, makes and removes the cgroups of a program beside a step. */
#include "supervisor/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libio/fd.h"

#define FILE_BYTES_MAX 16   /* of "/cgroup.procs" and the like */
#define PIDS_BYTES_MAX 4096 /* of cgroup.procs, for one round of killing */
#define CPUS_BYTES_MAX 8192 /* of cpuset.cpus */

/* The controllers of version 1 that Slurm uses; first those that get a directory. */
static const char *const controllers[LEAF_DIRS_MAX] = {
	"freezer", "memory", "cpuacct", "cpuset", "devices"
};
enum { FREEZER, MEMORY, CPUACCT };

/* ---- where ---- */

/* The path in a line, "4:cpu,cpuacct:/path", if it is of this controller; else NULL. */
static const char *path_of(const char *line, size_t len, const char *controller)
{
	const char *name = memchr(line, ':', len), *end = line + len;
	size_t want = strlen(controller), n;

	if (!name || !memchr(name + 1, ':', end - name - 1))
		return NULL;
	do {
		name++;
		n = strcspn(name, ",:");
		if (n == want && !memcmp(name, controller, n))
			return strchr(name, ':') + 1;
		name += n;
	} while (*name == ',');
	return NULL;
}

/* The caller's path for a controller, "" of version 2; its length, or 0. */
static size_t find_path(const char *groups, const char *controller,
			const char **path)
{
	for (size_t len; *groups; groups += len + (groups[len] == '\n')) {
		len = strcspn(groups, "\n");
		*path = path_of(groups, len, controller);
		if (*path)
			return len - (*path - groups);
	}
	return 0;
}

/* Length of the path without its last part. */
static size_t above(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len ? len - 1 : 0;
}

/* True: the last part of the path begins with `with`. */
static bool last_begins(const char *path, size_t len, const char *with)
{
	size_t n = above(path, len), want = strlen(with);

	return len > n + 1 + want && !memcmp(path + n + 1, with, want);
}

/* Version 2: how much of .../job_J/step_N/slurm is the step's, or 0. */
static size_t step_length(const char *path, size_t len)
{
	size_t step = above(path, len);

	if (len - step != strlen("/slurm") ||
	    memcmp(path + step, "/slurm", len - step))
		return 0;
	return last_begins(path, step, "step_") ? step : 0;
}

/* Version 1: how much of .../uid_U/job_J, with more or not, is the job's. */
static size_t job_length(const char *path, size_t len)
{
	while (len > 0 && !(last_begins(path, len, "job_") &&
			    last_begins(path, above(path, len), "uid_")))
		len = above(path, len);
	return len;
}

/* Version 1: how much of .../job_J/step_N, with more or not, is the step's. */
static size_t job_part_length(const char *path, size_t len, size_t job)
{
	size_t n = job + (job < len); /* behind the slash */

	while (n < len && path[n] != '/')
		n++;
	return n;
}

/* Mount point, `len` bytes of the path, name. */
static int make_path(char **out, const char *mount, const char *path, size_t len,
		     const char *name)
{
	int n = asprintf(out, "%s%.*s%s", mount, (int)len, path, name);

	if (n < 0) {
		*out = NULL;
		return -ENOMEM;
	}
	return n + FILE_BYTES_MAX > PATH_MAX ? -ENAMETOOLONG : 0;
}

static int add_dir(struct leaf *leaf, const char *mount, const char *path,
		   size_t len, const char *name)
{
	char **at = leaf->dirs;

	while (*at)
		at++;
	return make_path(at, mount, path, len, name);
}

/* Slurm makes directories in `locked` bytes of it while it has a lock there. */
static int add_own_dir(struct leaf *leaf, const char *mount, const char *path,
		       size_t len, const char *name, size_t locked)
{
	leaf->locked[leaf->own++] = locked;
	return add_dir(leaf, mount, path, len, name);
}

static int add_slurms(struct leaf *leaf, const char *root, const char *path,
		      size_t len, const char *name)
{
	struct leaf_dir *at = leaf->slurms;

	while (at->path)
		at++;
	at->locked = strlen(root);
	return make_path(&at->path, root, path, len, name);
}

/* State of the search through version 1. */
struct search {
	struct leaf *leaf;
	enum leaf_kind kind;
	const char *groups, *mount, *step;
	const char *path; /* of the job in the last hierarchy that has it, `job` bytes */
	size_t job;
};

/* `part`: so much of the path is the job's, or the step's in it. */
static int add_hierarchy(const struct search *s, const char *root, size_t part,
			 unsigned int i)
{
	char own[NAME_MAX], slurms[NAME_MAX];
	int rc;

	if (snprintf(own, sizeof(own), "/pmi2x_%s", s->step) >= (int)sizeof(own) ||
	    snprintf(slurms, sizeof(slurms), "/step_%s", s->step) >= (int)sizeof(slurms))
		return -ENAMETOOLONG;
	if (i < LEAF_OWN_MAX)
		rc = add_own_dir(s->leaf, root, s->path, s->job, own, strlen(root));
	else
		rc = add_dir(s->leaf, root, s->path,
			     s->kind == LEAF_CONFINED ? part : 0, "");
	return rc || i == FREEZER ? rc :
	       add_slurms(s->leaf, root, s->path, s->job, slurms);
}

/*
 * slurmstepd is no member of cpuacct, only its tasks are. Slurm names a job's directory
 * alike in all hierarchies.
 */
static bool has_directory(const struct search *s, const char *root)
{
	char dir[PATH_MAX];

	return s->job && snprintf(dir, sizeof(dir), "%s%.*s", root, (int)s->job,
				  s->path) < (int)sizeof(dir) &&
	       !access(dir, F_OK);
}

static int add_version_1(struct search *s, unsigned int i)
{
	char root[PATH_MAX];
	const char *path = NULL;
	size_t len = find_path(s->groups, controllers[i], &path),
	       job = job_length(path, len);

	if (snprintf(root, sizeof(root), "%s/%s", s->mount, controllers[i]) >=
	    (int)sizeof(root))
		return -ENAMETOOLONG;
	if (job) {
		s->path = path;
		s->job = job;
	} else if (i != CPUACCT || !has_directory(s, root)) {
		return 0;
	}
	return add_hierarchy(s, root, job_part_length(path, len, job), i);
}

/* Slurm locks where the jobs are. */
static int add_version_2(struct leaf *leaf, enum leaf_kind kind, const char *mount,
			 const char *path, size_t step)
{
	size_t jobs = above(path, above(path, step));

	leaf->copies_cpuset = kind == LEAF_CONFINED;
	return add_own_dir(leaf, mount, path, step,
			   kind == LEAF_CONFINED ? "/pmi2x-pmixd" : "/pmi2x",
			   strlen(mount) + jobs);
}

/* A slurmstepd is in its job's freezer; in a step's is who runs in a step. */
static bool is_task(const char *groups)
{
	const char *path = NULL;
	size_t len = find_path(groups, "freezer", &path),
	       job = job_length(path, len);

	return job && job != len;
}

int leaf_find(struct leaf *leaf, enum leaf_kind kind, const char *groups,
	      const char *mount, const char *step)
{
	struct search s = { leaf, kind, groups, mount, step, NULL, 0 };
	const char *path = NULL;
	size_t len = find_path(groups, "", &path);
	int rc = 0;

	memset(leaf, 0, sizeof(*leaf));
	len = step_length(path, len);
	if (len)
		return add_version_2(leaf, kind, mount, path, len);
	if (is_task(groups))
		return 0;
	for (unsigned int i = 0; !rc && i < LEAF_DIRS_MAX; i++)
		rc = add_version_1(&s, i);
	return rc;
}

void leaf_free(struct leaf *leaf)
{
	for (char **at = leaf->dirs; *at; at++)
		free(*at);
	for (struct leaf_dir *at = leaf->slurms; at->path; at++)
		free(at->path);
	memset(leaf, 0, sizeof(*leaf));
}

/* ---- making ---- */

/* Bytes of a file of the kernel's, which are terminated; negative errno. */
static int read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	int rc = n < 0 ? -errno : (int)n;

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return rc;
}

/* A site without ConstrainCores has no such file there, or an empty one. */
static int copy_of_user(const char *dir, const char *name)
{
	char path[PATH_MAX], text[CPUS_BYTES_MAX];
	int rc;

	if (snprintf(path, sizeof(path), "%.*s/user/%s", (int)above(dir, strlen(dir)),
		     dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	rc = read_file(path, text, sizeof(text));
	if (rc < 0 || text[0] == '\n' || !text[0])
		return rc < 0 && rc != -ENOENT ? rc : 0;
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return fd_write_text(path, text);
}

int leaf_make(const struct leaf *leaf)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < leaf->own; i++)
		if (mkdir(leaf->dirs[i], 0755) && errno != EEXIST)
			rc = -errno;
	if (!rc && leaf->copies_cpuset) {
		rc = copy_of_user(leaf->dirs[0], "cpuset.cpus");
		rc = rc ? rc : copy_of_user(leaf->dirs[0], "cpuset.mems");
	}
	while (rc && i-- > 0)
		rmdir(leaf->dirs[i]);
	return rc;
}

/* ---- removing ---- */

/* Doubles with each wait. False: there is no more time. */
struct patience {
	unsigned int left_us, next_us;
};

static bool have_patience(struct patience *p)
{
	unsigned int us = p->next_us < p->left_us ? p->next_us : p->left_us;
	struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	p->left_us -= us;
	p->next_us = us * 2;
	if (us)
		nanosleep(&pause, NULL);
	return us > 0;
}

/* Version 2 from Linux 5.14 on: all at once, forks included. */
static bool kill_group(int dir)
{
	int fd = openat(dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "1", 1) == 1;

	if (fd >= 0)
		close(fd);
	return ok;
}

struct pids {
	char text[PIDS_BYTES_MAX];
	const char *next;
};

/* As many as there is room for. */
static void read_pids(int dir, struct pids *p)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, p->text, sizeof(p->text) - 1);

	if (fd >= 0)
		close(fd);
	p->text[n < 0 ? 0 : n] = '\0';
	p->next = p->text;
}

/*
 * Whether there is another one: whole, for a number that was cut off may be another's. 0
 * stands for a process of another namespace, and would mean ourselves.
 */
static bool next_pid(struct pids *p, pid_t *pid)
{
	char *end;

	do {
		*pid = (pid_t)strtol(p->next, &end, 10);
		if (end == p->next || *end != '\n')
			return false;
		p->next = end + 1;
	} while (*pid <= 1);
	return true;
}

static bool is_member(int dir, pid_t pid)
{
	struct pids now;
	pid_t other;

	read_pids(dir, &now);
	while (next_pid(&now, &other))
		if (other == pid)
			return true;
	return false;
}

/*
 * The number may have become another process's. The descriptor is one process's for
 * good: if the number is a member's afterwards, it is that member's or a dead one's.
 */
static void kill_member(int dir, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0) {
		if (errno == ENOSYS)
			kill(pid, SIGKILL);
		return;
	}
	if (is_member(dir, pid))
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	close(fd);
}

static void kill_each(int dir)
{
	struct pids members;
	pid_t pid;

	read_pids(dir, &members);
	while (next_pid(&members, &pid))
		kill_member(dir, pid);
}

static void kill_members(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	if (!kill_group(dir))
		kill_each(dir);
	close(dir);
}

static int remove_dir(const char *path, struct patience *p)
{
	while (rmdir(path)) {
		if (errno != EBUSY)
			return errno == ENOENT ? 0 : -errno;
		kill_members(path);
		if (!have_patience(p))
			return -EBUSY;
	}
	return 0;
}

/* A descriptor of the locked directory, or -1. */
static int lock(const char *path, struct patience *p)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EINTR && !have_patience(p)) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

/*
 * True: the group has no processes, and no groups below it, which a directory's links
 * count. After the last has gone, the kernel may need a moment.
 */
static bool is_empty(const char *path)
{
	char procs[PATH_MAX], text[2];
	struct stat st;

	return !stat(path, &st) && st.st_nlink == 2 &&
	       snprintf(procs, sizeof(procs), "%s/cgroup.procs", path) <
		       (int)sizeof(procs) &&
	       !read_file(procs, text, sizeof(text));
}

static bool remove_if_empty(const char *path, struct patience *p)
{
	while (rmdir(path)) {
		if (errno == ENOENT)
			return true;
		if (errno != EBUSY || !is_empty(path) || !have_patience(p))
			return false;
	}
	return true;
}

/*
 * Removes directories that Slurm would have removed, had the program not been there: up
 * to `n` directories, from the first `len` bytes of the path up, until one is not
 * empty. While a step runs they are not.
 */
static void remove_slurms(const char *dir, size_t len, unsigned int n, size_t locked,
			  struct patience *p)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%.*s", (int)locked, dir);
	fd = lock(path, p);
	if (fd < 0)
		return;
	for (bool gone = true; gone && n > 0; n--, len = above(dir, len)) {
		snprintf(path, sizeof(path), "%.*s", (int)len, dir);
		gone = remove_if_empty(path, p);
	}
	close(fd);
}

/* Two are above its own: the step's and the job's, or the job's and the user's. */
int leaf_remove(const struct leaf *leaf, unsigned int limit_ms)
{
	struct patience p = { limit_ms * 1000, 100 };
	const char *dir;
	int rc = 0, failed;

	for (unsigned int i = 0; i < leaf->own; i++) {
		dir = leaf->dirs[i];
		failed = remove_dir(dir, &p);
		if (!failed)
			remove_slurms(dir, above(dir, strlen(dir)), 2,
				      leaf->locked[i], &p);
		else if (!rc)
			rc = failed;
	}
	for (const struct leaf_dir *d = leaf->slurms; d->path; d++)
		remove_slurms(d->path, strlen(d->path), 3, d->locked, &p);
	return rc;
}
