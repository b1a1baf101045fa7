/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of numbers: number_list.h. */
#include "dvm/cli/number_list.h"

#include "libutil/decimal.h"

/* FIRST, FIRST-LAST or FIRST-LAST:STEP. */
static bool take_range(const char **at, uint64_t max, struct number_range *r)
{
	const char *begin = *at;

	if (!decimal_take(at, max, &r->first))
		return false;
	r->width = *begin == '0' ? (int)(*at - begin) : 0;
	r->last = r->first;
	r->step = 1;
	if (**at != '-')
		return true;
	++*at;
	if (!decimal_take(at, max, &r->last) || r->last < r->first)
		return false;
	if (**at != ':')
		return true;
	++*at;
	return decimal_take(at, max, &r->step) && r->step;
}

bool number_list_take(const char **at, uint64_t max, struct number_range *r)
{

	if (!take_range(at, max, r) || (**at && **at != ','))
		return false;
	if (!**at)
		return true;
	++*at;
	return **at != '\0'; /* a list does not end with a comma */
}

bool number_list_ok(const char *text, uint64_t max)
{
	struct number_range r;

	do {
		if (!number_list_take(&text, max, &r))
			return false;
	} while (*text);
	return true;
}
