/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An event loop, in a thread of its own or in the caller's. Users put libuv handles
 * on loop_uv() before it runs, and afterwards only in the loop's thread; a uv_async_t
 * is how other threads reach that.
 * libuv's thread pool (uv_queue_work, uv_fs_*, uv_getaddrinfo) is never used:
 * its threads would outlive a plugin that is unloaded.
 */
#pragma once

#include <uv.h>

struct loop;

/* 0, -ENOMEM or another negative errno. */
int loop_create(struct loop **out);
/* Free it: it does not run, and all handles are closed or closing. NULL is allowed. */
void loop_destroy(struct loop *l);

uv_loop_t *loop_uv(struct loop *l);

/* Run it in this thread until its users have closed, stopped or unref'd all handles. */
void loop_run(struct loop *l);
/* Runs it in a thread with all signals blocked. 0 or a negative errno. */
int loop_start(struct loop *l);
/* Wait for that thread. */
void loop_join(struct loop *l);
