/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a number of a command line; see number.h. */
#include "number.h"

#include <err.h>

#include "libutil/decimal.h"

bool number_parse(const char *text, uint32_t low, uint32_t high,
		  uint32_t *number)
{
	if (decimal_u32(text, low, high, number))
		return true;
	warnx("'%s' is not within %u to %u", text, low, high);
	return false;
}
