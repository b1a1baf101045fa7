/* SPDX-License-Identifier: BSD-3-Clause */
/* Times and sizes: reading and showing them. */
#include "units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit time_units[] = {
	{ "ps", 1 }, { "ns", SIM_NS }, { "us", SIM_US },
	{ "ms", SIM_MS }, { "s", SIM_S }, { NULL, 0 },
};

static const struct unit byte_units[] = {
	{ "", 1 }, { "B", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 },
	{ "GiB", 1 << 30 }, { NULL, 0 },
};

/* The number at the start of a text; NULL when there is none. */
static const char *leading_number(const char *text, double *out)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return NULL;
	*out = strtod(text, &end);
	return end == text || !isfinite(*out) ? NULL : end;
}

static bool with_unit(const char *text, const struct unit *units, double *out)
{
	const char *rest = leading_number(text, out);

	if (!rest)
		return false;
	while (*rest == ' ')
		rest++;
	for (; units->name; units++)
		if (strcmp(rest, units->name) == 0) {
			*out *= units->factor;
			return true;
		}
	return false;
}

bool units_time(const char *text, sim_time *out)
{
	double value;

	if (strcmp(text, "0") == 0) {
		*out = 0;
		return true;
	}
	if (!with_unit(text, time_units, &value) || value > SIM_TIME_MAX)
		return false;
	*out = llround(value);
	return true;
}

bool units_bytes(const char *text, uint64_t *out)
{
	double value;

	if (!with_unit(text, byte_units, &value) || value > 0x1p52 ||
	    value != floor(value))
		return false;
	*out = value;
	return true;
}

bool units_number(const char *text, double *out)
{
	const char *rest = leading_number(text, out);

	return rest && !*rest;
}

bool units_count(const char *text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text) || strlen(text) > 18)
		return false;
	*out = strtoull(text, &end, 10);
	return !*end;
}

double units_seconds(sim_time t)
{
	return (double)t / SIM_S;
}

/* Three digits that count. */
static char *show(char out[UNITS_TEXT], double value, const char *unit)
{
	int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;

	snprintf(out, UNITS_TEXT, "%.*f %s", decimals, value, unit);
	return out;
}

char *units_show_time(char out[UNITS_TEXT], sim_time t)
{
	const struct unit *u = time_units;

	while (u[1].name && (double)t >= u[1].factor)
		u++;
	if (!t)
		u = &time_units[4]; /* 0 s */
	return show(out, t / u->factor, u->name);
}

char *units_show_bytes(char out[UNITS_TEXT], uint64_t bytes)
{
	const struct unit *u = &byte_units[1];

	if (bytes < 1024) {
		snprintf(out, UNITS_TEXT, "%u B", (unsigned int)bytes);
		return out;
	}
	while (u[1].name && (double)bytes >= u[1].factor)
		u++;
	return show(out, bytes / u->factor, u->name);
}
