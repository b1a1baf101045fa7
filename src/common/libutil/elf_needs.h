/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The needs that a program or library in ELF form declares, without running it. The
 * bytes come from a callback, and are not trusted: counts and lengths are checked
 * against the limits below. Only files of 64 bits in the machine's own byte order are
 * read. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_SEGMENTS_MAX 128
#define ELF_ENTRIES_MAX 1024 /* of the dynamic section */
#define ELF_NAME_MAX 4096    /* bytes of a name, with its NUL */

/*
 * Fills `out` with the bytes from offset `at`: how many there were, fewer than `len`
 * only at the end of the file; 0 after an error.
 */
typedef size_t elf_read(void *arg, uint64_t at, void *out, size_t len);

enum elf_need {
	ELF_NEEDS_LOADER,  /* the path of the program that loads this one */
	ELF_NEEDS_LIBRARY, /* the name of a library, in the file's order */
	ELF_NEEDS_AUDITOR, /* of one whose code the loader itself calls */
};

/* Called for each; `name` is valid during the call. Return false to stop. */
typedef bool elf_use(void *arg, enum elf_need need, const char *name);

/*
 * 0, also when it needs nothing; -ENOEXEC: it is no ELF file of this machine that could be
 * loaded; -EINVAL: it is damaged, after what was found until then.
 */
int elf_needs(elf_read *read, void *read_arg, elf_use *use, void *use_arg);
