/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work UNIT LOAD0 LOAD1 REGIONS MEETINGS: two ranks, each of which computes REGIONS loops of
 * UNIT * LOAD iterations and then meets the other in a barrier. Prints seconds, the processor
 * time of both, and that of the whole machine.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "times.h"

#define PARTS 1000

static double burn(long n)
{
	double x = 1.0;

	for (long i = 0; i < n; i++)
		x = x * 1.0000001 + 1e-9;
	return x;
}

static double compute(int regions, long n)
{
	double sum = 0;

	for (int r = 0; r < regions; r++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
		for (long i = 0; i < PARTS; i++)
			sum += burn(n / PARTS);
	}
	return sum;
}

int main(int argc, char **argv)
{
	double time, own, both, machine, sum;
	int rank, regions, meetings;
	long n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 6)
		MPI_Abort(MPI_COMM_WORLD, 2);
	n = (long)(atof(argv[1]) * atof(argv[2 + rank]));
	regions = atoi(argv[4]);
	meetings = atoi(argv[5]);
	sum = compute(2, n);
	MPI_Barrier(MPI_COMM_WORLD);
	time = MPI_Wtime();
	own = own_time();
	machine = machine_time();
	for (int m = 0; m < meetings; m++) {
		sum += compute(regions, n);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	time = MPI_Wtime() - time;
	own = own_time() - own;
	PMPI_Allreduce(&own, &both, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		printf("%.5f %.3f %.3f %d\n", time, both, machine_time() - machine, sum > 0);
	MPI_Finalize();
	return 0;
}
