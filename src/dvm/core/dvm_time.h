/* SPDX-License-Identifier: BSD-3-Clause */
/* The time, as the hosts of heads and nodes tell it. */
#ifndef PMI2X_DVM_TIME_H
#define PMI2X_DVM_TIME_H

#include <stdint.h>

/*
 * Each input is given the time: of CLOCK_REALTIME, for people, and of a clock that
 * nobody sets.
 */
struct dvm_time {
	uint64_t wall_ns;
	uint64_t ms;
};

#endif
