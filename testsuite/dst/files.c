/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of descriptors, and all files that are no sockets. */
#include "testsuite/dst/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "testsuite/dst/memory.h"
#include "testsuite/dst/sockets.h"

struct descriptor {
	struct file *file; /* NULL: closed, or never open */
	struct process *owner;
	bool cloexec;
};

struct epoll_item {
	struct epoll_item *next;
	int fd;
	struct file *file; /* not referenced: closing removes it */
	struct epoll_event event;
	uint64_t seen; /* changes of the file that have been told */
	bool armed;
};

static struct descriptor *table;
static int next_fd, next_number;
static unsigned open_count;

int __wrap_close(int fd);
int __wrap_dup2(int from, int to);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epfd, struct epoll_event *out, int max, int timeout);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd_read(int fd, eventfd_t *count);
int __wrap_eventfd_write(int fd, eventfd_t count);
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t at,
		       int flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_ftruncate(int fd, off_t len);
int __wrap_fallocate(int fd, int mode, off_t at, off_t len);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __real_close(int fd);
int __real_fcntl(int fd, int cmd, ...);
int __real_fstat(int fd, struct stat *st);
int __real_memfd_create(const char *name, unsigned flags);
int __real_ftruncate(int fd, off_t len);
int __real_fallocate(int fd, int mode, off_t at, off_t len);
int __real_fchmod(int fd, mode_t mode);
int __real_open(const char *path, int flags, ...);

/* ---- the table ---- */

struct file *file_new(enum file_kind kind)
{
	struct file *f = __real_calloc(1, sizeof(*f));

	f->kind = kind;
	f->refs = 1;
	f->real_fd = -1;
	f->number = next_number++;
	return f;
}

struct file *file_ref(struct file *f)
{
	f->refs++;
	return f;
}

static void drop_items(struct file *f)
{
	struct epoll_item *item;

	while ((item = f->items)) {
		f->items = item->next;
		__real_free(item);
	}
}

void file_unref(struct file *f)
{
	if (--f->refs)
		return;
	if (f->kind == FILE_SOCKET)
		socket_close(f);
	if (f->real_fd >= 0)
		__real_close(f->real_fd);
	drop_items(f);
	__real_free(f);
}

static struct descriptor *find(int fd)
{
	if (fd < FIRST_FD || fd >= next_fd || !table[fd - FIRST_FD].file) {
		errno = EBADF;
		return NULL;
	}
	return &table[fd - FIRST_FD];
}

struct file *file_find(int fd)
{
	struct descriptor *d = find(fd);

	return d ? d->file : NULL;
}

int file_real_fd(const struct file *f)
{
	return f->real_fd;
}

bool fd_available(void)
{
	return process_current()->starved_until <= now();
}

int fd_open(struct file *f)
{
	if (!fd_available()) {
		file_unref(f);
		errno = EMFILE;
		return -1;
	}
	if (next_fd - FIRST_FD == FDS_MAX)
		abort();
	table[next_fd - FIRST_FD] = (struct descriptor){
		.file = f, .owner = process_current(),
	};
	process_current()->fds++;
	open_count++;
	return next_fd++;
}

/* A file that is closed leaves all sets: its last descriptor is all that we count. */
static void leave_sets(const struct process *p, int fd)
{
	for (int i = 0; i < next_fd - FIRST_FD; i++) {
		struct file *set = table[i].file;
		struct epoll_item **at;

		if (!set || set->kind != FILE_EPOLL || table[i].owner != p)
			continue;
		for (at = &set->items; *at && (*at)->fd != fd;)
			at = &(*at)->next;
		if (*at) {
			struct epoll_item *item = *at;

			*at = item->next;
			__real_free(item);
		}
	}
}

static void close_descriptor(struct descriptor *d, int fd)
{
	struct file *f = d->file;

	d->file = NULL;
	d->owner->fds--;
	open_count--;
	if (f->kind == FILE_SOCKET)
		leave_sets(d->owner, fd);
	file_unref(f);
}

