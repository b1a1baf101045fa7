/* SPDX-License-Identifier: BSD-3-Clause */
/* Time limits as text: duration.h. */
#include "dvm/cli/duration.h"

#include <string.h>

#include "libutil/decimal.h"

#define DAY 86400
#define FIELDS 3 /* with colons between them */

/* Adds a number of units, if the sum is at most max. */
static bool add(uint64_t *sum, uint64_t n, uint64_t unit, uint64_t max)
{
	uint64_t more;

	if (__builtin_mul_overflow(n, unit, &more) || more > max || *sum > max - more)
		return false;
	*sum += more;
	return true;
}

/* Fields with colons between them; count: how many there are. */
static bool take_fields(const char *text, uint64_t max, uint64_t fields[FIELDS], size_t *count)
{
	for (*count = 0; *count < FIELDS; text++) {
		if (!decimal_take(&text, max, &fields[(*count)++]))
			return false;
		if (!*text)
			return true;
		if (*text != ':')
			return false;
	}
	return false;
}

/* The units of M, M:S and H:M:S, and behind days those of H, H:M and H:M:S. */
static bool add_fields(const char *text, bool days, uint64_t max, uint64_t *sum)
{
	static const uint64_t units[2][FIELDS][FIELDS] = {
		{ { 60 }, { 60, 1 }, { 3600, 60, 1 } },
		{ { 3600 }, { 3600, 60 }, { 3600, 60, 1 } },
	};
	uint64_t fields[FIELDS];
	size_t n;

	if (!take_fields(text, max, fields, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!add(sum, fields[i], units[days][n - 1][i], max))
			return false;
	return true;
}

static uint64_t unit_of(char letter)
{
	return letter == 's' ? 1 : letter == 'm' ? 60 : letter == 'h' ? 3600 :
	       letter == 'd' ? DAY : 0;
}

static bool add_units(const char *text, uint64_t max, uint64_t *sum)
{
	uint64_t n, unit, last = UINT64_MAX;

	for (; *text; text++, last = unit) {
		if (!decimal_take(&text, max, &n))
			return false;
		unit = unit_of(*text);
		if (!unit || unit >= last || !add(sum, n, unit, max))
			return false;
	}
	return last != UINT64_MAX;
}

bool duration_parse(const char *text, uint64_t max, uint64_t *seconds)
{
	uint64_t sum = 0, days;
	const char *at = text;
	bool ok;

	if (strpbrk(text, "smhd"))
		ok = add_units(text, max, &sum);
	else if (decimal_take(&at, max, &days) && *at == '-')
		ok = add(&sum, days, DAY, max) && add_fields(at + 1, true, max, &sum);
	else
		ok = add_fields(text, false, max, &sum);
	if (ok)
		*seconds = sum;
	return ok;
}
