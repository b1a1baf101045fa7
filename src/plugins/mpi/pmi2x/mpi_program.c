/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for an MPI library among those that a program names. */
#include "mpi_program.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/elf_needs.h"

/* How their names begin: MPICH, Intel MPI, MVAPICH, Open MPI; their Fortran and C++. */
static const char *const libraries[] = {
	"libmpi.so", "libmpi_", "libmpich", "libmpifort", "libmpicxx",
};

static size_t read_file(void *arg, uint64_t at, void *out, size_t len)
{
	const int *fd = arg;
	ssize_t n = pread(*fd, out, len, (off_t)at);

	return n > 0 ? (size_t)n : 0;
}

static bool note_library(void *arg, enum elf_need need, const char *name)
{
	bool *found = arg;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (need == ELF_NEEDS_LIBRARY &&
		    !strncmp(name, libraries[i], strlen(libraries[i])))
			*found = true;
	return !*found;
}

bool mpi_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool found = false;
	struct stat st;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		elf_needs(read_file, &fd, note_library, &found);
	close(fd);
	return found;
}
