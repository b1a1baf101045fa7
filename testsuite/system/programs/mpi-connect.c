// SPDX-License-Identifier: BSD-3-Clause
/*
 * The lower half of the ranks opens and publishes a port, the upper half looks
 * it up and connects; both exchange a sum. Argument: the service's name.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 9);
}

static MPI_Comm serve(MPI_Comm mine, int root, char *service)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter;

	if (root) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Publish_name(service, MPI_INFO_NULL, port);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &inter);
	if (root) {
		MPI_Unpublish_name(service, MPI_INFO_NULL, port);
		MPI_Close_port(port);
	}
	return inter;
}

static MPI_Comm call(MPI_Comm mine, int root, char *service)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter;

	MPI_Barrier(MPI_COMM_WORLD);
	if (root)
		MPI_Lookup_name(service, MPI_INFO_NULL, port);
	MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &inter);
	return inter;
}

/* A name that nobody has published is an error, not a hang. */
static void check_unknown_name(void)
{
	char port[MPI_MAX_PORT_NAME];

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	require(MPI_Lookup_name("nobody-is-called-so", MPI_INFO_NULL, port) !=
		MPI_SUCCESS, "the look-up of an unknown name");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	int rank, size, mine_rank, upper, one = 1, sum = 0;
	MPI_Comm mine, inter, all;

	MPI_Init(&argc, &argv);
	require(argc > 1, "the arguments");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	upper = rank >= size / 2;
	MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &mine);
	MPI_Comm_rank(mine, &mine_rank);
	if (rank == 0)
		check_unknown_name();
	inter = upper ? call(mine, mine_rank == 0, argv[1]) :
			serve(mine, mine_rank == 0, argv[1]);
	MPI_Intercomm_merge(inter, upper, &all);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
	require(sum == size, "the number of processes");
	if (rank == 0)
		printf("connected %d\n", sum);
	MPI_Comm_free(&all);
	MPI_Comm_disconnect(&inter);
	MPI_Finalize();
	return 0;
}
