/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that the filter lets an agent make, and what happens to all else. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/stopped.h"
#include "confined.h"
#include "libio/loop.h"
#include "libio/secret.h"
#include "libshm/region.h"
#include "libshm/region_memory.h"

/* ---- the filter ---- */

/*
 * For each sentence of doc/threat-model.md on what an agent may not do: the ways to do
 * it. Arguments are such that the call works, or harms nothing, without the filter.
 */
#define SELF getpid()

static char *const no_arguments[] = { "true", NULL };
static const struct sockaddr_un a_file = { AF_UNIX, "/tmp/pmi2x-filter-test" };
static struct clone_args fork_args = { .exit_signal = SIGCHLD };

/* "No new program or process." */
static void try_execve(void)
{
	execv("/bin/true", no_arguments);
}

static void try_execveat(void)
{
	syscall(SYS_execveat, AT_FDCWD, "/bin/true", no_arguments, no_arguments, 0);
}

static void try_fork(void)
{
	syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* "No signal to others." */
static void try_kill(void)
{
	kill(SELF, 0);
}

static void try_tkill(void)
{
	syscall(SYS_tkill, SELF, 0);
}

static void try_tgkill(void)
{
	syscall(SYS_tgkill, 1, 1, 0);
}

static void try_sigqueue(void)
{
	siginfo_t info = { .si_code = SI_QUEUE };

	syscall(SYS_rt_sigqueueinfo, SELF, SIGURG, &info);
}

static void try_pidfd_signal(void)
{
	syscall(SYS_pidfd_send_signal, HOLD, 0, NULL, 0);
}

static void try_owner(void)
{
	fcntl(HOLD, F_SETOWN, SELF);
}

static void try_owner_ex(void)
{
	struct f_owner_ex owner = { F_OWNER_PID, SELF };

	fcntl(HOLD, F_SETOWN_EX, &owner);
}

static void try_owner_signal(void)
{
	fcntl(HOLD, F_SETSIG, SIGURG);
}

static void try_async(void)
{
	fcntl(HOLD, F_SETFL, O_NONBLOCK | O_ASYNC);
}

static void try_notify(void)
{
	fcntl(HOLD, F_NOTIFY, DN_CREATE);
}

static void try_lease(void)
{
	fcntl(HOLD, F_SETLEASE, F_UNLCK);
}

static void try_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	int timer;

	syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer);
}

/* "No ptrace." */
static void try_ptrace(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static void try_read_memory(void)
{
	process_vm_readv(SELF, NULL, 0, NULL, 0, 0);
}

static void try_write_memory(void)
{
	process_vm_writev(SELF, NULL, 0, NULL, 0, 0);
}

/* "No file made, and none changed." */
static void try_directory(void)
{
	syscall(SYS_mkdirat, AT_FDCWD, a_file.sun_path, 0700);
}

static void try_node(void)
{
	syscall(SYS_mknodat, AT_FDCWD, a_file.sun_path, S_IFREG | 0600, 0);
}

static void try_link(void)
{
	syscall(SYS_linkat, AT_FDCWD, "/bin/true", AT_FDCWD, a_file.sun_path, 0);
}

static void try_symlink(void)
{
	syscall(SYS_symlinkat, "x", AT_FDCWD, a_file.sun_path);
}

static void try_rename(void)
{
	syscall(SYS_renameat2, AT_FDCWD, "/none", AT_FDCWD, "/none2", 0);
}

static void try_unlink(void)
{
	syscall(SYS_unlinkat, AT_FDCWD, "/none", 0);
}

/* An end of a pair that it has can be given a name. */
static void try_bind(void)
{
	bind(REPORT, (const struct sockaddr *)&a_file, sizeof(a_file));
}

static void try_mode(void)
{
	fchmod(HOLD, 04777);
}

static void try_mode_at(void)
{
	syscall(SYS_fchmodat, AT_FDCWD, "/none", 04777);
}

static void try_owner_of_file(void)
{
	fchown(HOLD, -1, -1);
}

static void try_attribute(void)
{
	fsetxattr(HOLD, "user.x", "x", 1, 0);
}

static void try_times(void)
{
	syscall(SYS_utimensat, HOLD, NULL, NULL, 0);
}

static void try_openat2(void)
{
	syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0);
}

