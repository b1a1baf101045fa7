/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An event loop in a thread of its own.
 *
 * Users put libuv handles on loop_uv() from loop_open() until loop_start(),
 * and afterwards only in the loop's thread, which they reach with loop_post().
 * libuv is not touched before loop_open(): a process that forks before it does
 * not run libuv's fork handlers, and a loop that is never opened costs one
 * eventfd.
 * libuv's thread pool (uv_queue_work, uv_fs_*, uv_getaddrinfo) is never used:
 * its threads would outlive a plugin that is unloaded.
 */
#ifndef PMI2X_LOOP_H
#define PMI2X_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct loop;

/* 0, -ENOMEM or another negative errno. */
int loop_create(struct loop **out);
/* Make the libuv loop. What was posted before is called once it runs. */
int loop_open(struct loop *l);
/*
 * Free it: never started, or joined; all other handles closed or closing. What
 * was posted to a loop that has not been opened is forgotten.
 */
void loop_destroy(struct loop *l);

uv_loop_t *loop_uv(struct loop *l);

/* Start the thread, with all signals blocked. 0 or a negative errno. */
int loop_start(struct loop *l);

/* Run it in this thread instead, until it ends. */
void loop_run(struct loop *l);

/*
 * Call fn(arg) in the loop's thread, soon, in the order of posting. Any thread.
 * 0, -ENOMEM, or -ESHUTDOWN after loop_end (fn will not be called).
 */
int loop_post(struct loop *l, void (*fn)(void *arg), void *arg);

/*
 * In the loop's thread: accept no more posts. What was posted before is still
 * called. The thread ends when its user has closed all other handles.
 */
void loop_end(struct loop *l);

/* Wait for the thread. 0 or -ETIMEDOUT (it still runs). */
int loop_join(struct loop *l, uint32_t timeout_ms);

#endif
