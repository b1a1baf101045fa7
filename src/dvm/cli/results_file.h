/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of a batch, as a file: a line of JSON for each task that has ended, with
 * what it was, how it ended, and the last 4 KiB of its output. A full disk loses nothing:
 * lines wait in memory until there is room.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "libutil/buf.h"

struct results_file {
	int fd;          /* -1: there is none */
	char *path;
	struct buf left; /* not yet written */
	int error;       /* why it is not, or 0 */
	double synced;   /* when it was written to the disk, as of CLOCK_MONOTONIC */
};

/* The task of a result. */
struct sent_task {
	size_t line;       /* of its file, or its number in the command, from 1 */
	const char *command;
	bool journal;      /* its number is of the batch's own journal */
	bool retry;        /* it failed in an earlier run */
};

/* Results of an earlier run get another name: PATH.1 and so on. */
void results_file_keep(const char *path);
/* Open it, and cut off a last line that is not whole. 0 or a negative errno. */
int results_file_open(struct results_file *f, const char *path);
/* Add what the head says of a task. */
void results_file_add(struct results_file *f, const struct sent_task *of, json_t *task);
/* Write what is left: at once what can be. */
void results_file_flush(struct results_file *f);
/* ... and wait for room on the disk, unless a signal comes. False: some is lost. */
bool results_file_close(struct results_file *f);
