// SPDX-License-Identifier: BSD-3-Clause
/*
 * An MPI program that knows nothing of pmi2x: it starts up, uses collectives
 * over all ranks, checks what they return, and says how long MPI_Init took.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static double seconds(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	return tv.tv_sec + tv.tv_usec * 1e-6;
}

static void fail(int rank, const char *what)
{
	fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_allgather(int rank, int size)
{
	int *all = malloc(size * sizeof(*all));

	if (!all)
		fail(rank, "the size of memory");
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		if (all[i] != i)
			fail(rank, "the result of MPI_Allgather");
	free(all);
}

static void check_allreduce(int rank, int size)
{
	long mine = rank, sum = -1;

	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != (long)size * (size - 1) / 2)
		fail(rank, "the result of MPI_Allreduce");
}

static void check_ring(int rank, int size)
{
	int left = (rank + size - 1) % size, right = (rank + 1) % size;
	int got = -1;

	MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (got != left)
		fail(rank, "the message from the left");
}

int main(int argc, char **argv)
{
	double begin = seconds(), mine, slowest;
	int rank, size;

	MPI_Init(&argc, &argv);
	mine = seconds() - begin;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check_allgather(rank, size);
	check_allreduce(rank, size);
	check_ring(rank, size);
	MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("size %d init %.6f\n", size, slowest);
	MPI_Finalize();
	return 0;
}
