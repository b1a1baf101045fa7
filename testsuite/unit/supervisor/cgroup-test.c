/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cgroups an agent gets, and that nothing is left of them. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/cgroup.h"

#define PATIENCE_MS 60000 /* then a test has failed */

/* ---- /proc/self/cgroup of a slurmstepd ---- */

#define V1_JOB "/slurm/uid_7/job_5"

static const struct {
	const char *name, *groups;
	unsigned int own;
	const char *dirs[LEAF_DIRS_MAX]; /* after the mount point */
	const char *locked[LEAF_OWN_MAX];
	const char *confined[LEAF_DIRS_MAX]; /* dirs of LEAF_CONFINED */
	const char *slurms[LEAF_SLURMS_MAX];
} cases[] = {
	{ "version 2",
	  "0::/system.slice/slurmstepd.scope/job_5/step_3/slurm\n",
	  1,
	  { "/system.slice/slurmstepd.scope/job_5/step_3/pmi2x" },
	  { "/system.slice/slurmstepd.scope" },
	  { "/system.slice/slurmstepd.scope/job_5/step_3/pmi2x-pmixd" },
	  { NULL } },
	{ "a job named by what 26.05 calls a SLUID, in a namespace",
	  "0::/s6AB0FFE3VQ/step_3+1/slurm",
	  1,
	  { "/s6AB0FFE3VQ/step_3+1/pmi2x" },
	  { "" },
	  { "/s6AB0FFE3VQ/step_3+1/pmi2x-pmixd" },
	  { NULL } },
	{ "all of version 1, beside an empty version 2",
	  "8:pids:/\n7:cpu,cpuacct:" V1_JOB "/step_3/task_0\n"
	  "6:freezer:" V1_JOB "\n5:devices:" V1_JOB "/step_3\n"
	  "4:memory:" V1_JOB "/step_3\n3:cpuset:" V1_JOB "/step_3\n"
	  "1:name=systemd:/system.slice/slurmd.service\n0::/\n",
	  3,
	  { "/freezer" V1_JOB "/pmi2x_3", "/memory" V1_JOB "/pmi2x_3",
	    "/cpuacct" V1_JOB "/pmi2x_3", "/cpuset", "/devices" },
	  { "/freezer", "/memory", "/cpuacct" },
	  { "/freezer" V1_JOB "/pmi2x_3", "/memory" V1_JOB "/pmi2x_3",
	    "/cpuacct" V1_JOB "/pmi2x_3", "/cpuset" V1_JOB "/step_3",
	    "/devices" V1_JOB "/step_3" },
	  { "/memory" V1_JOB "/step_3", "/cpuacct" V1_JOB "/step_3",
	    "/cpuset" V1_JOB "/step_3", "/devices" V1_JOB "/step_3" } },
	{ "devices of a task, and a cpuset of the job",
	  "5:devices:" V1_JOB "/step_3/task_0\n3:cpuset:" V1_JOB "\n",
	  0,
	  { "/cpuset", "/devices" },
	  { NULL },
	  { "/cpuset" V1_JOB, "/devices" V1_JOB "/step_3" },
	  { "/cpuset" V1_JOB "/step_3", "/devices" V1_JOB "/step_3" } },
	{ "task/cgroup without proctrack/cgroup",
	  "6:freezer:/\n4:memory:" V1_JOB "/step_3\n",
	  1,
	  { "/memory" V1_JOB "/pmi2x_3" },
	  { "/memory" },
	  { "/memory" V1_JOB "/pmi2x_3" },
	  { "/memory" V1_JOB "/step_3" } },
	{ "proctrack/cgroup without task/cgroup",
	  "6:freezer:" V1_JOB "\n4:memory:/\n3:cpuset:/\n",
	  1,
	  { "/freezer" V1_JOB "/pmi2x_3" },
	  { "/freezer" },
	  { "/freezer" V1_JOB "/pmi2x_3" },
	  { NULL } },
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

static void expect_path(const char *path, const char *expected)
{
	char text[PATH_MAX];

	snprintf(text, sizeof(text), "/m%s", expected);
	assert_string_equal(path, text);
}

static void expect_dirs(const struct leaf *leaf, const char *const *expected)
{
	size_t n = 0;

	for (; n < LEAF_DIRS_MAX && expected[n]; n++)
		expect_path(leaf->dirs[n], expected[n]);
	assert_null(leaf->dirs[n]);
}

static void expect_case(size_t i)
{
	struct leaf leaf;
	char text[PATH_MAX];
	size_t n;

	print_message("%s\n", cases[i].name);
	assert_int_equal(leaf_find(&leaf, LEAF_EXEMPT, cases[i].groups, "/m", "3"), 0);
	assert_int_equal(leaf.own, cases[i].own);
	expect_dirs(&leaf, cases[i].dirs);
	for (n = 0; n < leaf.own; n++) {
		snprintf(text, sizeof(text), "/m%s", cases[i].locked[n]);
		assert_int_equal(leaf.locked[n], strlen(text));
		assert_memory_equal(leaf.dirs[n], text, strlen(text));
	}
	for (n = 0; n < LEAF_SLURMS_MAX && cases[i].slurms[n]; n++)
		expect_path(leaf.slurms[n].path, cases[i].slurms[n]);
	assert_null(leaf.slurms[n].path);
	leaf_free(&leaf);
	assert_int_equal(leaf_find(&leaf, LEAF_CONFINED, cases[i].groups, "/m", "3"), 0);
	expect_dirs(&leaf, cases[i].confined);
	leaf_free(&leaf);
}

TEST(the_right_groups_are_found)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_case(i);
}

