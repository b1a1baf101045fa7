/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe: which PMI the files of a program bring along. */
#pragma once

#include <stdbool.h>

#include "tools/probe_files.h"

/* Names and paths are of `files` or constants; NULL: there is none. */
struct probe_look {
	const char *mpi;        /* "MPICH", ... */
	const char *mpi_path;   /* the file in which it is */
	const char *own;        /* a file with a client of its own, for PMI_FD */
	bool own_pmi2;          /* one that has PMI-2 */
	const char *libpmi2x;
	const char *libpmi2;
	const char *libpmi;
	const char *libpmix;
	bool libpmi_of_slurm;   /* libpmi talks to srun, not on PMI_FD */
	const char *components; /* Open MPI's components for libpmi or libpmi2 */
};

/* False, with a message, when a file cannot be read. */
bool probe_look(struct probe_look *l, const struct probe_files *files);
