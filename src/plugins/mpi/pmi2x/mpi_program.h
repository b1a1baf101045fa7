/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a program an MPI program, and of which kind? Known when its own file needs a library of that name: a
 * look at its first pages, in srun, before a step begins.
 */
#ifndef PMI2X_MPI_PROGRAM_H
#define PMI2X_MPI_PROGRAM_H

#include "launch_env.h"

/* "Other" also when it is a script, is not here, or cannot be read. Does not block. */
enum launch_program mpi_program(const char *path);

#endif
