/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI no-op of pmi2x bench launch: MPI_Init and MPI_Finalize, and nothing else.
 * Rank 0 says how many ranks there were, since a program whose MPI library does
 * not speak the launcher's PMI is alone.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		printf("noop ranks=%d\n", size);
	return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
