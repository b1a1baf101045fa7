/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that fences; rank 1 executes a shell with the argument before that, unless
 * it is ":". Exits 1 when the fence fails.
 */
#include <pmi2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank = -1, rc;

	if (argc != 2 || PMI2_Init(NULL, NULL, &rank, NULL))
		return 2;
	if (rank == 1 && strcmp(argv[1], ":") != 0) {
		execl("/bin/sh", "sh", "-c", argv[1], NULL);
		return 2;
	}
	rc = PMI2_KVS_Fence();
	printf("fence: %d\n", rc);
	PMI2_Finalize();
	return rc != 0;
}
