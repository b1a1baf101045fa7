/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a comparison: the same blocks gathered over the ring of
 * libpmi2x-allgather, with PMIX_Allgather_n, and with put, fence and get. Rank 0
 * prints a line of CSV for each way and size; run it under any launcher:
 *
 *   srun --mpi=pmi2x -N16 pmi2x bench ring [rounds [bytes ...]]
 *
 * A round's time is that of the slowest rank, each from its own entry after a
 * fence; the median of the rounds is printed. Steps, messages and bytes are of
 * one round, summed over all ranks (messages, bytes) or of the one that has
 * most (steps).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libio/clock.h"
#include "pmi2.h"
#include "pmi2x.h"
#include "pmi2x_allgather.h"

#define ROUNDS 11

struct bench {
	int rank, size, rounds;
	pmi2x_ring *ring;
	size_t bytes;
	int serial; /* of the round, for keys and contents */
	char *block, *all;
	double *times;
};

static void die(struct bench *b, const char *what, int code)
{
	fprintf(stderr, "pmi2x bench ring: rank %d: %s: error %d: %s\n",
		b->rank, what, code, b->ring ? pmi2x_ring_error(b->ring) : "");
	PMI2_Abort(1, what);
	exit(1);
}

static void check(struct bench *b, int code, const char *what)
{
	if (code)
		die(b, what, code);
}

/* ---- the ways ---- */

static void over_ring(struct bench *b)
{
	check(b, pmi2x_ring_allgather(b->ring, b->block, b->bytes, b->all),
	      "ring allgather");
}

static void over_tree(struct bench *b)
{
	check(b, PMIX_Allgather_n(b->block, (int)b->bytes, b->all,
				  (int)b->bytes, NULL), "PMIX_Allgather_n");
}

static void key_of(const struct bench *b, char *key, int rank)
{
	snprintf(key, PMI2X_MAX_KEYLEN, "bench-%d-%d", b->serial, rank);
}

static void over_keys(struct bench *b)
{
	char key[PMI2X_MAX_KEYLEN];

	key_of(b, key, b->rank);
	check(b, PMIX_KVS_Put_n(key, b->block, (int)b->bytes), "put");
	check(b, PMI2_KVS_Fence(), "fence");
	for (int r = 0; r < b->size; r++) {
		key_of(b, key, r);
		check(b, PMIX_KVS_Get_n(key, b->all + r * b->bytes,
					(int)b->bytes, NULL), "get");
	}
}

static const struct way {
	const char *name;
	void (*gather)(struct bench *b);
	size_t max; /* bytes of a block */
} ways[] = {
	{ "ring", over_ring, PMI2X_RING_BLOCK_MAX },
	{ "allgather", over_tree, PMI2X_MAX_VALLEN },
	{ "put-fence-get", over_keys, PMI2X_MAX_VALLEN },
};

/* ---- rounds ---- */

static char content(const struct bench *b, int rank)
{
	return (char)(rank * 7 + b->serial);
}

static void verify(struct bench *b, const char *what)
{
	for (int r = 0; r < b->size; r++) {
		const char *at = b->all + r * b->bytes;

		if (at[0] != content(b, r) ||
		    at[b->bytes - 1] != content(b, r))
			die(b, what, r);
	}
}

