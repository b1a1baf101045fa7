/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of pmi2x sim validate: collectives in a row whose keys and values have
 * the lengths of a scenario of the simulator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"

#define KEY_BYTES 16 /* key_bytes in the scenario */
#define ROUNDS_MAX 64
#define BYTES_MAX 1023

static int fail(int rank, const char *what, int rc)
{
	fprintf(stderr, "sim-rank: rank %d: %s: error %d\n", rank, what, rc);
	PMI2_Abort(1, "sim-rank failed");
	return 1;
}

static int fence(int rank, const char *value, int bytes)
{
	char key[KEY_BYTES + 16];
	int rc;

	snprintf(key, sizeof(key), "%0*d", KEY_BYTES, rank);
	rc = PMIX_KVS_Put_n(key, value, bytes);
	return rc ? rc : PMI2_KVS_Fence();
}

static int ring(const char *value)
{
	char left[BYTES_MAX + 1], right[BYTES_MAX + 1];
	int rank, size;

	return PMIX_Ring(value, &rank, &size, left, right, sizeof(left));
}

/* A barrier of the first ranks of all nodes, which have `per_node` ranks each. */
static int group(int rank, int size, int per_node)
{
	int *leaders, count = 0, rc = PMI2_ERR_NOMEM;

	if (rank % per_node)
		return 0;
	leaders = malloc((size / per_node + 1) * sizeof(*leaders));
	for (int r = 0; leaders && r < size; r += per_node)
		leaders[count++] = r;
	if (leaders)
		rc = PMI_Barrier_group(leaders, count, NULL);
	free(leaders);
	return rc;
}

/* The number N of "group=N"; else 0. */
static int group_of(const char *op)
{
	int per_node = 0;

	return sscanf(op, "group=%d", &per_node) == 1 && per_node > 0 ?
	       per_node : 0;
}

static int one(const char *op, int rank, int size, const char *value,
	       int bytes, void *all)
{
	if (group_of(op))
		return group(rank, size, group_of(op));
	if (strcmp(op, "fence") == 0)
		return fence(rank, value, bytes);
	if (strcmp(op, "allgather") == 0)
		return PMIX_Allgather_n(value, bytes, all, bytes, NULL);
	return ring(value);
}

int main(int argc, char **argv)
{
	int spawned, size, rank, appnum, rc = 0;
	int bytes = argc > 1 ? atoi(argv[1]) : 0;
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	char value[BYTES_MAX + 1] = "";
	void *all;

	if (argc < 4 || bytes < 1 || bytes > BYTES_MAX || rounds < 1 ||
	    rounds > ROUNDS_MAX) {
		fputs("usage: srun sim-rank BYTES ROUNDS fence|allgather|ring|group=RANKS_PER_NODE...\n",
		      stderr);
		return 2;
	}
	rc = PMI2_Init(&spawned, &size, &rank, &appnum);
	if (rc)
		return fail(rank, "init", rc);
	memset(value, 'v', bytes);
	all = malloc((size_t)size * bytes);
	for (int i = 0; !rc && all && i < rounds; i++)
		for (char **op = argv + 3; !rc && *op; op++)
			rc = one(*op, rank, size, value, bytes, all);
	/* A rank in no group stays while others need its node. */
	if (!rc && all && group_of(argv[3]))
		rc = PMI2_KVS_Fence();
	free(all);
	if (rc || !all)
		return fail(rank, "a collective", rc);
	return PMI2_Finalize() ? 1 : 0;
}
