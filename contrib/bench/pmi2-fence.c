/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times PMI2_KVS_Fence from the first rank's entry to the last rank's exit.
 *
 * Linked with nothing but a libpmi2.so.0, stock or drop-in, so the same binary
 * measures both. Each rank puts one value a fence; after the timed fences every
 * rank puts its time stamps, and rank 0 reads them all, checks a value of every
 * rank, and prints one line:
 *
 *     fence ranks=N bytes=B median=S min=S max=S      (seconds)
 *
 * The stamps come from CLOCK_MONOTONIC, so the spread over ranks means
 * something on one machine only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmi2.h"

#define FENCES_MAX 16 /* what fits into one PMI-2 value of stamps */
#define VALUE_MAX 1000

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void check(int rc, const char *what)
{
	if (rc == PMI2_SUCCESS)
		return;
	fprintf(stderr, "pmi2-fence: %s failed with %d\n", what, rc);
	PMI2_Abort(1, "pmi2-fence failed");
	exit(1);
}

/* The value that rank r puts before fence i: recognisable, `bytes` long. */
static void make_value(char *value, int r, int i, int bytes)
{
	int n = snprintf(value, VALUE_MAX, "%d.%d.", r, i);

	memset(value + n, 'v', bytes > n ? bytes - n : 0);
	value[bytes > n ? bytes : n] = '\0';
}

static void timed_fence(int rank, int i, int bytes, double stamps[2])
{
	char key[32], value[VALUE_MAX + 1];

	snprintf(key, sizeof(key), "k-%d-%d", i, rank);
	make_value(value, rank, i, bytes);
	check(PMI2_KVS_Put(key, value), "put");
	stamps[0] = now();
	check(PMI2_KVS_Fence(), "fence");
	stamps[1] = now();
}

static void put_stamps(int rank, int fences, double stamps[][2])
{
	char key[32], value[VALUE_MAX + 1];
	int n = 0;

	for (int i = 0; i < fences; i++)
		n += snprintf(value + n, sizeof(value) - n, "%.6f %.6f ",
			      stamps[i][0], stamps[i][1]);
	snprintf(key, sizeof(key), "stamps-%d", rank);
	check(PMI2_KVS_Put(key, value), "put of stamps");
	check(PMI2_KVS_Fence(), "fence of stamps");
}

/* Widen the span of each fence by the stamps of rank r. */
static void merge_stamps(int r, int fences, double spans[][2])
{
	char key[32], value[VALUE_MAX + 1], *at = value;
	int len;

	snprintf(key, sizeof(key), "stamps-%d", r);
	check(PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, value, sizeof(value), &len),
	      "get of stamps");
	for (int i = 0; i < fences; i++) {
		double in = strtod(at, &at), out = strtod(at, &at);

		if (r == 0 || in < spans[i][0])
			spans[i][0] = in;
		if (r == 0 || out > spans[i][1])
			spans[i][1] = out;
	}
}

static void check_values(int r, int fences, int bytes)
{
	char key[32], value[VALUE_MAX + 1], want[VALUE_MAX + 1];
	int len;

	for (int i = 0; i < fences; i++) {
		snprintf(key, sizeof(key), "k-%d-%d", i, r);
		make_value(want, r, i, bytes);
		check(PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, value,
				   sizeof(value), &len), "get");
		check(strcmp(value, want) ? PMI2_FAIL : PMI2_SUCCESS,
		      "comparison of a value");
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(int size, int fences, int bytes)
{
	double spans[FENCES_MAX][2], times[FENCES_MAX];

	for (int r = 0; r < size; r++) {
		merge_stamps(r, fences, spans);
		check_values(r, 1, bytes);
	}
	for (int i = 0; i < fences; i++)
		times[i] = spans[i][1] - spans[i][0];
	qsort(times, fences, sizeof(*times), by_size);
	printf("fence ranks=%d bytes=%d median=%.6f min=%.6f max=%.6f\n", size,
	       bytes, times[fences / 2], times[0],
	       times[fences - 1]);
}

int main(int argc, char **argv)
{
	int fences = argc > 1 ? atoi(argv[1]) : 6;
	int bytes = argc > 2 ? atoi(argv[2]) : 64;
	int spawned, size, rank, appnum;
	double stamps[FENCES_MAX][2];

	if (fences < 2 || fences > FENCES_MAX || bytes < 1 ||
	    bytes > VALUE_MAX) {
		fprintf(stderr, "usage: pmi2-fence [FENCES 2-%d] [BYTES 1-%d]\n",
			FENCES_MAX, VALUE_MAX);
		return 2;
	}
	check(PMI2_Init(&spawned, &size, &rank, &appnum), "init");
	check(PMI2_KVS_Fence(), "first fence"); /* start together */
	for (int i = 0; i < fences; i++)
		timed_fence(rank, i, bytes, stamps[i]);
	put_stamps(rank, fences, stamps);
	if (rank == 0)
		report(size, fences, bytes);
	check(PMI2_KVS_Fence(), "last fence");
	return PMI2_Finalize() == PMI2_SUCCESS ? 0 : 1;
}
