/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-probe: the files that a program consists of once it is loaded. The program's own
 * loader, asked to list them, is the only one that knows what it would find (RUNPATH,
 * LD_LIBRARY_PATH, its cache, its hardware's directories). It maps the files then and
 * runs nothing of them; a loader that is not the system's is not run at all.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PROBE_FILES_MAX 1024

struct probe_files {
	char *paths[PROBE_FILES_MAX]; /* the program first */
	size_t count;
	char script[PATH_MAX];        /* the interpreter, if it is a script; else "" */
};

/*
 * Find a program, in PATH when its name has no slash, and its libraries. False, with a
 * message, when that cannot be told. Free it in any case.
 */
bool probe_files_find(struct probe_files *f, const char *program);
void probe_files_free(struct probe_files *f);
