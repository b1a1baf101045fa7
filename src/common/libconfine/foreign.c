/* SPDX-License-Identifier: BSD-3-Clause */
/* Denied system calls by seccomp, and hidden devices by Landlock. */
#include "libconfine/foreign.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libconfine/filter_program.h"

#if defined(__has_include)
#if __has_include(<linux/landlock.h>) && defined(SYS_landlock_create_ruleset)
#include <linux/landlock.h>
#define HAVE_LANDLOCK 1
#endif
#endif

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- system calls ---- */

#define X32_BIT 0x40000000u /* of the numbers of another interface of x86-64 */
#define NAMESPACES                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |         \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* Allowed as far as an argument is right; their numbers are denied below. */
static const struct filter_condition allowed[] = {
	{ SYS_clone, { { 0, NAMESPACES, 0 } } },
	{ SYS_ioctl, FILTER_IS(1, FIONBIO) },
	{ SYS_ioctl, FILTER_IS(1, FIOCLEX) },
	{ SYS_ioctl, FILTER_IS(1, FIONCLEX) },
	{ SYS_ioctl, FILTER_IS(1, FIONREAD) },
	/* Questions about interfaces. */
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFCONF) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFNAME) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFINDEX) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFFLAGS) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFADDR) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFNETMASK) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFBRDADDR) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFMTU) },
	{ SYS_ioctl, FILTER_IS(1, SIOCGIFHWADDR) },
};

/* The process stays hidden from others of its user. */
static const struct filter_condition denied_arguments[] = {
	{ SYS_prctl, FILTER_IS(0, PR_SET_DUMPABLE) },
	{ SYS_prctl, FILTER_IS(0, PR_SET_PTRACER) },
};

static const struct filter_refusal denied[] = {
	/* Programs, and other processes. */
	{ SYS_execve, EPERM },
	{ SYS_execveat, EPERM },
	{ SYS_ptrace, EPERM },
	{ SYS_process_vm_readv, EPERM },
	{ SYS_process_vm_writev, EPERM },
	{ SYS_kcmp, EPERM },
#ifdef SYS_pidfd_getfd
	{ SYS_pidfd_getfd, EPERM },
#endif
#ifdef SYS_process_madvise
	{ SYS_process_madvise, EPERM },
#endif
	/* Mounts and namespaces. */
	{ SYS_mount, EPERM },
	{ SYS_umount2, EPERM },
	{ SYS_pivot_root, EPERM },
	{ SYS_chroot, EPERM },
	{ SYS_unshare, EPERM },
	{ SYS_setns, EPERM },
	{ SYS_clone, EPERM },
#ifdef SYS_open_tree
	{ SYS_open_tree, EPERM },
	{ SYS_move_mount, EPERM },
	{ SYS_fsopen, EPERM },
	{ SYS_fsconfig, EPERM },
	{ SYS_fsmount, EPERM },
	{ SYS_fspick, EPERM },
#endif
#ifdef SYS_mount_setattr
	{ SYS_mount_setattr, EPERM },
#endif
	/* Parts of the kernel that no library of these programs uses. */
	{ SYS_bpf, EPERM },
	{ SYS_perf_event_open, EPERM },
	{ SYS_userfaultfd, EPERM },
	{ SYS_add_key, EPERM },
	{ SYS_request_key, EPERM },
	{ SYS_keyctl, EPERM },
	{ SYS_name_to_handle_at, EPERM },
	{ SYS_open_by_handle_at, EPERM },
	{ SYS_fanotify_init, EPERM },
	{ SYS_kexec_load, EPERM },
#ifdef SYS_kexec_file_load
	{ SYS_kexec_file_load, EPERM },
#endif
	{ SYS_init_module, EPERM },
	{ SYS_finit_module, EPERM },
	{ SYS_delete_module, EPERM },
	{ SYS_reboot, EPERM },
	{ SYS_swapon, EPERM },
	{ SYS_swapoff, EPERM },
	{ SYS_acct, EPERM },
	{ SYS_quotactl, EPERM },
	{ SYS_settimeofday, EPERM },
	{ SYS_clock_settime, EPERM },
	{ SYS_personality, EPERM },
#ifdef SYS_iopl
	{ SYS_iopl, EPERM },
	{ SYS_ioperm, EPERM },
	{ SYS_modify_ldt, EPERM },
#endif
	/* System calls that libraries can do without. */
	{ SYS_ioctl, ENOTTY },
#ifdef SYS_io_uring_setup
	{ SYS_io_uring_setup, ENOSYS },
	{ SYS_io_uring_enter, ENOSYS },
	{ SYS_io_uring_register, ENOSYS },
#endif
#ifdef SYS_clone3
	{ SYS_clone3, ENOSYS }, /* its flags are in memory; clone follows */
#endif
};

