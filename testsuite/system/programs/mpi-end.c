/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that ends as its first argument says: abort, segv, exit (without
 * MPI_Finalize) of rank 1; hold: it stays until it is ended; gate: until the file that is
 * the next argument is there; or well. All ranks say when they are up.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void end(const char *how)
{
	if (!strcmp(how, "abort"))
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (!strcmp(how, "segv")) {
		signal(SIGSEGV, SIG_DFL); /* Open MPI has its own */
		raise(SIGSEGV);
	}
	if (!strcmp(how, "exit"))
		_exit(3);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("up %d\n", rank);
	fflush(stdout);
	if (rank == 1)
		end(how);
	while (!strcmp(how, "hold"))
		pause();
	while (!strcmp(how, "gate") && access(argv[2], F_OK))
		usleep(10000);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
