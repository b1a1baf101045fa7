/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last rank dies; the others hear of it by Open MPI's fault tolerance (ULFM), and go
 * on in a communicator without it. Its rank 0 prints "outlived N", N its size. srun may
 * lose the last lines of a step in which a rank ended by SIGKILL or SIGTERM.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

#include <mpi-ext.h> /* needs mpi.h before it */

int main(int argc, char **argv)
{
	MPI_Comm left;
	int rank, size, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		raise(SIGUSR1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPIX_Comm_revoke(MPI_COMM_WORLD);
	MPIX_Comm_shrink(MPI_COMM_WORLD, &left);
	MPI_Comm_size(left, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, left);
	if (!rank && sum == size * (size - 1) / 2)
		printf("outlived %d\n", size);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
