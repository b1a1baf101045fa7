/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a file or pipe, one after another, by a reader that can do something meanwhile. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "libutil/buf.h"

#define LINES_IDLE_MS 10

struct lines {
	int fd; /* the owner's */
	/* Nothing more has come for LINES_IDLE_MS; called before each read that waits. */
	void (*idle)(void *arg);
	void *arg;
	struct buf in;
	size_t begin;    /* from here on it has not been returned */
	size_t searched; /* up to here there is no newline */
	int error;       /* of the last read, or 0 */
};

void lines_init(struct lines *l, int fd, void (*idle)(void *arg), void *arg);
void lines_free(struct lines *l);
/*
 * The next line, with its newline if it has one, and room for one byte more; valid until
 * the next call. Its length, or 0: there are no more, a signal has come, or l->error.
 */
size_t lines_next(struct lines *l, char **line);
