/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lease of this node (dvm/core/lease.h) by the clock of this machine. All calls are in
 * the loop's thread.
 */
#pragma once

#include <uv.h>

#include "dvm/core/lease.h"

struct lease_timer_ops {
	/* Ask the head for a lease; `now_ms` is the time to send. */
	void (*ask)(void *arg, uint64_t now_ms);
	/* The lease is over, since `late_ms`. Called again while that is so. */
	void (*over)(void *arg, uint64_t late_ms);
};

struct lease_timer {
	struct lease lease;
	uv_timer_t timer;
	struct lease_timer_ops ops;
	void *arg;
};

void lease_timer_init(struct lease_timer *t, uv_loop_t *loop,
		      const struct lease_timer_ops *ops, void *arg);
/* The first head has come. `length_ms` 0: there is no lease. */
void lease_timer_begin(struct lease_timer *t, uint32_t length_ms);
/* The head has answered. */
void lease_timer_answered(struct lease_timer *t, uint64_t sent_ms);
/* Milliseconds until the lease is over; UINT64_MAX: never. */
uint64_t lease_timer_left(const struct lease_timer *t);
void lease_timer_close(struct lease_timer *t);
