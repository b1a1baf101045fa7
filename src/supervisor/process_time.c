/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of this process, for a trace. */
#include "supervisor/process_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/clock.h"

#define STAT_BYTES_MAX 1024
#define STAT_START_FIELD 22 /* of /proc/self/stat, see proc(5) */

/* Ticks since boot, in which the time that the host slept counts. */
static int64_t start_ticks(void)
{
	FILE *file = fopen("/proc/self/stat", "re");
	char text[STAT_BYTES_MAX];
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	char *at, *rest, *field = NULL;

	if (file)
		fclose(file);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may contain anything */
	if (!at)
		return 0;
	at++; /* field 3 follows */
	for (int i = 3; i <= STAT_START_FIELD; i++, at = NULL)
		field = strtok_r(at, " ", &rest);
	return field ? strtoll(field, NULL, 10) : 0;
}

int64_t process_start(void)
{
	int64_t ticks = start_ticks();
	long hz = sysconf(_SC_CLK_TCK);

	if (ticks <= 0 || hz <= 0)
		return 0;
	return ticks * (NS_PER_S / hz) -
	       (clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC));
}

