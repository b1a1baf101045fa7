/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace file of a step: a line for srun, then one for each node. */
#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/clock.h"
#include "supervisor/process_time.h"

#define TRACE_NODES_MAX (1u << 20) /* positions; more are no step's */

struct trace_file {
	FILE *file;
	char path[PATH_MAX];
	const struct log_hook *log;
	uint32_t expected, received;
	unsigned char *seen; /* a byte for each position */
	bool failed;
};

static int open_new(const struct trace_file *t)
{
	return open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int make(struct trace_file *t, const char *dir, const char *jobid)
{
	int fd, n;

	if (dir[0] != '/')
		return -EINVAL;
	n = snprintf(t->path, sizeof(t->path), "%s/pmi2x-trace.%s.jsonl", dir,
		     jobid);
	if (n < 0 || (size_t)n >= sizeof(t->path))
		return -ENAMETOOLONG;
	fd = open_new(t);
	if (fd < 0)
		return -errno;
	t->file = fdopen(fd, "w");
	if (t->file)
		return 0;
	close(fd);
	return -ENOMEM;
}

static const char *advice(int error)
{
	switch (error) {
	case -EINVAL:
		return "the path is not absolute";
	case -EEXIST:
		return "a trace of a step with this number exists: move that file away";
	default:
		return strerror(-error);
	}
}

struct trace_file *trace_file_create(const char *dir, const char *jobid,
				     const struct log_hook *log)
{
	struct trace_file *t = calloc(1, sizeof(*t));
	int rc = t ? make(t, dir, jobid) : -ENOMEM;

	if (rc) {
		log_error(log, "no trace of step %s in %s: %s", jobid, dir,
			  advice(rc));
		free(t);
		return NULL;
	}
	t->log = log;
	fprintf(t->file,
		"{\"pmi2x-trace\":1,\"step\":\"%s\",\"realtime\":%lld,\"monotonic\":%lld,\"start\":%lld}\n",
		jobid, (long long)clock_ns(CLOCK_REALTIME),
		(long long)clock_ns(CLOCK_MONOTONIC),
		(long long)process_start());
	return t;
}

void trace_file_expect(struct trace_file *t, uint32_t nodes)
{
	unsigned char *seen;

	if (!t || nodes > TRACE_NODES_MAX - t->expected)
		return;
	seen = realloc(t->seen, t->expected + nodes);
	if (!seen)
		return;
	memset(seen + t->expected, 0, nodes);
	t->seen = seen;
	t->expected += nodes;
}

void trace_file_add(struct trace_file *t, uint32_t position, const void *data,
		    size_t len)
{
	if (!t || position >= t->expected || t->seen[position] || !len ||
	    memchr(data, '\n', len) || memchr(data, '\0', len))
		return;
	t->seen[position] = 1;
	t->received++;
	if (fwrite(data, 1, len, t->file) != len || putc('\n', t->file) == EOF)
		t->failed = true;
}

bool trace_file_missing(const struct trace_file *t)
{
	return t && t->received < t->expected;
}

void trace_file_close(struct trace_file *t)
{
	if (!t)
		return;
	fprintf(t->file,
		"{\"end\":true,\"nodes\":%u,\"received\":%u,\"monotonic\":%lld}\n",
		t->expected, t->received,
		(long long)clock_ns(CLOCK_MONOTONIC));
	if (fclose(t->file) || t->failed)
		log_error(t->log, "%s is not complete: is the disk full?",
			  t->path);
	else if (t->received < t->expected)
		log_info(t->log, "%s: %u of %u nodes have sent no trace",
			 t->path, t->expected - t->received, t->expected);
	free(t->seen);
	free(t);
}
