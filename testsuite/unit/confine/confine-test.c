/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that has confined itself, seen from outside: nothing of root is left
 * to it, and nobody else may look into it.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confined.h"

#define C_LIBRARYS (3ULL << 31) /* signals 32 and 33 are glibc's to set */

/* ---- seen from outside ---- */

/* A field of /proc/PID/status, without leading blanks. */
static const char *field(pid_t pid, const char *name)
{
	static char line[256];
	char path[64], *at = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (!at && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			at = line + strlen(name);
	fclose(file);
	assert_non_null(at);
	at += strspn(at, ":\t ");
	at[strcspn(at, "\n")] = '\0';
	return at;
}

static void expect_ids(pid_t pid, unsigned int uid, unsigned int gid)
{
	char text[64];

	snprintf(text, sizeof(text), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
	assert_string_equal(field(pid, "Uid"), text);
	snprintf(text, sizeof(text), "%u\t%u\t%u\t%u", gid, gid, gid, gid);
	assert_string_equal(field(pid, "Gid"), text);
	assert_string_equal(field(pid, "Groups"), "");
}

static void expect_no_right(pid_t pid)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff",
					    "CapBnd", "CapAmb" };

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		assert_string_equal(field(pid, sets[i]), "0000000000000000");
	assert_string_equal(field(pid, "NoNewPrivs"), "1");
	assert_string_equal(field(pid, "Seccomp"), CONFINE_SANITIZED ? "0" : "2");
}

TEST(nothing_of_root_is_left)
{
	struct confined c;
	struct report r = confined_start(&c, &as_nobody, NULL, NULL);

	assert_string_equal(r.why, "");
	assert_int_equal(r.rc, 0);
	expect_ids(c.pid, NOBODY, GROUP);
	expect_no_right(c.pid);
	confined_end(&c);
}

TEST(root_becomes_a_root_without_rights)
{
	const struct confine_options o = { .fds = FDS };
	struct confined c;

	assert_int_equal(confined_start(&c, &o, NULL, NULL).rc, 0);
	expect_ids(c.pid, 0, 0);
	expect_no_right(c.pid);
	confined_end(&c);
}

static void expect_descriptors(pid_t pid)
{
	char path[64];
	struct stat st;

	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		assert_int_equal(lstat(path, &st), fd < FDS ? 0 : -1);
	}
}

TEST(confined_program_inherits_nothing)
{
	struct confined c;
	char path[64], text[64] = "";
	FILE *file;

	assert_int_equal(confined_start(&c, &as_nobody, NULL, NULL).rc, 0);
	expect_descriptors(c.pid);
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)c.pid);
	assert_int_equal(readlink(path, text, sizeof(text) - 1), 1);
	assert_string_equal(text, "/");
	assert_string_equal(field(c.pid, "Umask"), "0077");
	assert_string_equal(field(c.pid, "SigBlk"), "0000000000000000");
	assert_int_equal(strtoull(field(c.pid, "SigIgn"), NULL, 16) &
				 ~C_LIBRARYS,
			 1ULL << (SIGPIPE - 1));
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)c.pid);
	file = fopen(path, "re");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "0\n");
	confined_end(&c);
}

#ifdef SYS_close_range
/* As kernels before 5.9 answer. */
static void lose_close_range(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { 4, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	    syscall(SYS_close_range, 1000, 1000, 0) == 0)
		_exit(1);
}

TEST(an_old_kernel_closes_descriptors)
{
	struct confined c;

	assert_int_equal(
		confined_start(&c, &as_nobody, lose_close_range, NULL).rc, 0);
	expect_descriptors(c.pid);
	confined_end(&c);
}
#endif

static void set_bad_limits(void)
{
	const struct rlimit fsize = { 100, RLIM_INFINITY };
	const struct rlimit core = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = 1024;
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_FSIZE, &fsize);
	setrlimit(RLIMIT_CORE, &core);
}

static void report_limits(void)
{
	struct rlimit files, size, core;
	bool ok = !getrlimit(RLIMIT_NOFILE, &files) &&
		  !getrlimit(RLIMIT_FSIZE, &size) &&
		  !getrlimit(RLIMIT_CORE, &core);

	ok = ok && files.rlim_cur == files.rlim_max &&
	     size.rlim_cur == RLIM_INFINITY && core.rlim_max == 0 &&
	     (!environ || !*environ);
	confined_report(ok ? 0 : -EINVAL, "");
}

TEST(limits_and_environment_are_its_own)
{
	struct confined c;

	assert_int_equal(confined_start(&c, &as_nobody, set_bad_limits, report_limits).rc,
			 0);
	assert_int_equal(confined_hear(&c).rc, 0);
	confined_end(&c);
}

/* ---- other processes of the user ---- */

