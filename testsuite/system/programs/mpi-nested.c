/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi-nested COMMAND RANK: runs a command between MPI_Init and MPI_Finalize, in this rank
 * or ("all") in each. Says how that ended, and whether all ranks still meet.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	int rank, size, sum = 0, status = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 2 && (!strcmp(argv[2], "all") || atoi(argv[2]) == rank)) {
		status = system(argv[1]);
		printf("inner %s\n", WIFEXITED(status) && !WEXITSTATUS(status) ?
			       "right" : "refused");
		fflush(stdout);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("outer %s\n", sum == size * (size - 1) / 2 ? "right" : "wrong");
	MPI_Finalize();
	return 0;
}
