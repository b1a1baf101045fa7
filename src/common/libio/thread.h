/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of libio: all signals blocked, joined within a bounded time. A thread
 * that does not end in time must not lose its code when the plugin is
 * unloaded: thread_keep_code() pins it.
 *
 * Helpers are short-lived threads for calls that block (Slurm's RPCs).
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#define HELPERS_MAX 32 /* running at once */

/* 0 or a negative errno. */
int thread_start(pthread_t *out, void *(*main)(void *arg), void *arg);
/* 0 or -ETIMEDOUT (it still runs and can be joined again). */
int thread_join(pthread_t thread, uint32_t timeout_ms);
/* Never unload the shared object that contains this function. */
void thread_keep_code(void);

struct helpers;

int helpers_create(struct helpers **out);
/*
 * Call fn(arg) in a thread of its own, then release(arg). The caller of all
 * helpers_* functions is one thread at a time. 0, -EAGAIN (HELPERS_MAX run), or
 * another negative errno: arg is then still the caller's.
 */
int helpers_run(struct helpers *h, void (*fn)(void *arg),
		void (*release)(void *arg), void *arg);
/*
 * Wait for what runs, at most wait_ms in all, and free. A call that does not end in time
 * goes on by itself, with its arg and its code; then -EBUSY, else 0.
 */
int helpers_destroy(struct helpers *h, uint32_t wait_ms);
