/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cgroups an agent gets, and that nothing is left of them. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "starter/leaf.h"

#define PATIENCE_MS 60000 /* then a test has failed */

/* ---- /proc/self/cgroup of a slurmstepd ---- */

#define V1_JOB "/slurm/uid_7/job_5"

static const struct {
	const char *name, *groups;
	unsigned int own;
	const char *dirs[LEAF_DIRS_MAX]; /* after the mount point */
	const char *locked[LEAF_OWN_MAX];
} cases[] = {
	{ "version 2",
	  "0::/system.slice/slurmstepd.scope/job_5/step_3/slurm\n",
	  1,
	  { "/system.slice/slurmstepd.scope/job_5/step_3/pmi2x" },
	  { "/system.slice/slurmstepd.scope" } },
	{ "a job named by what 26.05 calls a SLUID, in a namespace",
	  "0::/s6AB0FFE3VQ/step_3+1/slurm",
	  1,
	  { "/s6AB0FFE3VQ/step_3+1/pmi2x" },
	  { "" } },
	{ "all of version 1, beside an empty version 2",
	  "8:pids:/\n7:cpu,cpuacct:" V1_JOB "/step_3/task_0\n"
	  "6:freezer:" V1_JOB "\n5:devices:" V1_JOB "/step_3\n"
	  "4:memory:" V1_JOB "/step_3\n3:cpuset:" V1_JOB "/step_3\n"
	  "1:name=systemd:/system.slice/slurmd.service\n0::/\n",
	  2,
	  { "/freezer" V1_JOB "/pmi2x_3", "/memory" V1_JOB "/pmi2x_3",
	    "/cpuset", "/devices", "/cpuacct" },
	  { "/freezer", "/memory" } },
	{ "task/cgroup without proctrack/cgroup",
	  "6:freezer:/\n4:memory:" V1_JOB "/step_3\n",
	  1,
	  { "/memory" V1_JOB "/pmi2x_3" },
	  { "/memory" } },
	{ "proctrack/cgroup without task/cgroup",
	  "6:freezer:" V1_JOB "\n4:memory:/\n3:cpuset:/\n",
	  1,
	  { "/freezer" V1_JOB "/pmi2x_3" },
	  { "/freezer" } },
	{ .name = "no cgroup of Slurm, version 2",
	  .groups = "0::/system.slice/slurmd.service\n" },
	{ .name = "no cgroup of Slurm, version 1",
	  .groups = "4:memory:/user.slice\n6:freezer:/\n" },
	{ .name = "a Slurm in a task of another, version 2",
	  .groups = "0::/slurmstepd.scope/job_5/step_3/user/task_0\n" },
	{ .name = "a Slurm in a task of another, version 1",
	  .groups = "6:freezer:" V1_JOB "/step_0\n"
		    "4:memory:" V1_JOB "/step_0/task_0\n" },
	{ .name = "a user's names",
	  .groups = "0::/step_3\n6:freezer:/job_5\n4:memory:/uid_7/job_\n" },
	{ .name = "no text", .groups = "" },
	{ .name = "not such a text",
	  .groups = "job_5/step_3/slurm\n::\n:\n\n4:memory" },
};

static void expect_case(size_t i)
{
	struct leaf leaf;
	char text[PATH_MAX];
	size_t n = 0;

	print_message("%s\n", cases[i].name);
	assert_int_equal(leaf_find(&leaf, cases[i].groups, "/m", "3"), 0);
	assert_int_equal(leaf.own, cases[i].own);
	for (; n < LEAF_DIRS_MAX && cases[i].dirs[n]; n++) {
		snprintf(text, sizeof(text), "/m%s", cases[i].dirs[n]);
		assert_string_equal(leaf.dirs[n], text);
	}
	assert_null(leaf.dirs[n]);
	for (n = 0; n < leaf.own; n++) {
		snprintf(text, sizeof(text), "/m%s", cases[i].locked[n]);
		assert_int_equal(leaf.locked[n], strlen(text));
		assert_memory_equal(leaf.dirs[n], text, strlen(text));
	}
	leaf_free(&leaf);
}

static void the_right_groups_are_found(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_case(i);
}

static void too_long_a_path_is_an_error(void **state)
{
	char *text = malloc(2 * PATH_MAX);
	struct leaf leaf;

	memset(text, 'a', 2 * PATH_MAX);
	memcpy(text, "0::/", 4);
	strcpy(text + PATH_MAX, "/job_1/step_1/slurm\n");
	assert_int_equal(leaf_find(&leaf, text, "/m", "1"), -ENAMETOOLONG);
	leaf_free(&leaf);
	free(text);
}

/* ---- in the kernel's ---- */

/* A job's step in a hierarchy of this machine, as Slurm makes them. */
static const struct site {
	const char *mount, *dir; /* hierarchy, below the mount point */
	const char *line;        /* of slurmstepd, `%s` the test's directory */
	const char *above[2];    /* of the leaf, outermost first */
	const char *slurms[2];   /* what Slurm removes of the step */
	bool once;               /* it tries once, before the leaf goes */
} sites[] = {
	{ "/sys/fs/cgroup", "/freezer", "1:freezer:/%s/uid_7/job_5\n",
	  { "uid_7", "uid_7/job_5" }, { "uid_7/job_5/step_3", NULL }, false },
	{ "/sys/fs/cgroup", "/memory", "1:memory:/%s/uid_7/job_5/step_3\n",
	  { "uid_7", "uid_7/job_5" }, { "uid_7/job_5/step_3", NULL }, true },
	{ "/sys/fs/cgroup/unified", "", "0::/%s/job_5/step_3/slurm\n",
	  { "job_5", "job_5/step_3" },
	  { "job_5/step_3/slurm", "job_5/step_3/user" }, false },
	{ "/sys/fs/cgroup", "", "0::/%s/job_5/step_3/slurm\n",
	  { "job_5", "job_5/step_3" },
	  { "job_5/step_3/slurm", "job_5/step_3/user" }, false },
};

