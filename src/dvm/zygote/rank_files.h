/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard input and the files for output of a rank. */
#pragma once

#include "dvm/zygote/rank_program.h"

/* The flags with which the rank opens a file for output; `name` is of its launch. */
int rank_file_flags(const struct node_rank *r, const char *name);
/* The path of that file. False: it is longer than `size`. */
bool rank_file_path(char *out, size_t size, const struct node_rank *r, const char *name);
/* Standard input: a new descriptor, or `null` if the rank has none. -1: see errno. */
int rank_file_input(const struct node_rank *r, int null);
