/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A seccomp filter made of three tables: calls that are always allowed, calls
 * that are when an argument is right, and calls that are refused with an error
 * instead of a signal. The kernel remembers which numbers are always allowed
 * (Linux 5.11); before that, what an event loop calls most is found first.
 */
#include "agent/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/confine.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#define FILTER_ARCH 0 /* no filter */
#endif

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
	/* Who it is, and on what. */
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

/* The low half of an argument, masked, has this value. A mask of 0: any has. */
struct test {
	unsigned int argument;
	uint32_t mask, value;
};

/* A call both of whose tests are right; several lines for one call. */
struct condition {
	int number;
	struct test tests[2];
};

#define ANY_BIT 0xffffffffu
#define READING (O_ACCMODE | O_CREAT | O_TRUNC)
#define IS(argument, value) { { argument, ANY_BIT, value } }

static const struct condition conditions[] = {
	/* /proc of ranks, /sys/fs/cgroup, objects of its own again. */
	{ SYS_openat, { { 2, READING, O_RDONLY } } },
	{ SYS_socket, IS(0, AF_INET) },
	{ SYS_socket, IS(0, AF_INET6) },
	{ SYS_fcntl, IS(1, F_GETFD) },
	{ SYS_fcntl, IS(1, F_SETFD) },
	{ SYS_fcntl, IS(1, F_GETFL) },
	{ SYS_fcntl, { { 1, ANY_BIT, F_SETFL }, { 2, O_ASYNC, 0 } } }, /* sends signals */
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

/* What libraries try first, or what may be asked of a wrong descriptor. */
static const struct refusal {
	int number, error;
} refusals[] = {
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

/* Instructions of a table's line, and around the tables. */
#define OF_NUMBER 2
#define OF_TEST 3
#define OF_CONDITION (3 + 2 * OF_TEST)
#define OF_FRAME 5
#define PROGRAM_MAX                                                   \
	(OF_FRAME + OF_NUMBER * (COUNT(always) + COUNT(refusals)) +   \
	 OF_CONDITION * (COUNT(conditions) + 1))

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short len;
};

static void add(struct program *p, uint16_t code, uint8_t if_true,
		uint8_t if_false, uint32_t k)
{
	p->code[p->len++] =
		(struct sock_filter)BPF_JUMP(code, k, if_true, if_false);
}

static void load(struct program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static void end(struct program *p, uint32_t action)
{
	add(p, BPF_RET | BPF_K, 0, 0, action);
}

/* Go on with the next instruction, or leave out `skip` of them. */
static void unless_equal(struct program *p, uint32_t value, uint8_t skip)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, skip, value);
}

static void load_number(struct program *p)
{
	load(p, offsetof(struct seccomp_data, nr));
}

/* Leave out what is left of a condition, `skip` instructions, unless it is right. */
static void add_test(struct program *p, const struct test *t, uint8_t skip)
{
	size_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

	load(p, offsetof(struct seccomp_data, args) + 8 * t->argument + low);
	add(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, t->mask);
	unless_equal(p, t->value, skip);
}

static void add_condition(struct program *p, const struct condition *c)
{
	unless_equal(p, c->number, OF_CONDITION - 1);
	add_test(p, &c->tests[0], 1 + OF_TEST);
	add_test(p, &c->tests[1], 1);
	end(p, SECCOMP_RET_ALLOW);
	load_number(p);
}

static void build(struct program *p)
{
	/* abort() and libraries signal themselves; no one else. */
	const struct condition own = { SYS_tgkill, IS(0, getpid()) };

	p->len = 0;
	load(p, offsetof(struct seccomp_data, arch));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, FILTER_ARCH);
	end(p, SECCOMP_RET_KILL_PROCESS); /* numbers of another machine */
	load_number(p);
	for (size_t i = 0; i < COUNT(always); i++) {
		unless_equal(p, always[i], 1);
		end(p, SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < COUNT(conditions); i++)
		add_condition(p, &conditions[i]);
	add_condition(p, &own);
	for (size_t i = 0; i < COUNT(refusals); i++) {
		unless_equal(p, refusals[i].number, 1);
		end(p, SECCOMP_RET_ERRNO | refusals[i].error);
	}
	end(p, SECCOMP_RET_TRAP);
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
	struct program p;
	struct sock_fprog program = { .filter = p.code };
	int rc;

	if (CONFINE_SANITIZED || !FILTER_ARCH)
		return -ENOSYS;
	rc = catch(denied);
	if (rc)
		return rc;
	build(&p);
	program.len = p.len;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0)
		return 0;
	/* Of a kernel that is built without; ours is well-formed. */
	return errno == EINVAL ? -ENOSYS : -errno;
}