TEST(too_long_a_path_is_an_error)
{
	char *text = malloc(2 * PATH_MAX);
	struct leaf leaf;

	memset(text, 'a', 2 * PATH_MAX);
	memcpy(text, "0::/", 4);
	strcpy(text + PATH_MAX, "/job_1/step_1/slurm\n");
	assert_int_equal(leaf_find(&leaf, LEAF_EXEMPT, text, "/m", "1"), -ENAMETOOLONG);
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
	enum leaf_kind kind;
} sites[] = {
	{ "/sys/fs/cgroup", "/freezer", "1:freezer:/%s/uid_7/job_5\n",
	  { "uid_7", "uid_7/job_5" }, { "uid_7/job_5/step_3", NULL }, false, LEAF_EXEMPT },
	{ "/sys/fs/cgroup", "/memory", "1:memory:/%s/uid_7/job_5/step_3\n",
	  { "uid_7", "uid_7/job_5" }, { "uid_7/job_5/step_3", NULL }, true, LEAF_EXEMPT },
	{ "/sys/fs/cgroup/unified", "", "0::/%s/job_5/step_3/slurm\n",
	  { "job_5", "job_5/step_3" },
	  { "job_5/step_3/slurm", "job_5/step_3/user" }, false, LEAF_EXEMPT },
	{ "/sys/fs/cgroup", "", "0::/%s/job_5/step_3/slurm\n",
	  { "job_5", "job_5/step_3" },
	  { "job_5/step_3/slurm", "job_5/step_3/user" }, false, LEAF_EXEMPT },
};

/* A confined program has none of its own there. */
static const struct site devices = {
	"/sys/fs/cgroup", "/devices", "1:devices:/%s/uid_7/job_5/step_3\n",
	{ "uid_7", "uid_7/job_5" }, { "uid_7/job_5/step_3", NULL }, true,
	LEAF_CONFINED,
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
	assert_int_equal(leaf_find(&s->leaf, site->kind, line, site->mount, "3"), 0);
	assert_int_equal(s->leaf.own, site != &devices);
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

/* Slurm has removed the step's cgroups, except those above the agent's. */
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

TEST(nothing_is_left)
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

/* Slurm has tried to remove it, and it is nobody's to kill: slurmstepd may be there. */
TEST(the_step_of_a_confined_program_goes_once_empty)
{
	struct step s;
	pid_t pid;

	if (!begin(&s, &devices))
		skip();
	pid = start_member(&s);
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_true(is_there(s.leaf.dirs[0]));
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_false(is_there(path_in(&s, devices.above[0])));
	end(&s);
}

/* Another step of the job goes on. */
TEST(a_job_with_another_step_stays)
{
	struct step s;

	if (!begin(&s, &devices))
		skip();
	make(&s, "uid_7/job_5/step_4");
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_false(is_there(s.leaf.dirs[0]));
	assert_int_equal(rmdir(path_in(&s, "uid_7/job_5/step_4")), 0);
	assert_int_equal(leaf_remove(&s.leaf, PATIENCE_MS), 0);
	assert_false(is_there(path_in(&s, devices.above[0])));
	end(&s);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* As a file of the kernel's: it is there once its directory is. */
static void expect_copy(const char *dir, const char *name, const char *text,
			const char *expected)
{
	char path[PATH_MAX], leaf_dir[PATH_MAX], found[64] = "";
	struct leaf leaf = { .own = 1, .copies_cpuset = true };
	FILE *f;

	snprintf(leaf_dir, sizeof(leaf_dir), "%s/pmi2x-pmixd", dir);
	leaf.dirs[0] = leaf_dir;
	snprintf(path, sizeof(path), "%s/user/%s", dir, name);
	write_text(path, text);
	snprintf(path, sizeof(path), "%.100s/%s", leaf_dir, name);
	write_text(path, "");
	assert_int_equal(leaf_make(&leaf), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	(void)!fgets(found, sizeof(found), f);
	fclose(f);
	assert_string_equal(found, expected);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/user/%s", dir, name);
	assert_int_equal(unlink(path), 0);
}

TEST(a_confined_program_has_the_cpuset_of_the_ranks)
{
	char dir[] = "/tmp/pmi2x-leaf-test-XXXXXX", user[64], own[64];

	assert_non_null(mkdtemp(dir));
	snprintf(user, sizeof(user), "%s/user", dir);
	snprintf(own, sizeof(own), "%s/pmi2x-pmixd", dir);
	assert_int_equal(mkdir(user, 0755), 0);
	assert_int_equal(mkdir(own, 0755), 0);
	expect_copy(dir, "cpuset.cpus", "0-3,7\n", "0-3,7\n");
	expect_copy(dir, "cpuset.cpus", "\n", "");
	expect_copy(dir, "cpuset.mems", "1\n", "1\n");
	assert_int_equal(rmdir(own), 0);
	assert_int_equal(rmdir(user), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Or it would run on the processors of the job's other steps. */
TEST(a_cpuset_that_cannot_be_copied_is_an_error)
{
	char dir[] = "/tmp/pmi2x-leaf-test-XXXXXX", user[64], own[64], cpus[64];
	struct leaf leaf = { .own = 1, .copies_cpuset = true };

	assert_non_null(mkdtemp(dir));
	snprintf(user, sizeof(user), "%s/user", dir);
	snprintf(own, sizeof(own), "%s/pmi2x-pmixd", dir);
	snprintf(cpus, sizeof(cpus), "%s/user/cpuset.cpus", dir);
	assert_int_equal(mkdir(user, 0755), 0);
	write_text(cpus, "0\n");
	leaf.dirs[0] = own;
	assert_int_equal(leaf_make(&leaf), -ENOENT);
	assert_false(is_there(own));
	assert_int_equal(unlink(cpus), 0);
	assert_int_equal(rmdir(user), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* All of several directories are made, or none. */
TEST(none_of_several_is_left)
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
