/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints microseconds of a ping-pong, an Allreduce of one double, and a Barrier. It has an OpenMP
 * team, so that all parts of lending are active.
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

#define CALLS 20000
#define TURNS 15
#define KINDS 3

static void ping_pong(int rank)
{
	double b = 0;

	if (!rank)
		MPI_Send(&b, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
	MPI_Recv(&b, 1, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank)
		MPI_Send(&b, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
}

static void allreduce(int rank)
{
	double in = rank, out;

	MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(int rank)
{
	(void)rank;
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	void (*const calls[KINDS])(int) = { ping_pong, allreduce, barrier };
	double best[KINDS] = { 1e9, 1e9, 1e9 }, t;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (omp_get_max_threads() < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int turn = 0; turn < TURNS * KINDS; turn++) {
		MPI_Barrier(MPI_COMM_WORLD);
		t = MPI_Wtime();
		for (int i = 0; i < CALLS; i++)
			calls[turn % KINDS](rank);
		t = (MPI_Wtime() - t) / CALLS * 1e6;
		best[turn % KINDS] = t < best[turn % KINDS] ? t : best[turn % KINDS];
	}
	if (!rank)
		printf("%.3f %.3f %.3f\n", best[0], best[1], best[2]);
	MPI_Finalize();
	return 0;
}
