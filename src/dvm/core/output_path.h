/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of the files that tasks write to: %t is the task, %r the rank, %i the number of
 * earlier starts, and %% a per cent sign. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_numbers {
	uint64_t task;
	uint32_t rank, instance;
};

/* The first per cent sign that begins none of these; NULL: there is none. */
const char *output_path_unknown(const char *path);
/* True: the path has %WHAT. */
bool output_path_has(const char *path, char what);
/* The name with its numbers. False: it is longer than `size`. */
bool output_path_expand(char *out, size_t size, const char *path,
			const struct output_numbers *n);
