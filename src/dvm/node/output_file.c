/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that writes complete output to files: output_file.h. */
#include "dvm/node/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/common/inherited_fds.h"
#include "libio/fd.h"

#define SOCKET_FD 3
#define NAMES_TRIED 10000 /* files of one task, of earlier runs */
#define NAME_ROOM 96

/* A file, which is made for the first bytes of its stream. */
struct stream_file {
	const char *suffix;
	int fd; /* -1: not made, or closed */
	int error; /* the first, a negative errno */
	char name[NAME_ROOM]; /* "": not made */
};

struct writing {
	const char *dir, *name;
	struct stream_file streams[2];
};

static void take_name(struct stream_file *s, const char *name, unsigned try)
{
	if (try)
		snprintf(s->name, sizeof(s->name), "%s.%u.%s", name, try, s->suffix);
	else
		snprintf(s->name, sizeof(s->name), "%s.%s", name, s->suffix);
}

/* A file of an earlier run, or of another part of the task, stays as it is. */
static int make_file(const struct writing *w, struct stream_file *s)
{
	char path[PATH_MAX];

	if (mkdir(w->dir, 0777) < 0 && errno != EEXIST)
		return -errno;
	for (unsigned i = 0; i < NAMES_TRIED; i++) {
		take_name(s, w->name, i);
		if (snprintf(path, sizeof(path), "%s/%s", w->dir, s->name) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		s->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
		if (s->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

/* After an error the rest is dropped: the task goes on. */
static void take(struct writing *w, const char *message, size_t len)
{
	struct stream_file *s = &w->streams[message[0] == 2];

	if (s->error)
		return;
	if (s->fd < 0) {
		s->error = make_file(w, s);
		if (s->error)
			s->name[0] = '\0';
	}
	s->error = s->error ? s->error : fd_write_all(s->fd, message + 1, len - 1);
}

static void close_file(struct stream_file *s)
{
	if (s->fd >= 0 && close(s->fd) < 0 && !s->error) /* a file server may only say it now */
		s->error = -errno;
	s->fd = -1;
}

static void answer(const struct writing *w, int fd)
{
	const struct stream_file *s = w->streams;
	int error = s[0].error ? s[0].error : s[1].error;
	char text[OUTPUT_FILE_ANSWER];
	size_t n = 1;

	text[0] = '\0';
	if (error)
		n = 1 + (size_t)snprintf(text, sizeof(text) / 2, "%s", strerror(-error));
	for (int i = 0; i < 2; i++)
		if (s[i].name[0])
			n += 1 + (size_t)snprintf(text + n, sizeof(text) - n, "%s", s[i].name);
	(void)send(fd, text, n, MSG_NOSIGNAL);
}

static int keep_socket(int fd)
{
	int null = open("/dev/null", O_RDWR);

	if (fd != SOCKET_FD)
		dup2(fd, SOCKET_FD);
	for (int i = 0; i < SOCKET_FD && null >= 0; i++)
		dup2(null, i);
	inherited_fds_close(SOCKET_FD + 1);
	return SOCKET_FD;
}

void output_file_main(int fd, const char *dir, const char *name)
{
	static char message[1 + OUTPUT_FILE_PIECE];
	struct writing w = {
		.dir = dir, .name = name,
		.streams = { { .suffix = "out", .fd = -1 }, { .suffix = "err", .fd = -1 } },
	};
	ssize_t n;

	prctl(PR_SET_NAME, "pmi2x-output");
	signal(SIGXFSZ, SIG_IGN);
	fd = keep_socket(fd);
	while ((n = recv(fd, message, sizeof(message), 0)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			take(&w, message, (size_t)n);
	close_file(&w.streams[0]);
	close_file(&w.streams[1]);
	answer(&w, fd);
	_exit(0);
}
