/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaves slurmstepd's surroundings and gives up every right, in this order. */
#include "libconfine/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libio/fd.h"
#include "libutil/decimal.h"

#define CPUS_MAX 8 /* cpu_set_t, of 1,024 CPUs each */

/* `rc` is a negative errno. */
static int failed(char why[CONFINE_WHY_MAX], int rc, const char *what,
		  const char *name)
{
	snprintf(why, CONFINE_WHY_MAX, "cannot %s%s: %s", what, name,
		 strerror(-rc));
	return rc;
}

/* ---- what was inherited ---- */

/* Kernels before 5.9 have no close_range. */
static int close_one_by_one(int first)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name); /* "." and ".." are 0 */

		if (fd >= first && fd != dirfd(dir))
			close(fd);
	}
	closedir(dir);
	return 0;
}

static int close_from(int first)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return 0;
#endif
	return close_one_by_one(first);
}

static int join(const char *cgroup)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return fd_write_text(path, "0"); /* its last writer */
}

/*
 * The root of version 1's cpuset has all processors of the machine, and moving
 * there makes them the process's. It stays on those that the step has.
 */
static int join_cgroups(const struct confine_options *o, bool root,
			char why[CONFINE_WHY_MAX])
{
	cpu_set_t cpus[CPUS_MAX];
	int n = syscall(SYS_sched_getaffinity, 0, sizeof(cpus), cpus), rc;

	for (const char *const *at = o->cgroups; at && *at; at++) {
		rc = join(*at);
		if (rc && root)
			return failed(why, rc, "move into cgroup ", *at);
	}
	if (n > 0 && o->cgroups)
		syscall(SYS_sched_setaffinity, 0, n, cpus);
	return 0;
}

/* Slurm keeps its daemons from being killed for memory; not the agent. */
static int reset_oom_score(bool root, char why[CONFINE_WHY_MAX])
{
	int rc = fd_write_text("/proc/self/oom_score_adj", "0");

	return rc && root ? failed(why, rc, "reset oom_score_adj", "") : 0;
}

/*
 * The limits that a site gave slurmd are meant for a daemon, not for a process of a
 * job, whose bounds are those of its cgroup: address space and file size, since memory
 * objects of GiB are reserved and mapped, processor time, since a step may take weeks,
 * processes of the user, since ranks have the same. Descriptors as many as allowed: one
 * or two for each rank.
 */
static void raise_limits(void)
{
	static const int unlimited[] = { RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE,
					 RLIMIT_CPU, RLIMIT_NPROC };
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	static const struct rlimit no_core; /* a core file would hold the secret */
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(unlimited) / sizeof(unlimited[0]); i++) {
		if (setrlimit(unlimited[i], &none) == 0 ||
		    getrlimit(unlimited[i], &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(unlimited[i], &limit);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	setrlimit(RLIMIT_CORE, &no_core);
}

/* Ignored and blocked signals survive an exec. */
static void reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, i == SIGPIPE ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int leave_surroundings(const struct confine_options *o, bool root,
			      char why[CONFINE_WHY_MAX])
{
	int rc = close_from(o->fds);

	if (rc)
		return failed(why, rc, "close inherited descriptors", "");
	rc = join_cgroups(o, root, why);
	if (!rc)
		rc = reset_oom_score(root, why);
	if (rc)
		return rc;
	raise_limits();
	reset_signals();
	umask(077);
	clearenv();
	return chdir("/") ? failed(why, -errno, "go to /", "") : 0;
}

/* ---- rights ---- */

/* May fail without CAP_SETPCAP; then no_new_privs makes the same of it. */
static void empty_bounding_set(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static int become(uid_t uid, gid_t gid)
{
	return setgroups(0, NULL) || setresgid(gid, gid, gid) ||
			       setresuid(uid, uid, uid) ?
		       -errno :
		       0;
}

/*
 * A root that stays root loses its capabilities, too, and any user those that it was given.
 */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	return syscall(SYS_capset, &head, none) ? -errno : 0;
}

static bool stays_dumpable(const struct confine_options *o)
{
	return CONFINE_SANITIZED || o->traced;
}

/*
 * Other processes of the user could use its memory and descriptors if it were
 * dumpable. A change of ids makes it what fs.suid_dumpable says.
 */
static void hide(const struct confine_options *o)
{
	prctl(PR_SET_DUMPABLE, stays_dumpable(o), 0, 0, 0);
}

static int drop_rights(const struct confine_options *o, bool root,
		       char why[CONFINE_WHY_MAX])
{
	int rc;

	empty_bounding_set();
	rc = root ? become(o->uid, o->gid) : 0;
	if (rc)
		return failed(why, rc, "become the job's user", "");
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return failed(why, -errno, "give up new privileges", "");
	rc = drop_capabilities();
	if (rc)
		return failed(why, rc, "drop capabilities", "");
	hide(o);
	return 0;
}

/* ---- nothing is left ---- */

static bool is_user(const struct confine_options *o)
{
	uid_t r, e, s;

	return !getresuid(&r, &e, &s) && r == o->uid && e == o->uid &&
	       s == o->uid;
}

static bool is_group(const struct confine_options *o)
{
	gid_t r, e, s;

	return !getresgid(&r, &e, &s) && r == o->gid && e == o->gid &&
	       s == o->gid && getgroups(0, NULL) == 0;
}

static bool has_capability(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3];
	__u32 any = 0;

	if (syscall(SYS_capget, &head, have))
		return true;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		any |= have[i].effective | have[i].permitted |
		       have[i].inheritable;
	return any != 0;
}

static int check(const struct confine_options *o, bool root,
		 char why[CONFINE_WHY_MAX])
{
	const char *left = NULL;

	if (!is_user(o) || (o->uid != 0 && setresuid(-1, 0, -1) == 0))
		left = "user";
	else if (root && !is_group(o))
		left = "group";
	else if (has_capability())
		left = "capability";
	else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		left = "new privileges";
	else if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != stays_dumpable(o))
		left = "tracer";
	if (!left)
		return 0;
	snprintf(why, CONFINE_WHY_MAX,
		 "a privilege remains after all were dropped: %s", left);
	return -EPERM;
}

bool confine_arguments(struct confine_options *o, int ours, int argc, char **argv)
{
	uint32_t uid, gid;

	if (argc < ours || !decimal_u32(argv[1], 0, UINT32_MAX - 1, &uid) ||
	    !decimal_u32(argv[2], 0, UINT32_MAX - 1, &gid))
		return false;
	o->uid = uid;
	o->gid = gid;
	o->cgroups = (const char *const *)argv + ours;
	return true;
}

int confine_begin(const struct confine_options *o, char why[CONFINE_WHY_MAX])
{
	bool root = geteuid() == 0;
	int rc;

	hide(o); /* exec has undone it */
	rc = leave_surroundings(o, root, why);
	if (!rc)
		rc = drop_rights(o, root, why);
	return rc ? rc : check(o, root, why);
}
