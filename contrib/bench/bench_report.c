/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the stamps of all ranks to rank 0 and makes its line of results. */
#include "bench_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_LEN 9 /* NUL included */

/* Which machine this is: CLOCK_MONOTONIC compares within one boot of it. */
static void read_machine(char machine[MACHINE_LEN])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (!file || !fgets(machine, MACHINE_LEN, file))
		strcpy(machine, "unknown");
	if (file)
		fclose(file);
}

static void put_stamps(struct bench *b)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN];
	int n;

	read_machine(value);
	n = strlen(value);
	for (int i = 0; i < b->rounds; i++)
		n += snprintf(value + n, sizeof(value) - n, " %.6f %.9f %.3g",
			      b->stamps[i].in, b->stamps[i].out -
			      b->stamps[i].in, b->stamps[i].part);
	snprintf(key, sizeof(key), "stamps-%d", b->rank);
	bench_check(b, b->pmi.put(key, value), "put of stamps");
	bench_check(b, b->pmi.fence(), "fence of stamps");
}

/* The stamps of rank r into row; true if it runs on `machine`. */
static bool get_stamps(struct bench *b, int r, const char *machine,
		       struct bench_stamp *row)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], *at;
	int len;

	snprintf(key, sizeof(key), "stamps-%d", r);
	bench_check(b, b->pmi.get(NULL, r, key, value, sizeof(value), &len),
		    "get of stamps");
	at = strchr(value, ' ');
	bench_check(b, at ? PMI2_SUCCESS : PMI2_FAIL, "format of stamps");
	*at++ = '\0';
	for (int i = 0; i < b->rounds; i++) {
		row[i].in = strtod(at, &at);
		row[i].out = row[i].in + strtod(at, &at);
		row[i].part = strtod(at, &at);
	}
	return strcmp(value, machine) == 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double span(const struct bench *b, const struct bench_stamp *all, int i)
{
	double in = all[i].in, out = all[i].out;

	for (int r = 1; r < b->size; r++) {
		const struct bench_stamp *s = &all[r * b->rounds + i];

		in = s->in < in ? s->in : in;
		out = s->out > out ? s->out : out;
	}
	return out - in;
}

/* Of round i over all ranks, ascending: durations, or parts. */
static void sorted(const struct bench *b, const struct bench_stamp *all, int i,
		   bool parts, double *times)
{
	for (int r = 0; r < b->size; r++) {
		const struct bench_stamp *s = &all[r * b->rounds + i];

		times[r] = parts ? s->part : s->out - s->in;
	}
	qsort(times, b->size, sizeof(*times), by_size);
}

static void print_times(const struct bench *b, const struct bench_stamp *all,
			bool one_machine)
{
	double *times = bench_alloc(b, sizeof(*times) * b->size);

	printf(" times=");
	for (int i = 0; i < b->rounds; i++) {
		double time;

		sorted(b, all, i, false, times);
		if (b->op->each)
			time = times[b->size / 2];
		else if (one_machine)
			time = span(b, all, i);
		else
			time = times[b->size - 1];
		printf("%s%.9f", i ? "," : "", time);
	}
	printf(" parts=");
	for (int i = 0; i < b->rounds; i++) {
		sorted(b, all, i, true, times);
		printf("%s%.9f", i ? "," : "", times[b->size / 2]);
	}
	putchar('\n');
	free(times);
}

static void print_line(struct bench *b)
{
	struct bench_stamp *all = bench_alloc(b, sizeof(*all) * b->size *
					      b->rounds);
	char machine[MACHINE_LEN];
	bool one_machine;

	read_machine(machine);
	one_machine = strcmp(machine, "unknown") != 0;
	for (int r = 0; r < b->size; r++) {
		if (!get_stamps(b, r, machine, all + r * b->rounds))
			one_machine = false;
	}
	printf("result op=%s client=%s ranks=%d bytes=%d clock=%s",
	       b->op->name, b->pmi.version ? b->pmi.version() : "other",
	       b->size, b->bytes,
	       b->op->each ? "each" : one_machine ? "span" : "rank");
	print_times(b, all, one_machine);
	free(all);
}

void bench_report(struct bench *b)
{
	put_stamps(b);
	if (b->rank == 0)
		print_line(b);
}
