/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a file or pipe: lines.h. */
#include "dvm/cli/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

void lines_init(struct lines *l, int fd, void (*idle)(void *arg), void *arg)
{
	*l = (struct lines){ .fd = fd, .idle = idle, .arg = arg };
	buf_init(&l->in, SIZE_MAX / 2);
}

void lines_free(struct lines *l)
{
	buf_free(&l->in);
}

/* Whole lines are returned first: only a part of one, or nothing, is kept. */
static ssize_t read_more(struct lines *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	ssize_t n;

	buf_consume(&l->in, l->begin);
	l->searched -= l->begin;
	l->begin = 0;
	if (buf_reserve(&l->in, READ_BYTES + 1)) {
		errno = ENOMEM;
		return -1;
	}
	if (!poll(&p, 1, LINES_IDLE_MS))
		l->idle(l->arg);
	n = read(l->fd, l->in.data + l->in.len, READ_BYTES);
	l->in.len += n > 0 ? (size_t)n : 0;
	return n;
}

static size_t take(struct lines *l, size_t end, char **line)
{
	size_t len = end - l->begin;

	*line = l->in.data + l->begin;
	l->begin = l->searched = end;
	return len;
}

size_t lines_next(struct lines *l, char **line)
{
	const char *newline = NULL;
	ssize_t n;

	for (;;) {
		if (l->searched < l->in.len)
			newline = memchr(l->in.data + l->searched, '\n',
					 l->in.len - l->searched);
		if (newline)
			return take(l, (size_t)(newline - l->in.data) + 1, line);
		l->searched = l->in.len;
		n = read_more(l);
		if (n < 0)
			l->error = errno == EINTR ? 0 : errno;
		if (n < 0)
			return 0;
		if (!n)
			return take(l, l->in.len, line);
	}
}
