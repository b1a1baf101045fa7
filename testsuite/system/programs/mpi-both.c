/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi-both FIRST: one process uses PMIx (an MPI library's) and PMI-2 (libpmi2x) at a time.
 * FIRST, "pmi" or "pmix", starts first. Says whether all ranks meet in both.
 */
#include <mpi.h>
#include <pmi2.h>
#include <stdio.h>
#include <string.h>

static int start_pmi(void)
{
	int spawned, size, rank, appnum;

	return PMI2_Init(&spawned, &size, &rank, &appnum);
}

int main(int argc, char **argv)
{
	int first = argc > 1 && !strcmp(argv[1], "pmi"), wrong = 0, rank, size, sum = 0;

	wrong |= first && start_pmi();
	MPI_Init(&argc, &argv);
	wrong |= !first && start_pmi();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	wrong |= PMI2_KVS_Fence();
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	wrong |= PMI2_KVS_Fence();
	if (wrong || sum != size * (size - 1) / 2)
		printf("wrong\n");
	else if (rank == 0)
		printf("both right\n");
	MPI_Finalize();
	PMI2_Finalize();
	return wrong != 0;
}
