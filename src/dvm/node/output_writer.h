/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files for the complete output of parts, in the daemon: a process for each part writes them
 * (output_file.h). A part whose process takes no more has to wait, so its pipes are not read.
 * A process that takes nothing for a while is given up, and the task goes on without its
 * files. All calls and callbacks are in the loop's thread; a call never calls back for the
 * end, but may call back for `full`.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "dvm/core/node.h"

#define OUTPUT_WRITER_STALL_MS 30000 /* until a process that takes nothing is given up */

struct output_writers;

struct output_writers_ops {
	/* The part's pipes are not to be read, or are to be read again. */
	void (*full)(void *arg, uint32_t part, bool full);
	/* The answer to output_writers_end; the writer is gone. */
	void (*kept)(void *arg, uint32_t part, const struct node_kept *kept);
};

/* 0 or -ENOMEM. */
int output_writers_create(struct output_writers **out, uv_loop_t *loop, uint32_t stall_ms,
			  const struct output_writers_ops *ops, void *arg);
/*
 * End all writers, whose files may not be whole then, and stop all callbacks. After the loop
 * has ended, call output_writers_destroy. NULL is allowed.
 */
void output_writers_close(struct output_writers *w);
void output_writers_destroy(struct output_writers *w);

/* Begin files for a part. 0 or a negative errno. */
int output_writers_begin(struct output_writers *w, uint32_t part, const struct node_keep *what);
/* Write more of stream 1 or 2; copied. */
void output_writers_write(struct output_writers *w, uint32_t part, int stream, const void *data,
			  size_t len);
/* How long the part has waited for its process, which takes nothing; 0: it does not wait. */
uint32_t output_writers_stall_ms(struct output_writers *w, uint32_t part);
/* That was all: ops.kept follows. */
void output_writers_end(struct output_writers *w, uint32_t part);
