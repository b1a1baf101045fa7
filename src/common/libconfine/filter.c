/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A seccomp filter made of three tables: calls that are always allowed, calls
 * that are when an argument is right, and calls that are refused with an error
 * instead of a signal. The kernel remembers which numbers are always allowed
 * (Linux 5.11); before that, what an event loop calls most is found first.
 */
#include "libconfine/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libconfine/filter_program.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const int always[] = {
	/* Events and messages. */
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
	SYS_poll,
#endif
	SYS_epoll_pwait,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_recvmmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_preadv2,
	SYS_futex,
	SYS_epoll_ctl,
	SYS_ppoll,
	SYS_epoll_create1,
	SYS_eventfd2,
	SYS_pipe2,
	/* Links and descriptors. */
	SYS_accept4,
	SYS_connect,
	SYS_shutdown,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_getsockname,
	SYS_getpeername,
	SYS_close,
	SYS_pread64,
	SYS_lseek,
	SYS_fstat,
	SYS_newfstatat,
#ifdef SYS_statx
	SYS_statx,
#endif
	SYS_readlinkat,
#ifdef SYS_readlink
	SYS_readlink,
#endif
	/* Memory, its own and what it shares with ranks. */
	SYS_munmap,
	SYS_mremap,
	SYS_madvise,
	SYS_brk,
	SYS_mlock,
	SYS_munlock,
	SYS_memfd_create,
	SYS_ftruncate,
	SYS_fallocate,
	/* Time. */
	SYS_clock_gettime,
	SYS_clock_getres,
	SYS_clock_nanosleep,
	SYS_gettimeofday,
	SYS_nanosleep,
	SYS_restart_syscall, /* after SIGCONT */
	/* Threads and signals of its own. */
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_set_robust_list,
#ifdef SYS_rseq
	SYS_rseq,
#endif
	SYS_sched_yield,
	SYS_sched_getaffinity, /* malloc counts processors */
	SYS_exit,
	SYS_exit_group,
	/* Calls that name the process and its machine. */
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_getrandom,
	SYS_getrusage,
	SYS_sysinfo, /* qsort asks how much memory there is */
	SYS_uname,
#ifdef SYS_getrlimit
	SYS_getrlimit,
#endif
#ifdef SYS_pidfd_open
	SYS_pidfd_open, /* of a rank */
#endif
};

#define READING (O_ACCMODE | O_CREAT | O_TRUNC)
#define IS FILTER_IS

static const struct filter_condition conditions[] = {
	/* /proc of ranks, /sys/fs/cgroup, objects of its own again. */
	{ SYS_openat, { { 2, READING, O_RDONLY } } },
	{ SYS_socket, IS(0, AF_INET) },
	{ SYS_socket, IS(0, AF_INET6) },
	{ SYS_fcntl, IS(1, F_GETFD) },
	{ SYS_fcntl, IS(1, F_SETFD) },
	{ SYS_fcntl, IS(1, F_GETFL) },
	/* Without what sends signals. */
	{ SYS_fcntl, { { 1, FILTER_ANY_BIT, F_SETFL }, { 2, O_ASYNC, 0 } } },
	{ SYS_fcntl, IS(1, F_DUPFD_CLOEXEC) },
	{ SYS_fcntl, IS(1, F_ADD_SEALS) },
	{ SYS_fcntl, IS(1, F_GET_SEALS) },
	{ SYS_mmap, { { 2, PROT_EXEC, 0 } } },
	{ SYS_mprotect, { { 2, PROT_EXEC, 0 } } },
	{ SYS_ioctl, IS(1, FIONBIO) },
	{ SYS_ioctl, IS(1, FIOCLEX) },
	{ SYS_clone, { { 0, CLONE_THREAD, CLONE_THREAD } } },
	{ SYS_prlimit64, IS(0, 0) }, /* its own */
	{ SYS_prctl, IS(0, PR_SET_NAME) },
};

/* Calls that libraries try first, or that may be asked of a wrong descriptor. */
static const struct filter_refusal refusals[] = {
	{ SYS_openat, EACCES },
	{ SYS_socket, EAFNOSUPPORT },
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

static void build(struct filter_program *p)
{
	/* abort() and libraries signal themselves; no one else. */
	const struct filter_condition own = { SYS_tgkill, IS(0, getpid()) };

	filter_begin(p, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < COUNT(always); i++)
		filter_add_number(p, always[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < COUNT(conditions); i++)
		filter_add_condition(p, &conditions[i], SECCOMP_RET_ALLOW);
	filter_add_condition(p, &own, SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < COUNT(refusals); i++)
		filter_add_number(p, refusals[i].number,
				  SECCOMP_RET_ERRNO | refusals[i].error);
	filter_end(p, SECCOMP_RET_TRAP);
}

static int catch(void (*denied)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (!denied)
		return 0;
	action.sa_sigaction = denied;
	return sigaction(SIGSYS, &action, NULL) ? -errno : 0;
}

int filter_install(void (*denied)(int, siginfo_t *, void *))
{
	struct filter_program p;
	int rc = catch(denied);

	if (rc)
		return rc;
	build(&p);
	return filter_apply(&p);
}
