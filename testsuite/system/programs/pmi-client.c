// SPDX-License-Identifier: BSD-3-Clause
/* Uses PMI-1 through the drop-in libpmi.so.0: put, commit, barrier, get. */
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	PMI_Abort(1, "a check failed");
	exit(1);
}

int main(void)
{
	int spawned = -1, size = 0, rank = -1;
	char name[256], key[64], value[1024], wanted[64];

	require(PMI_Init(&spawned) == PMI_SUCCESS && !spawned, "init");
	require(PMI_Get_size(&size) == PMI_SUCCESS, "the size");
	require(PMI_Get_rank(&rank) == PMI_SUCCESS, "the rank");
	require(PMI_KVS_Get_my_name(name, sizeof(name)) == PMI_SUCCESS,
		"the name of the KVS");
	snprintf(key, sizeof(key), "key-%d", rank);
	snprintf(value, sizeof(value), "value-%d", rank);
	require(PMI_KVS_Put(name, key, value) == PMI_SUCCESS, "put");
	require(PMI_KVS_Commit(name) == PMI_SUCCESS, "commit");
	require(PMI_Barrier() == PMI_SUCCESS, "barrier");
	for (int r = 0; r < size; r++) {
		snprintf(key, sizeof(key), "key-%d", r);
		snprintf(wanted, sizeof(wanted), "value-%d", r);
		require(PMI_KVS_Get(name, key, value, sizeof(value)) ==
			PMI_SUCCESS && strcmp(value, wanted) == 0, "a value");
	}
	require(PMI_Finalize() == PMI_SUCCESS, "finalize");
	printf("pmi client of %d\n", size);
	return 0;
}
