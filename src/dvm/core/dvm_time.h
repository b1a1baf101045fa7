/* SPDX-License-Identifier: BSD-3-Clause */
/* The time, as the hosts of heads and nodes tell it. */
#ifndef PMI2X_DVM_TIME_H
#define PMI2X_DVM_TIME_H

#include <stdint.h>

/* The time of an input: of CLOCK_REALTIME, for messages, and of a clock that is not set. */
struct dvm_time {
	uint64_t wall_ns;
	uint64_t ms;
};

#endif
