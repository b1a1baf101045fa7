/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict reading of decimal numbers. */
#include "libutil/decimal.h"

bool decimal_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' ||
		    __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *text - '0', &value))
			return false;
	}
	if (value < min || value > max)
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
