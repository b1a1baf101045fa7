// SPDX-License-Identifier: BSD-3-Clause
/*
 * Rank 0 publishes a port; the last rank looks it up; then it is taken back. A name that
 * nobody has published is an error, not a hang. Argument: the service's name.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define PORT "tag#0$port=1;x"

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 9);
}

static int finds(const char *service)
{
	char port[MPI_MAX_PORT_NAME] = "";

	if (MPI_Lookup_name(service, MPI_INFO_NULL, port) != MPI_SUCCESS)
		return 0;
	require(!strcmp(port, PORT), "the port");
	return 1;
}

int main(int argc, char **argv)
{
	int rank, size, last;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	require(argc > 1, "the arguments");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	last = rank == size - 1;
	if (last)
		require(!finds(argv[1]), "a name that nobody has published");
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		require(!MPI_Publish_name(argv[1], MPI_INFO_NULL, PORT), "publish");
	MPI_Barrier(MPI_COMM_WORLD);
	if (last)
		require(finds(argv[1]), "look up");
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		require(!MPI_Unpublish_name(argv[1], MPI_INFO_NULL, PORT), "unpublish");
	MPI_Barrier(MPI_COMM_WORLD);
	if (last) {
		require(!finds(argv[1]), "a name that has been taken back");
		puts("found and gone");
	}
	MPI_Finalize();
	return 0;
}
