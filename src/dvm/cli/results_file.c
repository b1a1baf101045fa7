/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a batch, as a file: results_file.h. */
#include "dvm/cli/results_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/task_text.h"
#include "libio/clock.h"

#define SYNC_S 1.0
#define RETRY_MS 1000

/* ---- the file ---- */

/* The offset at which the last whole line ends. */
static off_t whole_lines(int fd)
{
	char piece[4096];
	off_t end = lseek(fd, 0, SEEK_END);

	while (end > 0) {
		off_t begin = end > (off_t)sizeof(piece) ? end - (off_t)sizeof(piece) : 0;
		ssize_t n = pread(fd, piece, (size_t)(end - begin), begin);
		char *newline = n > 0 ? memrchr(piece, '\n', (size_t)n) : NULL;

		if (newline)
			return begin + (newline - piece) + 1;
		if (n <= 0)
			return end;
		end = begin;
	}
	return 0;
}

void results_file_keep(const char *path)
{
	char *other;

	if (access(path, F_OK) < 0)
		return;
	for (unsigned i = 1;; i++) {
		if (asprintf(&other, "%s.%u", path, i) < 0)
			die("out of memory");
		if (access(other, F_OK) < 0)
			break;
		free(other);
	}
	if (rename(path, other) < 0)
		die("cannot rename %s: %s", path, strerror(errno));
	free(other);
}

int results_file_open(struct results_file *f, const char *path)
{
	*f = (struct results_file){
		.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666),
	};
	buf_init(&f->left, SIZE_MAX / 2);
	if (f->fd < 0)
		return -errno;
	f->path = strdup(path);
	if (!f->path)
		die("out of memory");
	return ftruncate(f->fd, whole_lines(f->fd)) < 0 ? -errno : 0;
}

static json_t *line_of(const struct sent_task *of, json_t *task)
{
	json_t *o = json_pack("{s:I,s:s}", "line", (json_int_t)of->line, "command",
			      of->command);

	if (!o || json_object_update_missing(o, task))
		die("out of memory");
	json_object_del(o, "argv");
	json_object_del(o, "argv_cut");
	json_object_del(o, "number");
	make_texts(o);
	if (of->journal)
		json_object_set_new(o, "journal", json_true());
	if (of->retry)
		json_object_set_new(o, "retry", json_true());
	return o;
}

void results_file_add(struct results_file *f, const struct sent_task *of, json_t *task)
{
	json_t *o;
	char *text;

	if (f->fd < 0)
		return;
	o = line_of(of, task);
	text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER |
			      JSON_REAL_PRECISION(16));
	if (!text || buf_puts(&f->left, text) || buf_puts(&f->left, "\n"))
		die("out of memory");
	free(text);
	json_decref(o);
}

static void note_error(struct results_file *f, int error)
{
	if (error && !f->error)
		fprintf(stderr, "pmi2x-dvm: results cannot be written to %s: %s; they wait in memory until they can\n",
			f->path, strerror(error));
	f->error = error;
}

static void sync_now_and_then(struct results_file *f)
{
	double now = clock_s(CLOCK_MONOTONIC);

	if (now - f->synced < SYNC_S)
		return;
	(void)fdatasync(f->fd);
	f->synced = now;
}

void results_file_flush(struct results_file *f)
{
	ssize_t n;

	if (f->fd < 0 || !f->left.len)
		return;
	do {
		n = write(f->fd, f->left.data, f->left.len);
		if (n > 0)
			buf_consume(&f->left, (size_t)n);
	} while (f->left.len && (n > 0 || (n < 0 && errno == EINTR)));
	note_error(f, f->left.len ? errno : 0);
	sync_now_and_then(f);
}

bool results_file_close(struct results_file *f)
{
	struct pollfd p = { .fd = interrupt_fd(), .events = POLLIN };
	bool whole;

	results_file_flush(f);
	while (f->fd >= 0 && f->left.len && poll(&p, 1, RETRY_MS) == 0)
		results_file_flush(f);
	whole = f->fd < 0 || (!f->left.len && !fdatasync(f->fd));
	buf_free(&f->left);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	return whole;
}