/* "No executable memory." */
static void try_code(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	     0);
}

static void try_code_later(void)
{
	static char page[4096] __attribute__((aligned(4096)));

	mprotect(page, sizeof(page), PROT_READ | PROT_EXEC);
}

/* "It keeps the user and the surroundings that it has." */
static void try_setuid(void)
{
	syscall(SYS_setresuid, -1, -1, -1);
}

static void try_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void try_namespace(void)
{
	unshare(CLONE_NEWUSER);
}

static void try_limit_of_others(void)
{
	struct rlimit limit;

	syscall(SYS_prlimit64, 1, RLIMIT_CORE, NULL, &limit);
}

static void try_affinity(void)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	sched_setaffinity(0, sizeof(all), &all);
}

static void try_listen(void)
{
	listen(REPORT, 1);
}

static const struct {
	void (*attempt)(void);
	int number;
} forbidden[] = {
	{ try_execve, SYS_execve },
	{ try_execveat, SYS_execveat },
	{ try_fork, SYS_clone },
	{ try_kill, SYS_kill },
	{ try_tkill, SYS_tkill },
	{ try_tgkill, SYS_tgkill },
	{ try_sigqueue, SYS_rt_sigqueueinfo },
	{ try_pidfd_signal, SYS_pidfd_send_signal },
	{ try_owner, SYS_fcntl },
	{ try_owner_ex, SYS_fcntl },
	{ try_owner_signal, SYS_fcntl },
	{ try_async, SYS_fcntl },
	{ try_notify, SYS_fcntl },
	{ try_lease, SYS_fcntl },
	{ try_timer, SYS_timer_create },
	{ try_ptrace, SYS_ptrace },
	{ try_read_memory, SYS_process_vm_readv },
	{ try_write_memory, SYS_process_vm_writev },
	{ try_directory, SYS_mkdirat },
	{ try_node, SYS_mknodat },
	{ try_link, SYS_linkat },
	{ try_symlink, SYS_symlinkat },
	{ try_rename, SYS_renameat2 },
	{ try_unlink, SYS_unlinkat },
	{ try_bind, SYS_bind },
	{ try_mode, SYS_fchmod },
	{ try_mode_at, SYS_fchmodat },
	{ try_owner_of_file, SYS_fchown },
	{ try_attribute, SYS_fsetxattr },
	{ try_times, SYS_utimensat },
#ifdef SYS_openat2
	{ try_openat2, SYS_openat2 },
#endif
	{ try_code, SYS_mmap },
	{ try_code_later, SYS_mprotect },
	{ try_setuid, SYS_setresuid },
	{ try_dumpable, SYS_prctl },
	{ try_namespace, SYS_unshare },
	{ try_limit_of_others, SYS_prlimit64 },
	{ try_affinity, SYS_sched_setaffinity },
	{ try_listen, SYS_listen },
};

TEST(forbidden_call_kills_and_is_reported_by_number)
{
	struct confined c;

	if (CONFINE_SANITIZED)
		skip();
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		assert_int_equal(
			confined_start(&c, &as_nobody, NULL, forbidden[i].attempt).rc, 0);
		assert_int_equal(confined_hear(&c).rc, DENIED + forbidden[i].number);
		assert_int_equal(confined_end(&c), 0);
	}
}

