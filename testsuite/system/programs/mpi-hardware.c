/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank binds itself to a CPU of its own, as far as there are enough, before
 * MPI_Init. Prints how many ranks it shares its hardware thread with, as MPI tells by
 * hwloc: 0 when all ranks of the node do, -1 when the library cannot tell.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void bind_to(int wanted)
{
	cpu_set_t have, one;
	int cpu;

	sched_getaffinity(0, sizeof(have), &have);
	wanted %= CPU_COUNT(&have);
	for (cpu = 0; !CPU_ISSET(cpu, &have) || wanted--; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int sharers(void)
{
	MPI_Comm with;
	MPI_Info info;
	int n = 0;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_hw_resource_type", "hwthread");
	if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info,
				&with))
		return -1;
	if (with != MPI_COMM_NULL)
		MPI_Comm_size(with, &n);
	return n;
}

int main(int argc, char **argv)
{
	bind_to(atoi(getenv("SLURM_LOCALID")));
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	printf("shares %d\n", sharers());
	MPI_Finalize();
	return 0;
}
