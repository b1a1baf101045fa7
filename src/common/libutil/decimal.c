/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict reading of decimal numbers. */
#include "libutil/decimal.h"

#include <limits.h>

bool decimal_take(const char **at, uint64_t max, uint64_t *out)
{
	const char *c = *at;
	uint64_t value = 0;

	for (; *c >= '0' && *c <= '9'; c++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *c - '0', &value) ||
		    value > max)
			return false;
	if (c == *at)
		return false;
	*at = c;
	*out = value;
	return true;
}

bool decimal_int(const char **at, int *out)
{
	bool negative = **at == '-';
	const char *c = *at + negative;
	uint64_t value;

	if (!decimal_take(&c, (uint64_t)INT_MAX + negative, &value))
		return false;
	*at = c;
	*out = (int)(negative ? -(int64_t)value : (int64_t)value);
	return true;
}

bool decimal_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;

	if (!decimal_take(&text, max, &value) || *text || value < min)
		return false;
	*out = value;
	return true;
}

bool decimal_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!decimal_u64(text, min, max, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}
