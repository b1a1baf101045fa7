/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a program an MPI program? Known when its own file needs a library of that name: a
 * look at its first pages, in srun, before a step begins.
 */
#ifndef PMI2X_MPI_PROGRAM_H
#define PMI2X_MPI_PROGRAM_H

#include <stdbool.h>

/* False also when it is a script, is not here, or cannot be read. Does not block. */
bool mpi_program(const char *path);

#endif
