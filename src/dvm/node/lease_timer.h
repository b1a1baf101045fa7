/* SPDX-License-Identifier: BSD-3-Clause */
/* The lease of this node (dvm/core/lease.h) by the clock of this machine. The loop's thread. */
#ifndef PMI2X_DVM_LEASE_TIMER_H
#define PMI2X_DVM_LEASE_TIMER_H

#include <uv.h>

#include "dvm/core/lease.h"

struct lease_timer_ops {
	/* Ask the head: the time to send. */
	void (*ask)(void *arg, uint64_t now_ms);
	/* It is over, or was before; `late_ms` ago. Called again while that is so. */
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
/* The first head is there. `length_ms`: 0: there is no lease. */
void lease_timer_begin(struct lease_timer *t, uint32_t length_ms);
/* The head has answered. */
void lease_timer_answered(struct lease_timer *t, uint64_t sent_ms);
/* Milliseconds until it is over; UINT64_MAX: it never is. */
uint64_t lease_timer_left(const struct lease_timer *t);
void lease_timer_close(struct lease_timer *t);

#endif
