// SPDX-License-Identifier: BSD-3-Clause
/*
 * Spawns itself, and checks what the children find: their number, appnum, the
 * working directory that the info key asked for, and that an intercommunicator
 * carries data. Arguments of the parent: the mode, the number of children.
 *
 * Modes: "spawn" one command; "multiple" two commands in one call; "wdir" with
 * the info key wdir=/; "path" finds the program through the info key path;
 * "host" places the children on node n2; "twice" spawns two times in a row.
 */
#include <mpi.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 9);
}

/*
 * Every process of the other side adds one. (Not on a merged communicator:
 * MPICH 4 and 5 mix up the nodes of both worlds in it.)
 */
static void check_sum(MPI_Comm inter, int others)
{
	int one = 1, sum = 0;

	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	require(sum == others, "the number of processes");
}

static int app_number(void)
{
	int *value = NULL, found = 0;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found);
	return found ? *value : -1;
}

static void run_child(MPI_Comm parent, char **argv)
{
	int parents, rank, size, expected = atoi(argv[2]);
	char cwd[4096] = "";

	MPI_Comm_remote_size(parent, &parents);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	require(size == expected, "the number of children");
	if (strcmp(argv[1], "wdir") == 0)
		require(getcwd(cwd, sizeof(cwd)) && strcmp(cwd, "/") == 0,
			"the working directory");
	if (strcmp(argv[1], "host") == 0)
		require(strcmp(getenv("SLURMD_NODENAME"), "n2") == 0,
			"the node");
	printf("child %d of %d appnum %d\n", rank, size, app_number());
	check_sum(parent, parents);
	MPI_Comm_disconnect(&parent);
}

static MPI_Comm spawn_one(char *program, char *mode, int children)
{
	char count[16], dir[4096];
	char *argv[] = { mode, count, NULL };
	MPI_Info info;
	MPI_Comm inter;

	snprintf(count, sizeof(count), "%d", children);
	MPI_Info_create(&info);
	if (strcmp(mode, "wdir") == 0)
		MPI_Info_set(info, "wdir", "/");
	if (strcmp(mode, "host") == 0)
		MPI_Info_set(info, "host", "n2");
	if (strcmp(mode, "path") == 0) {
		snprintf(dir, sizeof(dir), "%s", program);
		MPI_Info_set(info, "path", dirname(dir));
		program = basename(program);
	}
	MPI_Comm_spawn(program, argv, children, info, 0, MPI_COMM_WORLD,
		       &inter, MPI_ERRCODES_IGNORE);
	MPI_Info_free(&info);
	return inter;
}

static MPI_Comm spawn_multiple(char *program, char *mode, int children)
{
	char count[16];
	char *argv[] = { mode, count, NULL };
	char *programs[] = { program, program };
	char **argvs[] = { argv, argv };
	int counts[] = { 1, children - 1 };
	MPI_Info infos[] = { MPI_INFO_NULL, MPI_INFO_NULL };
	MPI_Comm inter;

	snprintf(count, sizeof(count), "%d", children);
	MPI_Comm_spawn_multiple(2, programs, argvs, counts, infos, 0,
				MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	return inter;
}

static void run_parent(char **argv)
{
	int children = atoi(argv[2]);
	int rounds = strcmp(argv[1], "twice") == 0 ? 2 : 1;
	MPI_Comm inter;

	for (int i = 0; i < rounds; i++) {
		if (strcmp(argv[1], "multiple") == 0)
			inter = spawn_multiple(argv[0], argv[1], children);
		else
			inter = spawn_one(argv[0], argv[1], children);
		check_sum(inter, children);
		MPI_Comm_disconnect(&inter);
	}
	printf("parent done\n");
}

int main(int argc, char **argv)
{
	MPI_Comm parent;

	MPI_Init(&argc, &argv);
	require(argc > 2, "the arguments");
	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL)
		run_parent(argv);
	else
		run_child(parent, argv);
	MPI_Finalize();
	return 0;
}
