/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With LIBRARY: a library that has no more of Open MPI than its name. Without: a program
 * that needs it and speaks no PMI; it waits until there is a file, if it is given a name.
 */
#include <unistd.h>

#ifdef LIBRARY
int ompi_mpi_init(void)
{
	return 1;
}
#else
int main(int argc, char **argv)
{
	while (argc > 1 && access(argv[1], F_OK))
		usleep(10000);
	return 0;
}
#endif