struct step {
	const struct site *site;
	char top[64]; /* the test's directory */
	struct leaf leaf;
};

static const char *path_in(const struct step *s, const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s/%s/%s", s->site->mount,
		 s->site->dir, s->top, name);
	return path;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void make(const struct step *s, const char *name)
{
	assert_int_equal(mkdir(path_in(s, name), 0755), 0);
}

/* False: there is no such hierarchy, or it is not ours. */
static bool begin(struct step *s, const struct site *site)
{
	char line[256];

	memset(s, 0, sizeof(*s));
	s->site = site;
	snprintf(s->top, sizeof(s->top), "pmi2x-leaf-test-%d", (int)getpid());
	snprintf(line, sizeof(line), "%s%s/cgroup.procs", site->mount,
		 site->dir);
	if (!is_there(line) || mkdir(path_in(s, ""), 0755))
		return false;
	for (int i = 0; i < 2; i++)
		make(s, site->above[i]);
	for (int i = 0; i < 2 && site->slurms[i]; i++)
		make(s, site->slurms[i]);
	snprintf(line, sizeof(line), site->line, s->top);
	assert_int_equal(leaf_find(&s->leaf, line, site->mount, "3"), 0);
	assert_int_equal(s->leaf.own, 1);
	return true;
}

static void slurm_removes(const struct step *s)
{
	for (int i = 0; i < 2 && s->site->slurms[i]; i++)
		assert_int_equal(rmdir(path_in(s, s->site->slurms[i])), 0);
}

static void end(struct step *s)
{
	leaf_free(&s->leaf);
	assert_int_equal(rmdir(path_in(s, "")), 0);
}

/* A process in the leaf, which does not go by itself. */
static pid_t start_member(const struct step *s)
{
	char path[PATH_MAX];
	int ready[2], fd;
	pid_t pid;
	char byte = 0;

	snprintf(path, sizeof(path), "%s/cgroup.procs", s->leaf.dirs[0]);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		alarm(2 * PATIENCE_MS / 1000); /* should the test be killed */
		signal(SIGTERM, SIG_IGN);
		fd = open(path, O_WRONLY);
		byte = fd >= 0 && write(fd, "0", 1) == 1;
		if (write(ready[1], &byte, 1) == 1 && byte)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(byte, 1);
	return pid;
}

/* Slurm removes what is its own after us. */
static void end_before_slurm(const struct site *site, unsigned int *tried)
{
	struct step s;
	pid_t pid;
	int status;

	if (site->once || !begin(&s, site))
		return;
	++*tried;
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0); /* none yet */
	assert_int_equal(leaf_make(&s.leaf), 0);
	assert_int_equal(leaf_make(&s.leaf), 0); /* one that was left */
	pid = start_member(&s);
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_false(is_there(s.leaf.dirs[0]));
	assert_true(is_there(path_in(&s, site->slurms[0])));
	slurm_removes(&s);
	rmdir(path_in(&s, site->above[1]));
	rmdir(path_in(&s, site->above[0]));
	end(&s);
}

/* It has, and what was above the leaf it could not. */
static void end_after_slurm(const struct site *site)
{
	struct step s;

	if (!begin(&s, site))
		return;
	assert_int_equal(leaf_make(&s.leaf), 0);
	if (!site->once) /* else it has failed: the agent was there */
		slurm_removes(&s);
	assert_int_equal(rmdir(path_in(&s, site->above[1])), -1);
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_false(is_there(path_in(&s, site->above[0])));
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	end(&s);
}

/* A user may hold the lock of a directory that he may read. */
static void end_under_lock(const struct site *site)
{
	char path[PATH_MAX];
	struct step s;
	int fd;

	if (!begin(&s, site))
		return;
	assert_int_equal(leaf_make(&s.leaf), 0);
	slurm_removes(&s);
	snprintf(path, sizeof(path), "%.*s", (int)s.leaf.locked[0],
		 s.leaf.dirs[0]);
	fd = open(path, O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(leaf_remove(&s.leaf, 1), 0);
	assert_false(is_there(s.leaf.dirs[0]));
	assert_true(is_there(path_in(&s, site->above[1])));
	close(fd);
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_false(is_there(path_in(&s, site->above[0])));
	end(&s);
}

static void nothing_is_left(void **state)
{
	unsigned int tried = 0;

	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		end_before_slurm(&sites[i], &tried);
		end_after_slurm(&sites[i]);
		end_under_lock(&sites[i]);
	}
	if (!tried)
		skip(); /* no cgroups that this user may make */
	print_message("%u hierarchies\n", tried);
}

/* Of several, all or none is made. */
static void none_of_several_is_left(void **state)
{
	char dir[] = "/tmp/pmi2x-leaf-test-XXXXXX", first[64], second[64];
	struct leaf leaf = { .own = 2 };

	assert_non_null(mkdtemp(dir));
	snprintf(first, sizeof(first), "%s/first", dir);
	snprintf(second, sizeof(second), "%s/none/second", dir);
	leaf.dirs[0] = first;
	leaf.dirs[1] = second;
	assert_int_equal(leaf_make(&leaf), -ENOENT);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_groups_are_found),
		cmocka_unit_test(too_long_a_path_is_an_error),
		cmocka_unit_test(none_of_several_is_left),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests_name("leaf", tests, NULL, NULL);
}
