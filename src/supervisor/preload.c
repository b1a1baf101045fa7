/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the mode of a program, and looks for the loader that its file names. */
#include "supervisor/preload.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/elf_needs.h"

static size_t read_file(void *arg, uint64_t at, void *out, size_t len)
{
	const int *fd = arg;
	ssize_t n = pread(*fd, out, len, (off_t)at);

	return n > 0 ? (size_t)n : 0;
}

static bool note_loader(void *arg, enum elf_need need, const char *name)
{
	bool *found = arg;

	(void)name;
	*found |= need == ELF_NEEDS_LOADER;
	return !*found;
}

static bool changes_user(const struct stat *st)
{
	return ((st->st_mode & S_ISUID) && st->st_uid != geteuid()) ||
	       ((st->st_mode & S_ISGID) && st->st_gid != getegid());
}

enum preload preload_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum preload found = PRELOAD_LOADS;
	bool has_loader = false;
	struct stat st;

	if (fd < 0)
		return found;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		if (!elf_needs(read_file, &fd, note_loader, &has_loader) && !has_loader)
			found = PRELOAD_STATIC;
		else if (has_loader && changes_user(&st))
			found = PRELOAD_SETUID;
	}
	close(fd);
	return found;
}
