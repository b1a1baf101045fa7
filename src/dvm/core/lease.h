/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lease of a node: how long its ranks may run without an answer of the head. The daemon
 * sends LEASE (dvm_msg.h) with the time of its own clock, and the head sends it back. The
 * lease counts from when the last message that was answered was *sent*: whatever the
 * network did to the answer, the head had heard of the node since then. The head gives the
 * node's work to others only when it has not heard of the node for longer than a lease
 * (dvm_head_options.away_ms), so two instances of a task do not run at once.
 *
 * Times are milliseconds of CLOCK_BOOTTIME, which cannot be set and which goes on while
 * the machine sleeps. Calls no system function.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lease {
	uint32_t length_ms;   /* 0: no lease */
	uint64_t answered_ms; /* when the last message that was answered was sent */
	uint64_t ask_ms;      /* when the next message is due */
	uint64_t looked_ms;   /* when lease_ask was last called */
	uint64_t woken_ms;    /* not over before this time */
};

/* A head has proved itself at `now`. */
void lease_begin(struct lease *l, uint32_t length_ms, uint64_t now);
/*
 * True: a message is due, and is taken as sent now. If this was not called for more than
 * two ticks, the daemon was stopped, perhaps with its head, as by Slurm's suspend: a lease
 * that was not over then lasts one tick more, in which the head can answer or its end is
 * noticed.
 */
bool lease_ask(struct lease *l, uint64_t now);
/* The message that was sent at `sent` has been answered. */
void lease_answered(struct lease *l, uint64_t sent, uint64_t now);
/* The end of the lease; UINT64_MAX: no lease. */
uint64_t lease_end(const struct lease *l);
/* The time between two calls of lease_ask and lease_end, in milliseconds; 0: no calls. */
uint32_t lease_tick(const struct lease *l);
