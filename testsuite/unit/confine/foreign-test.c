/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that are denied to programs that load libraries of others, and calls that they
 * may make.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libconfine/confine.h"
#include "libconfine/foreign.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- system calls ---- */

/* Each does nothing, and fails in another way or works, where it is not denied. */
static const struct attempt {
	const char *name;
	long number, arguments[5];
	int error; /* when it is denied */
} attempts[] = {
#define DENIED(call, ...) { #call, SYS_##call, { __VA_ARGS__ }, EPERM }
	DENIED(execve, 1),
	DENIED(execveat, -1, 1),
	DENIED(ptrace, PTRACE_PEEKDATA, -1),
	DENIED(process_vm_readv, -1),
	DENIED(process_vm_writev, -1),
	DENIED(kcmp, -1, -1),
#ifdef SYS_pidfd_getfd
	DENIED(pidfd_getfd, -1),
#endif
#ifdef SYS_process_madvise
	DENIED(process_madvise, -1),
#endif
	DENIED(mount, 0, 1),
	DENIED(umount2, 1),
	DENIED(pivot_root, 1, 1),
	DENIED(chroot, 1),
	DENIED(unshare, 0),
	DENIED(setns, -1),
#ifdef SYS_open_tree
	DENIED(open_tree, -1, 1),
	DENIED(move_mount, -1, 1, -1, 1),
	DENIED(fsopen, 1),
	DENIED(fsconfig, -1),
	DENIED(fsmount, -1),
	DENIED(fspick, -1, 1),
#endif
#ifdef SYS_mount_setattr
	DENIED(mount_setattr, -1, 1),
#endif
	DENIED(bpf, -1),
	DENIED(perf_event_open, 1),
	DENIED(userfaultfd, -1),
	DENIED(add_key, 1),
	DENIED(request_key, 1),
	DENIED(keyctl, -1),
	DENIED(name_to_handle_at, -1, 1, 1),
	DENIED(open_by_handle_at, -1, 1),
	DENIED(fanotify_init, -1),
	DENIED(kexec_load, 0, 0, 0, -1),
#ifdef SYS_kexec_file_load
	DENIED(kexec_file_load, -1, -1, 0, 0, -1),
#endif
	DENIED(init_module, 1),
	DENIED(finit_module, -1, 1),
	DENIED(delete_module, 1),
	DENIED(reboot, 0),
	DENIED(swapon, 1, -1),
	DENIED(swapoff, 1),
	DENIED(acct, 1),
	DENIED(quotactl, -1),
	DENIED(settimeofday, 1),
	DENIED(clock_settime, 99, 1),
	DENIED(personality, 0xffffffff),
#ifdef SYS_iopl
	DENIED(iopl, 0),
	DENIED(ioperm, -1, 1),
	DENIED(modify_ldt, 99),
#endif
	/* Such threads are impossible for another reason. */
	DENIED(clone, CLONE_THREAD | CLONE_NEWNS),
	DENIED(clone, CLONE_THREAD | CLONE_NEWCGROUP),
	DENIED(clone, CLONE_THREAD | CLONE_NEWUTS),
	DENIED(clone, CLONE_THREAD | CLONE_NEWIPC),
	DENIED(clone, CLONE_THREAD | CLONE_NEWUSER),
	DENIED(clone, CLONE_THREAD | CLONE_NEWPID),
	DENIED(clone, CLONE_THREAD | CLONE_NEWNET),
	DENIED(prctl, PR_SET_DUMPABLE, 99),
	DENIED(prctl, PR_SET_PTRACER, -2),
	{ "ioctl FIOASYNC", SYS_ioctl, { 0, FIOASYNC }, ENOTTY },
#ifdef SYS_io_uring_setup
	{ "io_uring_setup", SYS_io_uring_setup, { 1, 1 }, ENOSYS },
	{ "io_uring_enter", SYS_io_uring_enter, { -1 }, ENOSYS },
	{ "io_uring_register", SYS_io_uring_register, { -1 }, ENOSYS },
#endif
#ifdef SYS_clone3
	{ "clone3", SYS_clone3, { 0 }, ENOSYS },
#endif
};

/* A child writes, the test reads. */
static struct shared {
	int rc;
	int before[COUNT(attempts)], after[COUNT(attempts)];
	long foreign_before, foreign_after;
	const char *failed;
} *shared;

static void try_all(int errors[COUNT(attempts)])
{
	for (size_t i = 0; i < COUNT(attempts); i++) {
		const long *a = attempts[i].arguments;

		errors[i] = syscall(attempts[i].number, a[0], a[1], a[2], a[3],
				    a[4], 0) < 0 ? errno : 0;
	}
}

/* getpid as programs of 32 bits call it. */
static long call_foreign(void)
{
#ifdef __x86_64__
	long rc;

	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20) : "memory");
	return (int)rc;
#else
	return -ENOSYS;
#endif
}

