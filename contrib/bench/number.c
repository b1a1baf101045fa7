/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a number of a command line; see number.h. */
#include "number.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>

bool number_parse(const char *text, uint32_t low, uint32_t high,
		  uint32_t *number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < low ||
	    value > high) {
		warnx("'%s' is not within %u to %u", text, low, high);
		return false;
	}
	*number = value;
	return true;
}
