/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads getrusage and /proc/stat; Fortran calls these functions, too. */
#include "times.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define FIELDS 10
#define IDLE 3
#define IOWAIT 4

double own_time(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

double machine_time(void)
{
	FILE *file = fopen("/proc/stat", "r");
	double sum = 0, value;

	if (!file)
		return 0;
	if (fscanf(file, "cpu"))
		sum = 0;
	for (int i = 0; i < FIELDS - 2 && fscanf(file, "%lf", &value) == 1; i++)
		if (i != IDLE && i != IOWAIT)
			sum += value;
	fclose(file);
	return sum / (double)sysconf(_SC_CLK_TCK);
}