/* 0, or the number of the first that was not refused with its error. */
static int first_not_refused(void)
{
	int words[32] = { 0 };

	if (open("/dev/null", O_RDWR) >= 0 || errno != EACCES)
		return 1;
	if (open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 || errno != EACCES)
		return 2;
	if (socket(AF_PACKET, SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
		return 3;
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EAFNOSUPPORT)
		return 7;
	if (socket(AF_NETLINK, SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
		return 8;
	if (ioctl(HOLD, FIONREAD, words) >= 0 || errno != ENOTTY)
		return 4;
	if (ioctl(HOLD, FIOASYNC, words) >= 0 || errno != ENOTTY)
		return 9;
	if (ioctl(REPORT, FIOSETOWN, words) >= 0 || errno != ENOTTY)
		return 10;
#ifdef SYS_io_uring_setup
	if (syscall(SYS_io_uring_setup, 1, words) >= 0 || errno != ENOSYS)
		return 5;
#endif
#ifdef SYS_clone3
	if (syscall(SYS_clone3, &fork_args, sizeof(fork_args)) >= 0 || errno != ENOSYS)
		return 6;
#endif
	return 0;
}

static void try_refused(void)
{
	confined_report(first_not_refused(), "");
}

TEST(calls_that_libraries_try_fail_without_a_kill)
{
	struct confined c;

	if (CONFINE_SANITIZED)
		skip();
	assert_int_equal(confined_start(&c, &as_nobody, NULL, try_refused).rc, 0);
	assert_int_equal(confined_hear(&c).rc, 0);
	confined_end(&c);
}

static void abort_it(void)
{
	abort();
}

/* abort ends the program by its signal, also with a filter. */
TEST(an_abort_ends_it)
{
	struct confined c;

	assert_int_equal(confined_start(&c, &as_nobody, NULL, abort_it).rc, 0);
	assert_int_equal(confined_hear(&c).rc, -EPIPE);
	assert_int_equal(WTERMSIG(confined_end(&c)), SIGABRT);
}

/* ---- what an agent does, nobody, not dumpable and filtered ---- */

static void end_loop(uv_async_t *end)
{
	uv_close((uv_handle_t *)end, NULL);
}

/* A loop in a thread of its own, which hears and ends. */
static int use_loop(void)
{
	struct loop *l;
	uv_async_t end;
	int rc = loop_create(&l);

	if (rc)
		return rc;
	rc = uv_async_init(loop_uv(l), &end, end_loop);
	if (!rc)
		rc = loop_start(l);
	if (rc)
		return rc;
	uv_async_send(&end);
	loop_join(l);
	loop_destroy(l);
	return rc;
}

/* slurmstepd makes it, and the agent has its descriptor. */
static void make_region_object(void)
{
	int fd = region_object_create();

	if (dup2(fd, STDIN_FILENO) < 0)
		_exit(1);
}

/* The region's file is opened again through /proc/self, read-only. */
static int use_region(void)
{
	struct region_memory m;
	int rc = region_memory_create(&m, STDIN_FILENO, 1 << 20);

	if (rc)
		return rc;
	region_memory_destroy(&m);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, 1024);
}

/* A size for which the C library asks for the machine's memory. */
static int use_memory(void)
{
	size_t n = 4096;
	char *all = calloc(n, 1024);

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		all[i * 1024] = (char)(n - i);
	qsort(all, n, 1024, compare);
	free(all);
	return 0;
}

static void do_work(void)
{
	struct secret secret;
	int rc = use_loop();

	if (!rc)
		rc = use_region();
	if (!rc)
		rc = use_memory();
	if (!rc)
		rc = secret_create(&secret);
	if (!rc && process_is_stopped(getpid()))
		rc = -ECANCELED;
	confined_report(rc, "");
}

TEST(an_agents_work_is_allowed)
{
	struct confined c;

	assert_int_equal(confined_start(&c, &as_nobody, make_region_object,
					do_work).rc, 0);
	assert_int_equal(confined_hear(&c).rc, 0);
	assert_string_equal(confined_hear(&c).why, "back");
	assert_int_equal(confined_end(&c), 0);
}

int main(void)
{
	int rc = confined_skip();

	return rc ? rc : unit_run(NULL, NULL, NULL);
}