static double one_round(struct bench *b, const struct way *way)
{
	double start;

	b->serial++;
	memset(b->block, content(b, b->rank), b->bytes);
	check(b, PMI2_KVS_Fence(), "fence");
	start = clock_s(CLOCK_MONOTONIC);
	way->gather(b);
	start = clock_s(CLOCK_MONOTONIC) - start;
	verify(b, way->name);
	return start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The contribution of a rank to a line. */
struct part {
	uint64_t steps, messages, bytes;
	double times[];
};

static void print_line(struct bench *b, const struct way *way,
		       const char *parts, size_t part_len)
{
	uint64_t steps = 0, messages = 0, bytes = 0;
	pmi2x_ring_counters c;

	memset(b->times, 0, b->rounds * sizeof(*b->times));
	for (int r = 0; r < b->size; r++) {
		const struct part *p = (const void *)(parts + r * part_len);

		steps = p->steps > steps ? p->steps : steps;
		messages += p->messages;
		bytes += p->bytes;
		for (int i = 0; i < b->rounds; i++)
			if (p->times[i] > b->times[i])
				b->times[i] = p->times[i];
	}
	qsort(b->times, b->rounds, sizeof(*b->times), compare);
	pmi2x_ring_get_counters(b->ring, &c);
	printf("%s,%s,%d,%u,%zu,%d,%.9f,%.9f,%llu,%llu,%llu\n", way->name,
	       way == ways ? pmi2x_ring_transport(b->ring) : "pmi", b->size,
	       c.elements, b->bytes, b->rounds, b->times[b->rounds / 2],
	       b->times[0], (unsigned long long)steps / b->rounds,
	       (unsigned long long)messages / b->rounds,
	       (unsigned long long)bytes / b->rounds);
	fflush(stdout);
}

static void run_way(struct bench *b, const struct way *way)
{
	size_t part_len = sizeof(struct part) + b->rounds * sizeof(double);
	struct part *part = calloc(1, part_len);
	char *parts = calloc(b->size, part_len);
	pmi2x_ring_counters before, after;

	if (!part || !parts)
		die(b, "no memory", 0);
	one_round(b, way); /* warm */
	pmi2x_ring_get_counters(b->ring, &before);
	for (int i = 0; i < b->rounds; i++)
		part->times[i] = one_round(b, way);
	pmi2x_ring_get_counters(b->ring, &after);
	part->steps = after.steps - before.steps;
	part->messages = after.messages_sent - before.messages_sent;
	part->bytes = after.bytes_sent - before.bytes_sent;
	check(b, PMIX_Allgather_n(part, (int)part_len, parts, (int)part_len,
				  NULL), "times");
	if (b->rank == 0)
		print_line(b, way, parts, part_len);
	free(part);
	free(parts);
}

static void run_size(struct bench *b, size_t bytes)
{
	b->bytes = bytes;
	b->block = malloc(bytes);
	b->all = malloc(bytes * b->size);
	if (!b->block || !b->all)
		die(b, "no memory", 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (bytes <= ways[i].max)
			run_way(b, &ways[i]);
	free(b->block);
	free(b->all);
}

static int usage(void)
{
	fputs("usage: pmi2x bench ring [rounds [bytes ...]]\n"
	      "Compare the ring with PMIX_Allgather and put, fence, get.\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static char *presets[] = { "64", "256", "1024", "4096", "16384",
				   "65536" };
	struct bench b = { .rounds = argc > 1 ? atoi(argv[1]) : ROUNDS };
	char **sizes = argc > 2 ? argv + 2 : presets;
	int count = argc > 2 ? argc - 2 : 6, spawned, appnum;
	char why[PMI2X_RING_ERROR_MAX];

	if (b.rounds < 1)
		return usage();
	for (int i = 0; i < count; i++)
		if (atol(sizes[i]) < 1 || atol(sizes[i]) > PMI2X_RING_BLOCK_MAX)
			return usage();
	b.times = calloc(b.rounds, sizeof(*b.times));
	if (!b.times || PMI2_Init(&spawned, &b.size, &b.rank, &appnum))
		return 1;
	if (pmi2x_ring_create(&b.ring, NULL, why, sizeof(why)))
		die(&b, why, 0);
	if (b.rank == 0)
		printf("way,transport,ranks,elements,bytes,rounds,"
		       "median_s,best_s,steps,messages,bytes_sent\n");
	for (int i = 0; i < count; i++)
		run_size(&b, atol(sizes[i]));
	pmi2x_ring_destroy(b.ring);
	free(b.times);
	PMI2_Finalize();
	return 0;
}
