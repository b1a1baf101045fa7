/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kind of MPI library that a program needs, if any. Known when its own file needs a library
 * of that name: a look at its first pages, before it is started.
 */
#pragma once

enum mpi_program {
	MPI_PROGRAM_OTHER,
	MPI_PROGRAM_PMI,  /* linked with an MPI library */
	MPI_PROGRAM_PMIX, /* linked with an MPI library that uses PMIx only */
};

/* "Other" also when it is a script, is not here, or cannot be read. Does not block. */
enum mpi_program mpi_program(const char *path);
