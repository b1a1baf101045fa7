/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads are tasks; clocks, futexes, randomness and pids are the simulation's. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testsuite/dst/files.h"
#include "testsuite/dst/memory.h"
#include "testsuite/dst/threads.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr,
			  void *(*fn)(void *arg), void *arg);
int __wrap_pthread_join(pthread_t thread, void **value);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
				const struct timespec *until);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_init(pthread_cond_t *cond,
			     const pthread_condattr_t *attr);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
void __wrap_randombytes_buf(void *to, size_t len);
ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags);
pid_t __wrap_getpid(void);
char *__wrap_getenv(const char *name);
int __wrap_kill(pid_t pid, int signal);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
long __wrap_syscall(long number, ...);
_Noreturn void __wrap_exit(int status);
bool __wrap_process_is_stopped(pid_t pid);
_Noreturn void __real_exit(int status);

/* ---- threads ---- */

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr,
			  void *(*fn)(void *arg), void *arg)
{
	struct task *t = task_start(process_current(), fn, arg);

	memcpy(out, &t, sizeof(t));
	return 0;
}

static struct task *task_of(pthread_t thread)
{
	struct task *t;

	memcpy(&t, &thread, sizeof(t));
	return t;
}

static bool has_ended(void *arg)
{
	return task_has_ended(arg);
}

static int join(pthread_t thread, uint64_t until)
{
	struct task *t = task_of(thread);

	if (!task_wait(has_ended, t, until))
		return ETIMEDOUT;
	task_forget(t);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **value)
{
	return join(thread, NEVER);
}

int __wrap_pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
				const struct timespec *until)
{
	return join(thread, until->tv_sec * SEC + until->tv_nsec);
}

int __wrap_pthread_detach(pthread_t thread)
{
	task_forget(task_of(thread));
	return 0;
}

/* ---- locks: the first word says whether it is taken ---- */

static bool is_free(void *arg)
{
	return !*(int *)arg;
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr)
{
	memset(mutex, 0, sizeof(*mutex));
	return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	if (*(int *)mutex)
		failed("a mutex that is locked is destroyed");
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (task_current())
		task_wait(is_free, mutex, NEVER);
	*(int *)mutex = 1;
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!*(int *)mutex)
		failed("a mutex is unlocked that is not locked");
	*(int *)mutex = 0;
	return 0;
}

int __wrap_pthread_cond_init(pthread_cond_t *cond,
			     const pthread_condattr_t *attr)
{
	memset(cond, 0, sizeof(*cond));
	return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
	return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	++*(unsigned *)cond;
	return 0;
}

struct cond_wait {
	unsigned *count;
	unsigned before;
};

static bool is_signalled(void *arg)
{
	struct cond_wait *w = arg;

	return *w->count != w->before;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct cond_wait w = { (unsigned *)cond, *(unsigned *)cond };

	__wrap_pthread_mutex_unlock(mutex);
	task_wait(is_signalled, &w, NEVER);
	return __wrap_pthread_mutex_lock(mutex);
}

/* ---- futexes: known by what is mapped there ---- */

struct futex_wait {
	struct futex_wait *next;
	const struct file *file;
	off_t offset;
	struct process *process;
	bool woken;
};

static struct futex_wait *futex_waits;

static bool is_woken(void *arg)
{
	return ((struct futex_wait *)arg)->woken;
}

static void forget_futex(struct futex_wait *w)
{
	struct futex_wait **at = &futex_waits;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

static long futex_wait(const struct mapping *m, const uint32_t *at,
		       uint32_t expected, const struct timespec *limit)
{
	struct futex_wait w = {
		futex_waits, m->file, (const char *)at - m->at + m->offset,
		process_current(), false,
	};
	bool woken;

	if (*at != expected) {
		errno = EAGAIN;
		return -1;
	}
	if (draw_once_in(hardship.interrupts)) {
		errno = EINTR;
		return -1;
	}
	futex_waits = &w;
	woken = task_wait(is_woken, &w, limit ? now() + limit->tv_sec * SEC +
							limit->tv_nsec : NEVER);
	forget_futex(&w);
	if (woken)
		return 0;
	errno = ETIMEDOUT;
	return -1;
}

static long futex_wake(const struct mapping *m, const uint32_t *at)
{
	off_t offset = (const char *)at - m->at + m->offset;
	long n = 0;

	for (struct futex_wait *w = futex_waits; w; w = w->next) {
		if (w->file != m->file || w->offset != offset || w->woken)
			continue;
		w->woken = true;
		n++;
	}
	return n;
}

void threads_forget(const struct process *p)
{
	struct futex_wait **at = &futex_waits;

	while (*at) {
		if ((*at)->process == p)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
}

static long open_pidfd(int pid)
{
	struct process *p = process_by_pid(pid);
	struct file *f;

	if (!p || p->dead) {
		errno = ESRCH;
		return -1;
	}
	f = file_new(FILE_PROCESS);
	f->process = p;
	return fd_open(f);
}

long __wrap_syscall(long number, ...)
{
	const struct mapping *m;
	const uint32_t *at;
	va_list args;
	long op, value, pid;
	const struct timespec *limit;

	va_start(args, number);
	if (number == SYS_pidfd_open) {
		pid = va_arg(args, int);
		va_end(args);
		return open_pidfd(pid);
	}
	at = va_arg(args, const uint32_t *);
	op = va_arg(args, int);
	value = va_arg(args, int);
	limit = va_arg(args, const struct timespec *);
	va_end(args);
	m = memory_mapping(at);
	if (number != SYS_futex || !m || !m->file) {
		failed("system call %ld is not known", number);
		errno = ENOSYS;
		return -1;
	}
	trace("futex", op, value);
	task_maybe_switch();
	return op == FUTEX_WAKE ? futex_wake(m, at) :
				  futex_wait(m, at, value, limit);
}

/* ---- clocks, randomness, processes ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	out->tv_sec = now() / SEC;
	out->tv_nsec = now() % SEC;
	return 0;
}

void __wrap_randombytes_buf(void *to, size_t len)
{
	unsigned char *at = to;

	while (len--)
		*at++ = draw();
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
	__wrap_randombytes_buf(to, len);
	return len;
}

pid_t __wrap_getpid(void)
{
	return process_current()->pid;
}

char *__wrap_getenv(const char *name)
{
	struct process *p = process_current();

	return p->getenv ? (char *)p->getenv(p, name) : NULL;
}

bool __wrap_process_is_stopped(pid_t pid)
{
	const struct process *p = process_by_pid(pid);

	return p && p->stopped_until > now();
}

int __wrap_kill(pid_t pid, int signal)
{
	failed("kill(%d, %d)", (int)pid, signal);
	return -1;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	errno = ECHILD;
	return -1;
}

_Noreturn void __wrap_exit(int status)
{
	if (!task_current())
		__real_exit(status);
	process_kill(process_current(), status << 8);
	abort(); /* not reached */
}
