/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the stamps of all ranks to rank 0 and makes its line of results. */
#include "bench_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 12 /* stamps that fit into one PMI-2 value */

static int chunks(const struct bench *b)
{
	return (bench_stamp_count(b) + CHUNK - 1) / CHUNK;
}

static int chunk_end(const struct bench *b, int chunk)
{
	int count = bench_stamp_count(b);

	return (chunk + 1) * CHUNK < count ? (chunk + 1) * CHUNK : count;
}

static void put_chunk(struct bench *b, int chunk)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN];
	int n;

	bench_machine(value);
	n = strlen(value);
	for (int i = chunk * CHUNK; i < chunk_end(b, chunk); i++) {
		const struct bench_stamp *s = &b->stamps[i];

		n += snprintf(value + n, sizeof(value) - n,
			      ",%.6f,%.9f,%.4g,%.4g", s->in, s->out - s->in,
			      s->part, s->wait);
	}
	snprintf(key, sizeof(key), "stamps-%d-%d", chunk, b->rank);
	bench_check(b, b->pmi.put(key, value), "put of stamps");
}

/* A chunk of rank r into row; true if it runs on `machine`. */
static bool get_chunk(struct bench *b, int r, int chunk, const char *machine,
		      struct bench_stamp *row)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], *at;
	int len;

	snprintf(key, sizeof(key), "stamps-%d-%d", chunk, r);
	bench_check(b, b->pmi.get(NULL, r, key, value, sizeof(value), &len),
		    "get of stamps");
	at = strchr(value, ',');
	bench_check(b, at ? PMI2_SUCCESS : PMI2_FAIL, "format of stamps");
	*at = '\0';
	for (int i = chunk * CHUNK; i < chunk_end(b, chunk); i++) {
		row[i].in = strtod(at + 1, &at);
		row[i].out = row[i].in + strtod(at + 1, &at);
		row[i].part = strtod(at + 1, &at);
		row[i].wait = strtod(at + 1, &at);
	}
	return strcmp(value, machine) == 0;
}

/* The stamps of all ranks; *one_machine: they were taken by one clock. */
static struct bench_stamp *get_all(struct bench *b, bool *one_machine)
{
	int count = bench_stamp_count(b);
	struct bench_stamp *all = bench_alloc(b, sizeof(*all) * b->size *
					      count);
	char machine[BENCH_MACHINE_LEN];

	bench_machine(machine);
	*one_machine = strcmp(machine, "unknown") != 0;
	for (int r = 0; r < b->size; r++) {
		for (int c = 0; c < chunks(b); c++) {
			if (!get_chunk(b, r, c, machine, all + r * count))
				*one_machine = false;
		}
	}
	return all;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double span(const struct bench *b, const struct bench_stamp *all, int i)
{
	int count = bench_stamp_count(b);
	double in = all[i].in, out = all[i].out;

	for (int r = 1; r < b->size; r++) {
		const struct bench_stamp *s = &all[r * count + i];

		if (!s->out)
			continue;
		in = s->in < in ? s->in : in;
		out = s->out > out ? s->out : out;
	}
	return out - in;
}

static double duration(const struct bench_stamp *s) { return s->out - s->in; }
static double part(const struct bench_stamp *s) { return s->part; }
static double waited(const struct bench_stamp *s) { return s->wait; }

/* The value of stamp i at that place in ascending order, among all ranks. */
static double ordered(const struct bench *b, const struct bench_stamp *all,
		      int i, double (*field)(const struct bench_stamp *s),
		      int place)
{
	int count = bench_stamp_count(b);
	double *values = bench_alloc(b, sizeof(*values) * b->size), found;

	for (int r = 0; r < b->size; r++)
		values[r] = field(&all[r * count + i]);
	qsort(values, b->size, sizeof(*values), by_size);
	found = values[place];
	free(values);
	return found;
}

static double time_of(const struct bench *b, const struct bench_stamp *all,
		      int i, bool one_machine)
{
	if (b->op->clock == BENCH_EACH)
		return ordered(b, all, i, duration, b->size / 2);
	if (b->op->clock == BENCH_MOST || !one_machine)
		return ordered(b, all, i, duration, b->size - 1);
	return span(b, all, i);
}

static void print_medians(const struct bench *b, const char *name,
			  const struct bench_stamp *all,
			  double (*field)(const struct bench_stamp *s))
{
	printf(" %s=", name);
	for (int i = 0; i < bench_stamp_count(b); i++)
		printf("%s%.9f", i ? "," : "",
		       ordered(b, all, i, field, b->size / 2));
}

static const char *clock_name(const struct bench *b, bool one_machine)
{
	switch (b->op->clock) {
	case BENCH_EACH:
		return "each";
	case BENCH_MOST:
		return "most";
	case BENCH_WALL:
		return "wall";
	case BENCH_SPAN:
		break;
	}
	return one_machine ? "span" : "rank";
}

static void print_head(const struct bench *b, bool one_machine)
{
	printf("result op=%s client=%s ranks=%d bytes=%d clock=%s puts=%s",
	       b->op->name, b->pmi.version ? b->pmi.version() : "other",
	       b->size, b->bytes, clock_name(b, one_machine), b->puts);
}

static void print_stamps(struct bench *b)
{
	bool one_machine;
	struct bench_stamp *all = get_all(b, &one_machine);

	print_head(b, one_machine);
	printf(" times=");
	for (int i = 0; i < bench_stamp_count(b); i++)
		printf("%s%.9f", i ? "," : "", time_of(b, all, i, one_machine));
	print_medians(b, "parts", all, part);
	print_medians(b, "waits", all, waited);
	putchar('\n');
	free(all);
}

/* Nobody but this rank: it has no session. */
static void print_own(const struct bench *b)
{
	char machine[BENCH_MACHINE_LEN];

	bench_machine(machine);
	printf("stamp %s %.6f %.9f\n", machine, b->stamps[0].in,
	       duration(&b->stamps[0]));
}

void bench_report(struct bench *b)
{
	if (b->op->clock == BENCH_WALL) {
		if (b->rank == 0) {
			print_head(b, false);
			puts(" times=");
		}
		return;
	}
	if (b->alone) {
		print_own(b);
		return;
	}
	for (int c = 0; c < chunks(b); c++)
		put_chunk(b, c);
	bench_check(b, b->pmi.fence(), "fence of stamps");
	if (b->rank == 0)
		print_stamps(b);
}