int __wrap_close(int fd)
{
	struct descriptor *d = find(fd);

	task_maybe_switch();
	if (!d || d->owner != process_current()) {
		failed("close(%d), which is %s", fd,
		       d ? "another process's" : "not open");
		errno = EBADF;
		return -1;
	}
	trace("close", fd, d->file->number);
	close_descriptor(d, fd);
	return 0;
}

void fd_give(int fd, struct process *to)
{
	struct descriptor *d = find(fd);

	if (!d)
		return;
	d->owner->fds--;
	d->owner = to;
	to->fds++;
}

void files_close_all(struct process *p)
{
	for (int i = 0; i < next_fd - FIRST_FD; i++)
		if (table[i].file && table[i].owner == p)
			close_descriptor(&table[i], FIRST_FD + i);
}

unsigned files_open(void)
{
	return open_count;
}

void files_begin(void)
{
	if (!table)
		table = __real_calloc(FDS_MAX, sizeof(*table));
	memset(table, 0, (next_fd > FIRST_FD ? next_fd - FIRST_FD : 0) *
				 sizeof(*table));
	next_fd = FIRST_FD;
	next_number = 1;
	open_count = 0;
}

static int duplicate(int fd)
{
	struct file *f = file_find(fd);

	return f ? fd_open(file_ref(f)) : -1;
}

int __wrap_dup2(int from, int to)
{
	errno = ENOSYS;
	return -1;
}

int __wrap_fcntl(int fd, int cmd, ...)
{
	struct descriptor *d = find(fd);
	va_list args;
	int arg;

	va_start(args, cmd);
	arg = va_arg(args, int);
	va_end(args);
	if (!d)
		return -1;
	switch (cmd) {
	case F_GETFL:
		return d->file->nonblocking ? O_NONBLOCK : 0;
	case F_SETFL:
		d->file->nonblocking = arg & O_NONBLOCK;
		return 0;
	case F_GETFD:
		return d->cloexec ? FD_CLOEXEC : 0;
	case F_SETFD:
		d->cloexec = arg & FD_CLOEXEC;
		return 0;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return duplicate(fd);
	default:
		return __real_fcntl(d->file->real_fd, cmd, arg);
	}
}

int __wrap_fstat(int fd, struct stat *st)
{
	struct file *f = file_find(fd);

	if (!f)
		return -1;
	if (f->kind == FILE_MEMORY)
		return __real_fstat(f->real_fd, st);
	memset(st, 0, sizeof(*st));
	st->st_mode = f->kind == FILE_SOCKET ? S_IFSOCK : 0;
	st->st_ino = f->number;
	return 0;
}

/* ---- readiness ---- */

static bool item_is_ready(struct epoll_item *item, uint32_t *events)
{
	uint64_t changes = file_changes(item->file);

	*events = file_events(item->file) &
		  (item->event.events | EPOLLERR | EPOLLHUP);
	if (!*events)
		return false;
	return !(item->event.events & EPOLLET) || item->armed ||
	       changes != item->seen;
}

uint32_t file_events(struct file *f)
{
	uint32_t events;

	switch (f->kind) {
	case FILE_SOCKET:
		return socket_events(f);
	case FILE_EVENT:
		return EPOLLOUT | (f->count ? EPOLLIN : 0);
	case FILE_PROCESS:
		return f->process->dead ? EPOLLIN : 0;
	case FILE_EPOLL:
		for (struct epoll_item *i = f->items; i; i = i->next)
			if (item_is_ready(i, &events))
				return EPOLLIN;
		return 0;
	default:
		return EPOLLIN | EPOLLOUT;
	}
}

uint64_t file_changes(struct file *f)
{
	return f->kind == FILE_SOCKET ? socket_changes(f) : f->written;
}

struct polled {
	struct pollfd *fds;
	nfds_t n;
	int ready;
};

static bool poll_is_ready(void *arg)
{
	struct polled *p = arg;

	p->ready = 0;
	for (nfds_t i = 0; i < p->n; i++) {
		struct pollfd *fd = &p->fds[i];
		struct file *f = fd->fd < 0 ? NULL : file_find(fd->fd);

		fd->revents = f ? file_events(f) & ((uint16_t)fd->events |
						    POLLERR | POLLHUP) : 0;
		if (fd->fd >= 0 && !f)
			fd->revents = POLLNVAL;
		p->ready += fd->revents != 0;
	}
	return p->ready;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct polled p = { fds, n, 0 };

	task_maybe_switch();
	if (timeout && draw_once_in(hardship.interrupts)) {
		errno = EINTR;
		return -1;
	}
	if (!task_wait(poll_is_ready, &p,
		       timeout < 0 ? NEVER : now() + timeout * MS))
		return 0;
	poll_is_ready(&p);
	return p.ready;
}

