// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two programs find each other by a published name, and exchange a sum. Arguments: "serve"
 * or "call", the service's name. The caller looks the name up until it is there.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TRIES 3000
#define PAUSE_NS 10000000

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 9);
}

static MPI_Comm serve(int root, const char *service)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter;

	if (root) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Publish_name(service, MPI_INFO_NULL, port);
	}
	MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	if (root) {
		MPI_Unpublish_name(service, MPI_INFO_NULL, port);
		MPI_Close_port(port);
	}
	return inter;
}

static MPI_Comm call(int root, const char *service)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter;
	int found = !root;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; !found && i < TRIES; i++) {
		found = !MPI_Lookup_name(service, MPI_INFO_NULL, port);
		if (!found)
			nanosleep(&pause, NULL);
	}
	require(found, "the name");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	return inter;
}

int main(int argc, char **argv)
{
	int rank, size, others, one = 1, sum = 0;
	MPI_Comm inter;

	MPI_Init(&argc, &argv);
	require(argc > 2, "the arguments");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	inter = strcmp(argv[1], "serve") ? call(!rank, argv[2]) : serve(!rank, argv[2]);
	MPI_Comm_remote_size(inter, &others);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	require(sum == others, "the sum");
	if (!rank)
		printf("%d met %d\n", size, sum);
	MPI_Comm_disconnect(&inter);
	MPI_Finalize();
	return 0;
}