int foreign_filter(void)
{
	struct filter_program p;

	filter_begin(&p, SECCOMP_RET_ERRNO | ENOSYS);
#ifdef __x86_64__
	filter_add_bits(&p, X32_BIT, SECCOMP_RET_ERRNO | ENOSYS);
#endif
	for (size_t i = 0; i < COUNT(allowed); i++)
		filter_add_condition(&p, &allowed[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < COUNT(denied_arguments); i++)
		filter_add_condition(&p, &denied_arguments[i],
				     SECCOMP_RET_ERRNO | EPERM);
	for (size_t i = 0; i < COUNT(denied); i++)
		filter_add_number(&p, denied[i].number,
				  SECCOMP_RET_ERRNO | denied[i].error);
	filter_end(&p, SECCOMP_RET_ALLOW);
	return filter_apply(&p);
}

/* ---- devices ---- */

#ifdef HAVE_LANDLOCK

#define FILE_RIGHTS \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)
/* Renaming between directories is denied where it is not allowed (from version 2 on). */
#define REFER (1ULL << 13)

/* Below /dev. */
static const struct {
	const char *path;
	bool is_directory;
} harmless[] = {
	{ "/dev/null", false },   { "/dev/zero", false },
	{ "/dev/full", false },   { "/dev/random", false },
	{ "/dev/urandom", false }, { "/dev/shm", true },
	{ "/dev/hugepages", true }, { "/dev/mqueue", true },
};

/* A path that is not there needs no rule. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = rights,
		.parent_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC),
	};
	long rc;

	if (rule.parent_fd < 0)
		return 0;
	rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
		     &rule, 0) ? -errno : 0;
	close(rule.parent_fd);
	return (int)rc;
}

static bool is_directory(const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return !lstat(entry->d_name, &st) && S_ISDIR(st.st_mode);
}

/* Rights are given, not taken: each directory of / but /dev has them. */
static int allow_others(int ruleset, uint64_t rights)
{
	DIR *root = opendir("/");
	struct dirent *entry;
	char path[NAME_MAX + 2];
	int rc = 0;

	if (!root)
		return -errno;
	while (!rc && (entry = readdir(root))) {
		snprintf(path, sizeof(path), "/%s", entry->d_name);
		if (is_directory(entry) && strcmp(path, "/.") &&
		    strcmp(path, "/..") && strcmp(path, "/dev"))
			rc = allow(ruleset, path, rights);
	}
	closedir(root);
	return rc;
}

static int make_rules(int ruleset, uint64_t rights)
{
	int rc = allow_others(ruleset, rights);

	for (size_t i = 0; !rc && i < COUNT(harmless); i++)
		rc = allow(ruleset, harmless[i].path,
			   harmless[i].is_directory ? rights : FILE_RIGHTS);
	if (!rc && syscall(SYS_landlock_restrict_self, ruleset, 0))
		rc = -errno;
	return rc;
}

int foreign_hide_devices(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr attr = { .handled_access_fs = FILE_RIGHTS };
	int ruleset, rc;

	if (version < 0)
		return -errno;
	if (version > 1)
		attr.handled_access_fs |= REFER;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr,
			       sizeof(attr.handled_access_fs), 0);
	if (ruleset < 0)
		return -errno;
	rc = make_rules(ruleset, attr.handled_access_fs);
	close(ruleset);
	return rc;
}

#else

int foreign_hide_devices(void)
{
	return -ENOSYS;
}

#endif

/* ---- both ---- */

/* A kernel without Landlock, or with too many rules on this process, hides nothing. */
int foreign_restrict(char why[CONFINE_WHY_MAX])
{
	int hidden = foreign_hide_devices(), rc = foreign_filter();

	why[0] = '\0';
	if (rc && rc != -ENOSYS) {
		snprintf(why, CONFINE_WHY_MAX, "cannot install the filter of system calls: %s",
			 strerror(-rc));
		return rc;
	}
	if (rc || hidden)
		snprintf(why, CONFINE_WHY_MAX, "cannot restrict%s%s%s on this node%s%s",
			 rc ? " the system calls" : "", rc && hidden ? " or" : "",
			 hidden ? " the opening of devices" : "",
			 hidden ? ": " : "", hidden ? strerror(-hidden) : "");
	return 0;
}