int __wrap_epoll_create1(int flags)
{
	return fd_open(file_new(FILE_EPOLL));
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct file *set = file_find(epfd), *f = file_find(fd);
	struct epoll_item **at;

	if (!set || !f) {
		failed("epoll_ctl(%d) of what is not open", fd);
		return -1;
	}
	for (at = &set->items; *at && (*at)->fd != fd;)
		at = &(*at)->next;
	if (op == EPOLL_CTL_ADD ? !!*at : !*at) {
		errno = op == EPOLL_CTL_ADD ? EEXIST : ENOENT;
		return -1;
	}
	if (op == EPOLL_CTL_DEL) {
		struct epoll_item *item = *at;

		*at = item->next;
		__real_free(item);
		return 0;
	}
	if (!*at)
		*at = __real_calloc(1, sizeof(**at));
	(*at)->fd = fd;
	(*at)->file = f;
	(*at)->event = *event;
	(*at)->armed = true;
	return 0;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *out, int max, int timeout)
{
	struct file *set = file_find(epfd);
	int n = 0;

	if (!set || timeout) {
		failed("epoll_wait is only known without waiting");
		return -1;
	}
	for (struct epoll_item *i = set->items; i && n < max; i = i->next) {
		uint32_t events;

		if (!item_is_ready(i, &events))
			continue;
		i->armed = false;
		i->seen = file_changes(i->file);
		out[n] = i->event;
		out[n++].events = events;
	}
	trace("epoll_wait", epfd, n);
	return n;
}

/* ---- eventfds ---- */

int __wrap_eventfd(unsigned count, int flags)
{
	struct file *f = file_new(FILE_EVENT);

	f->count = count;
	f->nonblocking = flags & EFD_NONBLOCK;
	return fd_open(f);
}

static int event_read(struct file *f, uint64_t *count)
{
	task_maybe_switch();
	if (!f->count) {
		errno = EAGAIN; /* all of ours do not block */
		return -1;
	}
	*count = f->count;
	f->count = 0;
	return 0;
}

int __wrap_eventfd_read(int fd, eventfd_t *count)
{
	struct file *f = file_find(fd);

	return f ? event_read(f, count) : -1;
}

int __wrap_eventfd_write(int fd, eventfd_t count)
{
	struct file *f = file_find(fd);

	task_maybe_switch();
	if (!f) {
		failed("eventfd_write(%d), which is not open", fd);
		return -1;
	}
	f->count += count;
	f->written++;
	return 0;
}

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t at,
		       int flags)
{
	struct file *f = file_find(fd);

	if (!f || f->kind != FILE_EVENT)
		return -1;
	return event_read(f, iov->iov_base) ? -1 : 8;
}

/* ---- memory objects: real ones ---- */

static int open_memory(int real_fd)
{
	struct file *f;

	if (real_fd < 0)
		return -1;
	f = file_new(FILE_MEMORY);
	f->real_fd = real_fd;
	return fd_open(f);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return open_memory(__real_memfd_create(name, flags));
}

static int real_of(int fd)
{
	struct file *f = file_find(fd);

	return f ? f->real_fd : -1;
}

int __wrap_ftruncate(int fd, off_t len)
{
	return __real_ftruncate(real_of(fd), len);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
	return __real_fallocate(real_of(fd), mode, at, len);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return __real_fchmod(real_of(fd), mode);
}

/* Only what reopens a memory object is known. */
int __wrap_open(const char *path, int flags, ...)
{
	char real[64];
	int fd;

	if (sscanf(path, "/proc/self/fd/%d", &fd) != 1) {
		errno = ENOENT;
		return -1;
	}
	snprintf(real, sizeof(real), "/proc/self/fd/%d", real_of(fd));
	return open_memory(__real_open(real, flags));
}
