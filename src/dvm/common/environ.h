/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a command of Slurm, without variables that would change what it does. */
#pragma once

#include <stdbool.h>

/*
 * The variables of this process ("NAME=value") for which keep() is true. The caller frees
 * the list; its texts are those of environ. NULL: no memory.
 */
char **environ_filter(bool (*keep)(const char *variable));

/* False for options of squeue, which could leave the job out. */
bool environ_is_not_of_squeue(const char *variable);
