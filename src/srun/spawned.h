/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An srun that this srun has started: its process, watched and reaped, and the
 * channel to it. All calls and callbacks are in the loop's thread.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

#define SPAWNED_POLL_MS 200 /* only where the kernel has no pidfd */

struct spawned;

struct spawned_ops {
	/* A control message has come. Non-zero closes the channel. */
	int (*message)(void *arg, const void *data, size_t len);
	/* The channel is closed; the process may still run. */
	void (*hung_up)(void *arg);
	/*
	 * The process has ended and been reaped, and all its messages have
	 * been delivered; `status` as from waitpid, or -1 when somebody else
	 * has reaped it. The owner then calls spawned_close.
	 */
	void (*exited)(void *arg, int status);
};

/*
 * Watch child process `pid`. Takes over `fd`, also on failure. 0 or a negative
 * errno; the process is then neither watched nor reaped.
 */
int spawned_watch(struct spawned **out, uv_loop_t *loop, pid_t pid, int fd,
		  const struct spawned_ops *ops, void *arg);
/* Errors as channel_send; -EPIPE when the channel is closed. */
int spawned_send(struct spawned *s, const void *data, size_t len);
void spawned_signal(struct spawned *s, int signal);
/* Watch no longer; no callback comes any more. Freed in a later turn. */
void spawned_close(struct spawned *s);