static void in_child(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(60);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void try_before_and_after(void)
{
	int pipe_ends[2];

	if (pipe(pipe_ends) || dup2(pipe_ends[0], STDIN_FILENO) < 0)
		_exit(1);
	try_all(shared->before);
	shared->rc = foreign_filter();
	try_all(shared->after);
}

TEST(denied_calls_fail_with_their_error)
{
	if (CONFINE_SANITIZED)
		skip();
	in_child(try_before_and_after);
	assert_int_equal(shared->rc, 0);
	for (size_t i = 0; i < COUNT(attempts); i++) {
		const struct attempt *a = &attempts[i];

		if (shared->after[i] != a->error)
			fail_msg("%s: error %d", a->name, shared->after[i]);
		/* A container, or a setting of the machine, denies it. */
		if (a->error == EPERM && !geteuid() && shared->before[i] == EPERM)
			print_message("%s is not permitted here anyway\n", a->name);
	}
}

static void call_foreign_before_and_after(void)
{
	shared->foreign_before = call_foreign();
	shared->rc = foreign_filter();
	shared->foreign_after = call_foreign();
}

/* Calls of 32 bits have other numbers. */
TEST(calls_of_32_bits_fail)
{
#ifndef __x86_64__
	skip();
#endif
	NOT_EMULATED("int 0x80");
	if (CONFINE_SANITIZED)
		skip();
	in_child(call_foreign_before_and_after);
	assert_int_equal(shared->rc, 0);
	assert_int_equal(shared->foreign_after, -ENOSYS);
}

static void *do_nothing(void *arg)
{
	return arg;
}

static const char *find_what_fails(void)
{
	pthread_t thread;
	int pipe_ends[2], size = 0;

	if (pthread_create(&thread, NULL, do_nothing, NULL) ||
	    pthread_join(thread, NULL))
		return "a thread";
	if (pipe(pipe_ends) || ioctl(pipe_ends[0], FIONREAD, &size))
		return "a pipe";
	if (socket(AF_UNIX, SOCK_STREAM, 0) < 0 || socket(AF_INET, SOCK_STREAM, 0) < 0)
		return "a socket";
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) == MAP_FAILED)
		return "code of a library";
	if (open("/dev/null", O_RDWR) < 0)
		return "/dev/null";
	return NULL;
}

static void do_what_libraries_do(void)
{
	shared->rc = foreign_filter();
	shared->failed = find_what_fails();
}

TEST(calls_of_foreign_libraries_are_allowed)
{
	if (CONFINE_SANITIZED)
		skip();
	in_child(do_what_libraries_do);
	assert_int_equal(shared->rc, 0);
	assert_null(shared->failed);
}

/* ---- devices ---- */

static const char *const devices[] = {
	"/dev/ptmx", "/dev/kmsg", "/dev/fuse", "/dev/net/tun", "/dev/kvm",
};

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The first that this process can open; NULL: none. */
static const char *find_device(void)
{
	for (size_t i = 0; i < COUNT(devices); i++)
		if (opens(devices[i], O_RDONLY))
			return devices[i];
	return NULL;
}

static const char *find_what_is_hidden(void)
{
	char here[] = "/tmp/pmi2x-foreign-XXXXXX", file[64], other[64];
	bool moved;

	if (!opens("/dev/null", O_RDWR) || !opens("/dev/urandom", O_RDONLY) ||
	    !opens("/proc/self/stat", O_RDONLY) || !opens("/etc/passwd", O_RDONLY))
		return "what everybody opens";
	if (!mkdtemp(here))
		return "a new directory";
	snprintf(file, sizeof(file), "%s/file", here);
	snprintf(other, sizeof(other), "%s.moved", here);
	moved = opens(file, O_WRONLY | O_CREAT) && !rename(file, other);
	unlink(other);
	unlink(file);
	rmdir(here);
	return moved ? NULL : "a file that is written and moved";
}

static const char *find_what_is_open(const char *device)
{
	char path[64];

	if (opens(device, O_RDONLY))
		return device;
	snprintf(path, sizeof(path), "/proc/self/root%s", device);
	if (opens(path, O_RDONLY))
		return "/proc/self/root";
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)getppid(), device);
	return opens(path, O_RDONLY) ? "/proc/PID/root" : NULL;
}

static void hide_devices(void)
{
	const char *device = find_device();

	shared->failed = NULL;
	shared->rc = foreign_hide_devices();
	if (!shared->rc)
		shared->failed = find_what_is_hidden();
	if (!shared->rc && !shared->failed && device)
		shared->failed = find_what_is_open(device);
}

TEST(devices_are_hidden_and_all_else_is_not)
{
	in_child(hide_devices);
	if (shared->rc == -ENOSYS || shared->rc == -EOPNOTSUPP) {
		print_message("no Landlock here\n");
		skip();
	}
	assert_int_equal(shared->rc, 0);
	if (shared->failed)
		fail_msg("%s", shared->failed);
}

int main(void)
{
	if (getenv("PMI2X_EMULATOR")) {
		print_message("SKIP: the emulator has no filter of system calls\n");
		return 77;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return unit_run(NULL, NULL, NULL);
}
