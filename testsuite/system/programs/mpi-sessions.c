/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that never call MPI_Init: communicators of all ranks and of some, made of groups
 * of processes by name, twice in a row. Rank 0 prints "good N", N the number of ranks.
 * The argument says how many sessions there are, one after the other: 1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Session session;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s fails\n", what);
	exit(5);
}

/* The ranks can communicate: the sum of their numbers is right. */
static void use(MPI_Group group, const char *tag)
{
	MPI_Comm comm;
	int rank, size, sum;

	check(!MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN,
					  &comm), tag);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	check(sum == size * (size - 1) / 2, "the sum");
	MPI_Comm_free(&comm);
}

static void use_session(void)
{
	MPI_Group world, odd;
	int rank, size, range[1][3] = { { 1, 0, 2 } };

	check(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session),
	      "MPI_Session_init");
	check(!MPI_Group_from_session_pset(session, "mpi://WORLD", &world),
	      "MPI_Group_from_session_pset");
	MPI_Group_rank(world, &rank);
	MPI_Group_size(world, &size);
	range[0][1] = size - 1;
	MPI_Group_range_incl(world, 1, range, &odd);
	use(world, "all");
	if (rank % 2)
		use(odd, "odd");
	use(world, "all again");
	if (rank % 2)
		use(odd, "odd again");
	MPI_Group_free(&odd);
	MPI_Group_free(&world);
	MPI_Session_finalize(&session);
	if (!rank)
		printf("good %d\n", size);
}

int main(int argc, char *argv[])
{
	int sessions = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < sessions; i++)
		use_session();
	return 0;
}
