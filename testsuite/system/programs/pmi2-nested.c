/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2-nested COMMAND RANK: as mpi-nested.c, by PMI-2 through libpmi2x. */
#include <pmi2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Each rank puts its number; nonzero: not all values come back. */
static int exchange(const char *when, int rank, int size)
{
	char job[PMI2_MAX_VALLEN], key[64], value[64];
	int length, wrong = PMI2_Job_GetId(job, sizeof(job));

	snprintf(key, sizeof(key), "%s-%d", when, rank);
	snprintf(value, sizeof(value), "%d", rank);
	wrong |= PMI2_KVS_Put(key, value) | PMI2_KVS_Fence();
	for (int r = 0; r < size; r++) {
		snprintf(key, sizeof(key), "%s-%d", when, r);
		wrong |= PMI2_KVS_Get(job, PMI2_ID_NULL, key, value, sizeof(value),
				      &length);
		wrong |= atoi(value) != r;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	int spawned, size, rank, appnum, wrong, status;

	if (argc < 3 || PMI2_Init(&spawned, &size, &rank, &appnum))
		return 1;
	wrong = exchange("before", rank, size);
	if (!strcmp(argv[2], "all") || atoi(argv[2]) == rank) {
		status = system(argv[1]);
		printf("inner %s\n", WIFEXITED(status) && !WEXITSTATUS(status) ?
			       "right" : "refused");
		fflush(stdout);
	}
	wrong |= exchange("after", rank, size);
	if (rank == 0)
		printf("outer %s\n", wrong ? "wrong" : "right");
	PMI2_Finalize();
	return wrong != 0;
}
