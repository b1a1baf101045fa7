/* SPDX-License-Identifier: BSD-3-Clause */
/* English words that depend on a number, for messages. */
#pragma once

#include <stdint.h>

/* The end of a noun behind a number: "s", or "" behind 1. */
static inline const char *plural(uint64_t number)
{
	return number == 1 ? "" : "s";
}

/* The verb behind such a noun. */
static inline const char *has_or_have(uint64_t number)
{
	return number == 1 ? "has" : "have";
}

static inline const char *is_or_are(uint64_t number)
{
	return number == 1 ? "is" : "are";
}
