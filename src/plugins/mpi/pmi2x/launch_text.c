/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values of launch variables as text, without Slurm. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch_env.h"
#include "libutil/decimal.h"
#include "libutil/hex.h"

char *launch_preput_text(const void *records, size_t len)
{
	char *text = malloc(2 * len + 1);

	if (text)
		hex_print(records, len, text);
	return text;
}

char *launch_jobid(uint32_t job, uint32_t step)
{
	char *text;

	return asprintf(&text, "%u.%u", job, step) < 0 ? NULL : text;
}

bool launch_is_jobid(const char *text)
{
	const char *dot = strchr(text, '.');
	char job[sizeof("4294967295")];
	uint32_t number;

	if (!dot || dot - text >= (ptrdiff_t)sizeof(job))
		return false;
	memcpy(job, text, dot - text);
	job[dot - text] = '\0';
	return decimal_u32(job, 0, UINT32_MAX, &number) &&
	       decimal_u32(dot + 1, 0, UINT32_MAX, &number);
}

/*
 * The sum of one item, "4" or "2(x3)", and the text behind it in *rest; 0: it is neither.
 */
static unsigned long long cpus_of_item(const char *text, char **rest)
{
	unsigned long count, times = 1;

	if (!isdigit((unsigned char)*text))
		return 0;
	count = strtoul(text, rest, 10);
	if (!strncmp(*rest, "(x", 2)) {
		times = strtoul(*rest + 2, rest, 10);
		if (**rest != ')')
			return 0;
		++*rest;
	}
	if (count > INT32_MAX || times > INT32_MAX)
		return 0;
	return (unsigned long long)count * times;
}

uint32_t launch_cpus(const char *text)
{
	unsigned long long sum = 0, item;
	char *rest;

	do {
		item = cpus_of_item(text, &rest);
		sum += item;
		if (!item || sum > INT32_MAX)
			return 0;
		text = rest + 1;
	} while (*rest == ',');
	return *rest ? 0 : (uint32_t)sum;
}

uint32_t launch_universe(const char *cpus, const char *per_task)
{
	uint32_t each = per_task ? launch_cpus(per_task) : 1;

	return cpus && each ? launch_cpus(cpus) / each : 0;
}
