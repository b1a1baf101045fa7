/* SPDX-License-Identifier: BSD-3-Clause */
/* The values that ranks exchange: how they are made, put, got and checked. */
#include "bench_rank.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void bench_key(char key[PMI2_MAX_KEYLEN], int rank, int i)
{
	snprintf(key, PMI2_MAX_KEYLEN, "bench-%d-%d", i, rank);
}

/* Letters that differ with rank and round in every byte, at any length. */
void bench_value(const struct bench *b, char *value, int rank, int i)
{
	uint32_t x = (uint32_t)rank * 2654435761u + (uint32_t)i * 40503u + 1;

	for (int n = 0; n < b->bytes; n++) {
		x = x * 1664525u + 1013904223u;
		value[n] = 'A' + (x >> 27); /* 'A' to '`' */
	}
	value[b->bytes] = '\0';
}

void bench_compare(const struct bench *b, const char *value, int len, int rank,
		   int i)
{
	char want[BENCH_VALUE_MAX + 1], what[64];

	bench_value(b, want, rank, i);
	if (len == b->bytes && memcmp(value, want, len) == 0)
		return;
	snprintf(what, sizeof(what), "comparison of rank %d's value %d", rank,
		 i);
	bench_check(b, PMI2_FAIL, what);
}

void bench_put(struct bench *b, int i)
{
	char key[PMI2_MAX_KEYLEN], value[BENCH_VALUE_MAX + 1];

	bench_key(key, b->rank, i);
	bench_value(b, value, b->rank, i);
	bench_check(b, b->pmi.put(key, value), "put");
}

int bench_get(struct bench *b, int rank, int i, char *value)
{
	char key[PMI2_MAX_KEYLEN];
	int len = -1;

	bench_key(key, rank, i);
	bench_check(b, b->pmi.get(NULL, rank, key, value, BENCH_VALUE_MAX + 1,
				  &len), "get");
	return len;
}

void bench_check_value(struct bench *b, int rank, int i)
{
	char value[BENCH_VALUE_MAX + 1];
	int len = bench_get(b, rank, i, value);

	bench_compare(b, value, len, rank, i);
}

/* If a get is a message, each rank checks one value, of a rank far away in the job. */
bool bench_checks(const struct bench *b, int rank)
{
	if (b->rank == 0)
		return true;
	if (b->check_node)
		return rank % b->locals == b->local;
	return rank == (b->rank + b->size / 2) % b->size;
}

void bench_check_rounds(struct bench *b, int rounds)
{
	for (int r = 0; r < b->size; r++) {
		for (int i = 0; bench_checks(b, r) && i < rounds; i++)
			bench_check_value(b, r, i);
	}
}

void bench_check_all(struct bench *b)
{
	bench_check_rounds(b, b->rounds);
}

/* A put is memory of the node once fences are entered through its slots. */
static bool put_is_local(const struct bench_pmi *pmi)
{
	char slots[16];

	return pmi->capability &&
	       pmi->capability("slots", slots, sizeof(slots)) ==
		       PMI2_SUCCESS &&
	       strcmp(slots, "0") != 0;
}

void bench_settle_choose(struct bench *b)
{
	if (b->meeting)
		b->puts = "met";
	else if (put_is_local(&b->pmi))
		b->puts = "local";
	else if (b->pmi.barrier || b->pmi.ring)
		b->puts = "before";
	else
		b->puts = "inside";
}

/* After the rest, the plugin's work of a round is over, or outside of what is timed. */
static void take_rest(const struct bench *b)
{
	struct timespec rest = {
		.tv_sec = b->rest / 1000,
		.tv_nsec = b->rest % 1000 * 1000000L,
	};

	if (b->rest)
		nanosleep(&rest, NULL);
}

void bench_await_all(const struct bench *b)
{
	if (b->meeting)
		bench_meet(b->meeting, b->size);
}

/*
 * A ring has no keys, and nobody leaves it before everybody has entered; but some
 * leave it late, which a meeting in memory keeps out of what is timed next.
 */
void bench_settle(struct bench *b)
{
	char left[16], right[16];
	int rank, size;

	take_rest(b);
	bench_await_all(b);
	if (strcmp(b->puts, "before") != 0)
		return;
	if (b->pmi.barrier)
		bench_check(b, b->pmi.barrier(), "barrier");
	else
		bench_check(b, b->pmi.ring("settle", &rank, &size, left, right,
					   sizeof(left)), "ring after the puts");
}
