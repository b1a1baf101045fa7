/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that fail on request. */
#include "refusal.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

static _Thread_local struct {
	bool armed;
	bool for_good;
	enum refusal what;
	uint32_t count;
	uint32_t nth;
} state;

void refusal_arm(enum refusal what, uint32_t nth, bool for_good)
{
	state.what = what;
	state.nth = nth;
	state.for_good = for_good;
	state.count = 0;
	state.armed = true;
}

uint32_t refusal_disarm(void)
{
	state.armed = false;
	return state.count;
}

static bool refused(enum refusal what)
{
	if (!state.armed || state.what != what)
		return false;
	state.count++;
	if (state.for_good ? state.count < state.nth :
			     state.count != state.nth)
		return false;
	errno = ENOMEM;
	return true;
}

#define WRAP(type, failure, what, name, parameters, arguments) \
	type __real_##name parameters;                          \
	type __wrap_##name parameters;                          \
	type __wrap_##name parameters                           \
	{                                                       \
		return refused(what) ? failure : __real_##name arguments; \
	}

WRAP(void *, NULL, REFUSE_MEMORY, malloc, (size_t size), (size))
WRAP(void *, NULL, REFUSE_MEMORY, calloc, (size_t count, size_t size),
     (count, size))
WRAP(void *, NULL, REFUSE_MEMORY, realloc, (void *p, size_t size), (p, size))
WRAP(int, -1, REFUSE_SYSTEM, memfd_create,
     (const char *name, unsigned int flags), (name, flags))
WRAP(int, -1, REFUSE_SYSTEM, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, -1, REFUSE_SYSTEM, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, -1, REFUSE_SYSTEM, fstat, (int fd, struct stat *st), (fd, st))
WRAP(int, -1, REFUSE_SYSTEM, madvise, (void *at, size_t len, int advice),
     (at, len, advice))
WRAP(int, -1, REFUSE_SYSTEM, fallocate,
     (int fd, int mode, off_t offset, off_t len), (fd, mode, offset, len))
WRAP(int, -1, REFUSE_SYSTEM, poll, (struct pollfd *fds, nfds_t n, int timeout),
     (fds, n, timeout))
WRAP(ssize_t, -1, REFUSE_SYSTEM, send,
     (int fd, const void *data, size_t len, int flags), (fd, data, len, flags))
WRAP(ssize_t, -1, REFUSE_SYSTEM, recvmsg,
     (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(void *, MAP_FAILED, REFUSE_SYSTEM, mmap,
     (void *at, size_t len, int prot, int flags, int fd, off_t offset),
     (at, len, prot, flags, fd, offset))

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

/* Calls that are wrapped here pass a number at most. */
int __wrap_fcntl(int fd, int command, ...)
{
	va_list ap;
	long argument;

	va_start(ap, command);
	argument = va_arg(ap, long);
	va_end(ap);
	return refused(REFUSE_SYSTEM) ? -1 :
					__real_fcntl(fd, command, argument);
}

int __wrap_open(const char *path, int flags, ...)
{
	return refused(REFUSE_SYSTEM) ? -1 : __real_open(path, flags);
}
