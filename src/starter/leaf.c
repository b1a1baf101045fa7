/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, makes and removes the cgroups of an agent. */
#include "starter/leaf.h"

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
#include <time.h>
#include <unistd.h>

#define FILE_BYTES_MAX 16   /* of "/cgroup.procs" and the like */
#define PIDS_BYTES_MAX 4096 /* of cgroup.procs, for one round of killing */

/* What Slurm uses of version 1; first those that get a directory. */
static const char *const controllers[LEAF_DIRS_MAX] = {
	"freezer", "memory", "cpuset", "devices", "cpuacct"
};

/* ---- where ---- */

/* Does a line, "4:cpu,cpuacct:/path", tell of this controller? Its path. */
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

/* Does the last part of the path begin so? */
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

/* Mount point, `len` bytes of the path, name. */
static int add_dir(struct leaf *leaf, const char *mount, const char *path,
		   size_t len, const char *name)
{
	char **at = leaf->dirs;
	int n;

	while (*at)
		at++;
	n = asprintf(at, "%s%.*s%s", mount, (int)len, path, name);
	if (n < 0) {
		*at = NULL;
		return -ENOMEM;
	}
	return n + FILE_BYTES_MAX > PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Slurm makes directories in `locked` bytes of it while it has a lock there. */
static int add_own_dir(struct leaf *leaf, const char *mount, const char *path,
		       size_t len, const char *name, size_t locked)
{
	leaf->locked[leaf->own++] = locked;
	return add_dir(leaf, mount, path, len, name);
}

static int add_version_1(struct leaf *leaf, const char *groups,
			 const char *mount, const char *step, unsigned int i)
{
	char root[PATH_MAX], name[NAME_MAX];
	const char *path = NULL;
	size_t len = find_path(groups, controllers[i], &path);

	len = job_length(path, len);
	if (!len)
		return 0;
	if (snprintf(root, sizeof(root), "%s/%s", mount, controllers[i]) >=
		    (int)sizeof(root) ||
	    snprintf(name, sizeof(name), "/pmi2x_%s", step) >=
		    (int)sizeof(name))
		return -ENAMETOOLONG;
	return i < LEAF_OWN_MAX ? add_own_dir(leaf, root, path, len, name,
					      strlen(root)) :
				  add_dir(leaf, root, "", 0, "");
}

/* A slurmstepd is in its job's freezer; in a step's is who runs in a step. */
static bool is_task(const char *groups)
{
	const char *path = NULL;
	size_t len = find_path(groups, "freezer", &path),
	       job = job_length(path, len);

	return job && job != len;
}

int leaf_find(struct leaf *leaf, const char *groups, const char *mount,
	      const char *step)
{
	const char *path = NULL;
	size_t len = find_path(groups, "", &path);
	int rc = 0;

	memset(leaf, 0, sizeof(*leaf));
	len = step_length(path, len);
	if (len) /* Slurm locks where the jobs are */
		return add_own_dir(leaf, mount, path, len, "/pmi2x",
				   strlen(mount) +
					   above(path, above(path, len)));
	if (is_task(groups))
		return 0;
	for (unsigned int i = 0; !rc && i < LEAF_DIRS_MAX; i++)
		rc = add_version_1(leaf, groups, mount, step, i);
	return rc;
}

void leaf_free(struct leaf *leaf)
{
	for (char **at = leaf->dirs; *at; at++)
		free(*at);
	memset(leaf, 0, sizeof(*leaf));
}

/* ---- making ---- */

int leaf_make(const struct leaf *leaf)
{
	unsigned int i;
	int rc;

	for (i = 0; i < leaf->own; i++) {
		if (mkdir(leaf->dirs[i], 0755) && errno != EEXIST) {
			rc = -errno;
			goto unmake;
		}
	}
	return 0;
unmake:
	while (i-- > 0)
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

/* 0 stands for a process of another namespace, and would mean ourselves. */
static void kill_each(int dir)
{
	char text[PIDS_BYTES_MAX], *at = text, *end;
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	long pid;

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	for (; *at; at = end + (*end == '\n')) {
		pid = strtol(at, &end, 10);
		if (end == at)
			return;
		/* A number that was cut off may be another's. */
		if (pid > 1 && *end == '\n')
			kill(pid, SIGKILL);
	}
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
 * Version 1: the memory group of the step itself. Slurm tries once to remove it, and
 * an agent that is being started is in it for a moment. Not the freezer's, to which
 * Slurm comes back.
 */
static void remove_beside(const char *leaf, size_t len)
{
	size_t job = above(leaf, len);
	const char *step = leaf + job + strlen("/pmi2x_");
	char path[PATH_MAX];

	if (!last_begins(leaf, len, "pmi2x_") || strstr(leaf, "/freezer/"))
		return;
	if (snprintf(path, sizeof(path), "%.*s/step_%s", (int)job, leaf, step) <
	    (int)sizeof(path))
		(void)rmdir(path);
}

/*
 * What Slurm would have removed, had the leaf not been there: two directories,
 * the step's and the job's in version 2, the job's and the user's in version 1.
 * While a step runs they are not empty.
 */
static void remove_above(const char *leaf, size_t locked, struct patience *p)
{
	char path[PATH_MAX];
	size_t len = strlen(leaf);
	int fd;

	memcpy(path, leaf, len + 1);
	path[locked] = '\0';
	fd = lock(path, p);
	if (fd < 0)
		return;
	path[locked] = leaf[locked];
	remove_beside(path, len);
	for (int i = 0; i < 2; i++) {
		len = above(path, len);
		path[len] = '\0';
		if (rmdir(path) && errno != ENOENT)
			break;
	}
	close(fd);
}

int leaf_remove(const struct leaf *leaf, unsigned int limit_ms)
{
	struct patience p = { limit_ms * 1000, 100 };
	int rc = 0, failed;

	for (unsigned int i = 0; i < leaf->own; i++) {
		failed = remove_dir(leaf->dirs[i], &p);
		if (!failed)
			remove_above(leaf->dirs[i], leaf->locked[i], &p);
		else if (!rc)
			rc = failed;
	}
	return rc;
}
