/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for an MPI library among those that a program names. */
#include "supervisor/mpi_program.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/elf_needs.h"

/*
 * How their names begin; the first that fits counts. Open MPI, OpenSHMEM and PMIx itself;
 * MPICH, Intel MPI, MVAPICH; their Fortran and C++.
 */
static const struct {
	const char *name;
	enum mpi_program program;
} libraries[] = {
	{ "libmpi.so.40", MPI_PROGRAM_PMIX },
	{ "libmpi_mpifh.so", MPI_PROGRAM_PMIX },
	{ "libmpi_usempi", MPI_PROGRAM_PMIX },
	{ "liboshmem", MPI_PROGRAM_PMIX },
	{ "libpmix.so", MPI_PROGRAM_PMIX },
	{ "libmpi.so", MPI_PROGRAM_PMI },
	{ "libmpi_", MPI_PROGRAM_PMI },
	{ "libmpich", MPI_PROGRAM_PMI },
	{ "libmpifort", MPI_PROGRAM_PMI },
	{ "libmpicxx", MPI_PROGRAM_PMI },
};

static size_t read_file(void *arg, uint64_t at, void *out, size_t len)
{
	const int *fd = arg;
	ssize_t n = pread(*fd, out, len, (off_t)at);

	return n > 0 ? (size_t)n : 0;
}

static bool note_library(void *arg, enum elf_need need, const char *name)
{
	enum mpi_program *found = arg;
	size_t n = sizeof(libraries) / sizeof(libraries[0]), i = 0;

	if (need != ELF_NEEDS_LIBRARY)
		return true;
	while (i < n && strncmp(name, libraries[i].name,
				strlen(libraries[i].name)))
		i++;
	if (i < n && libraries[i].program > *found)
		*found = libraries[i].program;
	return *found != MPI_PROGRAM_PMIX;
}

enum mpi_program mpi_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum mpi_program found = MPI_PROGRAM_OTHER;
	struct stat st;

	if (fd < 0)
		return found;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		elf_needs(read_file, &fd, note_library, &found);
	close(fd);
	return found;
}
