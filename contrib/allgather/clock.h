/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that deadlines of the ring are in. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Milliseconds of a clock that is never set. */
static inline int64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}
