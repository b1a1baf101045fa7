/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times and sizes as a scenario writes them. Simulated time is an integer
 * number of picoseconds, so that a run gives the same result everywhere.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef int64_t sim_time; /* picoseconds */

#define SIM_NS ((sim_time)1000)
#define SIM_US (1000 * SIM_NS)
#define SIM_MS (1000 * SIM_US)
#define SIM_S (1000 * SIM_MS)
#define SIM_TIME_MAX (1000000 * SIM_S) /* limit of a scenario; sums do not overflow */

/* Picoseconds that were computed: no more than SIM_TIME_MAX. */
static inline sim_time sim_time_of(double ps)
{
	return ps < (double)SIM_TIME_MAX ? (sim_time)ps : SIM_TIME_MAX;
}

/* "1.5us": a number >= 0 and ps, ns, us, ms or s; 0 needs no unit. */
bool units_time(const char *text, sim_time *out);
/* "64", "64KiB", "1MiB". */
bool units_bytes(const char *text, uint64_t *out);
/* A whole number without sign, nothing behind it. */
bool units_count(const char *text, uint64_t *out);
/* A number >= 0. */
bool units_number(const char *text, double *out);

#define UNITS_TEXT 32 /* bytes of what these write, NUL included */
/* With three digits that count and a unit. Return out. */
char *units_show_time(char out[UNITS_TEXT], sim_time t);
char *units_show_bytes(char out[UNITS_TEXT], uint64_t bytes);
double units_seconds(sim_time t);
