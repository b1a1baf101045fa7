/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe: asks a program's loader for its libraries. */
#include "tools/probe_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/elf_needs.h"
#include "tools/probe_process.h"

/* Findings from the file itself. */
struct own {
	char loader[PATH_MAX]; /* "" */
	bool audited;
	bool needs;            /* any library */
};

/* ---- the file ---- */

static size_t read_file(void *arg, uint64_t at, void *out, size_t len)
{
	const int *fd = arg;
	ssize_t n = pread(*fd, out, len, (off_t)at);

	return n > 0 ? (size_t)n : 0;
}

static bool note_need(void *arg, enum elf_need need, const char *name)
{
	struct own *own = arg;

	if (need == ELF_NEEDS_LOADER)
		snprintf(own->loader, sizeof(own->loader), "%s", name);
	own->audited |= need == ELF_NEEDS_AUDITOR;
	own->needs |= need == ELF_NEEDS_LIBRARY;
	return true;
}

/* As elf_needs, or another negative errno. */
static int read_own(struct own *own, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc = fd < 0 ? -errno : 0;

	memset(own, 0, sizeof(*own));
	if (!rc && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		rc = -EACCES;
	if (!rc)
		rc = elf_needs(read_file, &fd, note_need, own);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Reads the program after "#!" at the start of a file. */
static bool read_script(struct probe_files *f, const char *path)
{
	char line[PATH_MAX] = "";
	FILE *file = fopen(path, "re");
	bool is = file && fgets(line, sizeof(line), file) &&
		  !strncmp(line, "#!", 2);
	char *word = line + 2;

	if (file)
		fclose(file);
	if (!is)
		return false;
	word += strspn(word, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	memcpy(f->script, word, strlen(word) + 1);
	return true;
}

/* ---- the loader ---- */

static bool add_file(struct probe_files *f, const char *path)
{
	if (f->count == PROBE_FILES_MAX)
		return false;
	f->paths[f->count] = strdup(path);
	return f->paths[f->count] && ++f->count;
}

/* "	NAME => PATH (0x...)" or "	PATH (0x...)". */
static void note_line(void *arg, char *line)
{
	struct probe_files *f = arg;
	char *arrow = strstr(line, " => "), *path = arrow ? arrow + 4 : line + 1;
	char *end = strstr(path, " (0x");

	if (line[0] != '\t')
		return;
	if (end)
		*end = '\0';
	/* Relative ones come from LD_LIBRARY_PATH; the kernel's has no path. */
	if (end && strchr(path, '/'))
		add_file(f, path);
}

/* True: the file is a loader, and only root could have changed it. */
static bool is_trusted(const char *loader)
{
	char *real = realpath(loader, NULL);
	const char *name = real ? strrchr(real, '/') + 1 : "";
	struct stat st;
	bool ok = (!strncmp(name, "ld-", 3) || !strcmp(name, "libc.so")) &&
		  !stat(real, &st) && S_ISREG(st.st_mode) && !st.st_uid &&
		  !(st.st_mode & (S_IWGRP | S_IWOTH));

	free(real);
	return ok;
}

/* For the terminal: the name comes out of the file. */
static void make_printable(char *name)
{
	for (; *name; name++)
		if (*name < ' ' || *name > '~')
			*name = '?';
}

static bool list_libraries(struct probe_files *f, struct own *own,
			   const char *path)
{
	char *argv[] = { own->loader, "--list", (char *)path, NULL };
	struct own self;

	/* A library names no loader: ours, then. */
	if (!own->loader[0] && !read_own(&self, "/proc/self/exe"))
		memcpy(own->loader, self.loader, sizeof(own->loader));
	if (own->audited || !is_trusted(own->loader)) {
		make_printable(own->loader);
		fprintf(stderr,
			"pmi2x-probe: %s: the libraries are not listed: the loader %s is not the system's, or runs code of the program\n",
			path, own->loader[0] ? own->loader : "none");
		return false;
	}
	if (!probe_process_read(argv, 0, note_line, f))
		return true;
	/* The loader has said which library is missing. */
	fprintf(stderr,
		"pmi2x-probe: %s cannot be loaded here: set LD_LIBRARY_PATH, or try it on a node\n",
		path);
	return false;
}

/* ---- the program ---- */

static bool can_be_run(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* In PATH, as execvp would. False: no such program. */
static bool search(const char *program, char out[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	size_t len;

	if (strchr(program, '/'))
		return snprintf(out, PATH_MAX, "%s", program) < PATH_MAX;
	for (; dirs && *dirs; dirs += len + (dirs[len] == ':')) {
		len = strcspn(dirs, ":");
		snprintf(out, PATH_MAX, "%.*s/%s", (int)len, dirs, program);
		if (can_be_run(out))
			return true;
	}
	return false;
}

/* A library may be looked at, too, and need not be executable. */
static bool is_library(const struct own *own)
{
	return own->needs && !own->loader[0];
}

/* 0 with `own`, or of a script with f->script, or a negative errno. */
static int read_program(struct probe_files *f, struct own *own, const char *path)
{
	int rc = read_own(own, path);

	if (rc == -ENOEXEC && read_script(f, path))
		rc = 0;
	if (!rc && !can_be_run(path) && !is_library(own))
		rc = -EACCES;
	return rc;
}

static const char *what_is_wrong(int error)
{
	return error == -ENOEXEC ? "not a program for this machine" :
	       error == -EINVAL  ? "a damaged program" :
	       error == -EACCES  ? "not an executable file" :
				   strerror(-error);
}

bool probe_files_find(struct probe_files *f, const char *program)
{
	char path[PATH_MAX];
	struct own own;
	int rc = -ENOENT;

	memset(f, 0, sizeof(*f));
	if (search(program, path) && add_file(f, path))
		rc = read_program(f, &own, path);
	if (!rc)
		return own.needs ? list_libraries(f, &own, path) : true;
	fprintf(stderr, "pmi2x-probe: %s: %s\n", program, what_is_wrong(rc));
	return false;
}

void probe_files_free(struct probe_files *f)
{
	while (f->count)
		free(f->paths[--f->count]);
}
