/* SPDX-License-Identifier: BSD-3-Clause */
/* The time, as the hosts of heads and nodes tell it. */
#pragma once

#include <stdint.h>

/* The time of an input: of CLOCK_REALTIME, for messages, and of a clock that is not set. */
struct dvm_time {
	uint64_t wall_ns;
	uint64_t ms;
};
