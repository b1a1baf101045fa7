/* SPDX-License-Identifier: BSD-3-Clause */
/* A clock as one number, and a sleep. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline uint64_t clock_ms(clockid_t clock)
{
	return (uint64_t)clock_ns(clock) / 1000000;
}

static inline double clock_s(clockid_t clock)
{
	return (double)clock_ns(clock) / NS_PER_S;
}

/* A signal may end it early. */
static inline void sleep_ms(unsigned ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}
