/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pipes over which the ranks of a part write: two for all of them. Also other
 * descriptors that are passed to its ranks when they start. All calls and callbacks are in
 * the loop's thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "libutil/passed_fds.h"

struct outputs;

/* Ranks of a part have written to fd 1 or 2. */
typedef void outputs_fn(void *arg, uint32_t part, int fd, const void *data, size_t len);

/* Create the pipes of a node. 0 or a negative errno. */
int outputs_create(struct outputs **out, uv_loop_t *loop, outputs_fn *fn, void *arg);
/* Stop all callbacks. After the loop has ended, call outputs_destroy. NULL is allowed. */
void outputs_end(struct outputs *o);
void outputs_destroy(struct outputs *o);

/* Make pipes for a part. 0 or a negative errno. */
int outputs_open(struct outputs *o, uint32_t part);
/* Pass one more descriptor to the part's ranks; it is taken over. */
void outputs_pass(struct outputs *o, uint32_t part, int fd);
/*
 * Descriptors for the ranks of a part: for stdout, stderr, and the one of outputs_pass, if
 * any.
 */
void outputs_of(struct outputs *o, uint32_t part, struct passed_fds *fds);
/* Close this process's copies of them: all ranks have been started. */
void outputs_started(struct outputs *o, uint32_t part);
/* Read the rest, and close the pipes. */
void outputs_close(struct outputs *o, uint32_t part);
/* Read at most this at once; 0: do not read, until this is called again. */
void outputs_limit(struct outputs *o, uint32_t part, size_t bytes);
