/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-probe: looks through the files of a program for PMI. A client that is built
 * into an MPI library has no symbol that one could ask for, and a static program has no
 * library: they are known by words that they cannot do without, such as the name of the
 * variable in which a launcher hands them their connection.
 */
#include "tools/probe_look.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A word with its NUL: no part of a sentence. */
#define WORD(text) { text, sizeof(text) }
/* The beginning of one. */
#define BEGIN(text) { text, sizeof(text) - 1 }

struct mark {
	const char *text;
	size_t len;
};

struct bytes {
	const char *at;
	size_t len;
};

static const struct mark PMI_FD = WORD("PMI_FD");
static const struct mark PMI2 = WORD("fullinit");
static const struct mark PMIX = WORD("PMIX_SERVER_URI");

/* The more particular before what they are made of. */
static const struct {
	const char *name;
	struct mark mark;
} libraries[] = {
	{ "Intel MPI", BEGIN("I_MPI_PMI_LIBRARY") },
	{ "Open MPI", WORD("ompi_mpi_init") },
	{ "MVAPICH", BEGIN("MVAPICH2 Version") },
	{ "MVAPICH", BEGIN("MVAPICH Version") },
	{ "Cray MPICH", BEGIN("CRAY MPICH version") },
	{ "MPICH", BEGIN("MPICH Version") },
};

#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static bool has(const struct bytes *b, const struct mark *m)
{
	return memmem(b->at, b->len, m->text, m->len);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_named(const char *path, const char *begin)
{
	return !strncmp(base_name(path), begin, strlen(begin));
}

/* ---- by name ---- */

/* Note the library if it is one that has nothing but PMI. True: it is. */
static bool note_pmi_library(struct probe_look *l, const char *path,
			     const struct bytes *b)
{
	if (is_named(path, "libpmi2x.so"))
		l->libpmi2x = path;
	else if (is_named(path, "libpmi2.so"))
		l->libpmi2 = path;
	else if (is_named(path, "libpmix.so"))
		l->libpmix = path;
	else if (is_named(path, "libpmi.so"))
		l->libpmi = path;
	else
		return false;
	if (l->libpmi == path)
		l->libpmi_of_slurm = !has(b, &PMI_FD);
	return true;
}

/* Open MPI loads them as it runs, from a directory beside its library. */
static void look_for_components(struct probe_look *l)
{
	static const char *const names[] = { "mca_pmix_s2.so",
					     "mca_pmix_s1.so" };
	char *real = realpath(l->mpi_path, NULL);
	char path[PATH_MAX];

	for (int i = 0; real && !l->components && i < 2; i++) {
		int dir = (int)(base_name(real) - real);

		if (snprintf(path, sizeof(path), "%.*sopenmpi/%s", dir, real,
			     names[i]) < (int)sizeof(path) &&
		    !access(path, R_OK))
			l->components = names[i];
	}
	free(real);
}

/* ---- by content ---- */

static void note_mpi(struct probe_look *l, const char *path,
		     const struct bytes *b)
{
	for (size_t i = 0; !l->mpi && i < LIBRARIES; i++)
		if (has(b, &libraries[i].mark)) {
			l->mpi = libraries[i].name;
			l->mpi_path = path;
		}
}

static void note_content(struct probe_look *l, const char *path,
			 const struct bytes *b)
{
	if (note_pmi_library(l, path, b))
		return;
	note_mpi(l, path, b);
	if (!l->own && has(b, &PMI_FD)) {
		l->own = path;
		l->own_pmi2 = has(b, &PMI2);
	}
	if (!l->libpmix && has(b, &PMIX))
		l->libpmix = path;
}

static bool look_into(struct probe_look *l, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct bytes b = { MAP_FAILED, 0 };
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st)) {
		b.len = (size_t)st.st_size;
		b.at = mmap(NULL, b.len, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (b.at != MAP_FAILED) {
		note_content(l, path, &b);
		munmap((void *)b.at, b.len);
	} else {
		perror(path);
	}
	if (fd >= 0)
		close(fd);
	return b.at != MAP_FAILED;
}

bool probe_look(struct probe_look *l, const struct probe_files *files)
{
	bool ok = true;

	memset(l, 0, sizeof(*l));
	/* The program last: mpi4py knows what all MPI libraries say of themselves. */
	for (size_t i = 1; ok && i < files->count; i++)
		ok = look_into(l, files->paths[i]);
	if (ok && files->count)
		ok = look_into(l, files->paths[0]);
	if (ok && l->mpi && !strcmp(l->mpi, "Open MPI"))
		look_for_components(l);
	return ok;
}
