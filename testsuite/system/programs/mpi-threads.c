// SPDX-License-Identifier: BSD-3-Clause
/*
 * An MPI program with OpenMP: each rank prints the size of its team and the cores on which
 * it may run.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, threads = 0;
	cpu_set_t set;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp parallel
#pragma omp single
	threads = omp_get_num_threads();
	sched_getaffinity(0, sizeof(set), &set);
	printf("rank %d threads %d cores %d\n", rank, threads, CPU_COUNT(&set));
	MPI_Finalize();
	return 0;
}
