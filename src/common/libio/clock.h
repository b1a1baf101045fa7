/* SPDX-License-Identifier: BSD-3-Clause */
/* A clock as one number. */
#ifndef PMI2X_CLOCK_H
#define PMI2X_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

#endif