/* Errno of opening its memory and of tracing it, as the user; 0: can. */
static int look_into(pid_t pid)
{
	char path[64];
	int status, fd;
	pid_t looker = fork();

	if (looker == 0) {
		become_nobody();
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
		fd = open(path, O_RDONLY);
		_exit(fd < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(looker, &status, 0), looker);
	return WEXITSTATUS(status);
}

static int trace(pid_t pid)
{
	int status;
	pid_t tracer = fork();

	if (tracer == 0) {
		become_nobody();
		_exit(ptrace(PTRACE_SEIZE, pid, 0, 0) ? errno : 0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	return WEXITSTATUS(status);
}

TEST(its_user_cannot_look_into_it)
{
	struct confined c;
	pid_t plain = fork();
	int hidden;

	if (plain == 0) {
		become_nobody();
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(plain, NULL, WUNTRACED), plain);
	assert_int_equal(look_into(plain), 0); /* as he can into others */
	kill(plain, SIGKILL);
	assert_int_equal(waitpid(plain, NULL, 0), plain);

	assert_int_equal(confined_start(&c, &as_nobody, NULL, NULL).rc, 0);
	hidden = CONFINE_SANITIZED ? 0 : EACCES;
	assert_int_equal(look_into(c.pid), hidden);
	if (hidden)
		assert_int_equal(trace(c.pid), EPERM);
	confined_end(&c);
}

TEST(confined_program_can_be_traced_with_the_option)
{
	struct confine_options o = as_nobody;
	struct confined c;

	o.traced = true;
	assert_int_equal(confined_start(&c, &o, NULL, NULL).rc, 0);
	assert_int_equal(look_into(c.pid), 0);
	confined_end(&c);
}

/* ---- without root ---- */

TEST(without_root_all_else_is_done)
{
	const char *const cgroups[] = { "/sys/fs/cgroup/freezer", NULL };
	struct confine_options o = as_nobody;
	struct confined c;
	struct report r;

	o.cgroups = cgroups; /* may not be entered, which is no error */
	r = confined_start(&c, &o, become_nobody, NULL);
	assert_string_equal(r.why, "");
	assert_int_equal(r.rc, 0);
	expect_ids(c.pid, NOBODY, GROUP);
	assert_string_equal(field(c.pid, "NoNewPrivs"), "1");
	assert_string_equal(field(c.pid, "CapEff"), "0000000000000000");
	confined_end(&c);
}

TEST(without_root_nobody_else_can_be_become)
{
	struct confine_options o = as_nobody;
	struct confined c;

	o.uid = 1;
	assert_int_equal(confined_start(&c, &o, become_nobody, NULL).rc, -EPERM);
	confined_end(&c);
}

/* ---- cgroups ---- */

TEST(root_must_reach_its_cgroups)
{
	const char *const cgroups[] = { "/nowhere/cgroup", NULL };
	struct confine_options o = as_nobody;
	struct confined c;
	struct report r;

	o.cgroups = cgroups;
	r = confined_start(&c, &o, NULL, NULL);
	assert_int_equal(r.rc, -ENOENT);
	assert_non_null(strstr(r.why, "/nowhere/cgroup"));
	assert_int_equal(waitpid(c.pid, NULL, WNOHANG), 0);
	confined_end(&c);
}

static bool is_member(pid_t pid, const char *cgroup)
{
	char path[64], text[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	return strstr(text, cgroup) != NULL;
}

TEST(confined_program_moves_into_its_cgroups)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/freezer",
					      "/sys/fs/cgroup" };
	struct confine_options o = as_nobody;
	const char *cgroups[2] = { NULL };
	struct confined c;
	char dir[128], name[64];

	snprintf(name, sizeof(name), "/pmi2x-confine-test-%d", (int)getpid());
	for (int i = 0; i < 2 && !cgroups[0]; i++) {
		snprintf(dir, sizeof(dir), "%s%s", mounts[i], name);
		if (mkdir(dir, 0755) == 0)
			cgroups[0] = dir;
	}
	if (!cgroups[0])
		skip(); /* none that may be made */
	o.cgroups = cgroups;
	assert_int_equal(confined_start(&c, &o, NULL, NULL).rc, 0);
	assert_true(is_member(c.pid, name));
	assert_false(is_member(getpid(), name));
	confined_end(&c);
	assert_int_equal(rmdir(dir), 0);
}

/* Ids that the kernel has not, or would take for "leave it", are none. */
TEST(arguments_are_ids_and_cgroups)
{
	static const char *const wrong[][2] = {
		{ "root", "0" }, { "0", "" }, { "-1", "0" },
		{ "4294967295", "0" }, { "0", "4294967295" }, { "1 ", "0" },
	};
	char *argv[] = { "name", "4294967294", "7", "more", "/one", NULL };
	struct confine_options o = { .fds = FDS };

	assert_true(confine_arguments(&o, 4, 5, argv));
	assert_int_equal(o.uid, UINT32_MAX - 1);
	assert_int_equal(o.gid, 7);
	assert_string_equal(o.cgroups[0], "/one");
	assert_null(o.cgroups[1]);
	assert_int_equal(o.fds, FDS);
	assert_true(confine_arguments(&o, 5, 5, argv)); /* in no cgroup */
	assert_false(confine_arguments(&o, 6, 5, argv));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		argv[1] = (char *)wrong[i][0];
		argv[2] = (char *)wrong[i][1];
		assert_false(confine_arguments(&o, 4, 5, argv));
	}
}

int main(void)
{
	int rc = confined_skip();

	return rc ? rc : unit_run(NULL, NULL, NULL);
}
