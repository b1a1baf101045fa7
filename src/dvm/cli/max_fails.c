/* SPDX-License-Identifier: BSD-3-Clause */
/* How many tasks may fail: max_fails.h. */
#include "dvm/cli/max_fails.h"

#include <string.h>

#include "libutil/decimal.h"

bool max_fails_parse(const char *text, struct max_fails *m)
{
	const char *at = text;
	uint64_t n;

	if (!decimal_take(&at, INT32_MAX, &n))
		return false;
	*m = (struct max_fails){ .set = true, .limit = (uint32_t)n, .percent = *at == '%' };
	at += m->percent;
	m->now = !strcmp(at, ",now");
	return (m->now || !*at) && !(m->percent && n > 100);
}

bool max_fails_reached(const struct max_fails *m, size_t failed, size_t all, bool whole)
{
	if (!m->set || !m->percent)
		return m->set && failed > m->limit;
	return whole && (double)failed * 100 > (double)all * m->limit;
}
