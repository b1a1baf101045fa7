/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm output FILE: what the tasks of a file of results have printed. */
#pragma once

#include <stdbool.h>

/*
 * Print the output of lines, in their order. file: of results, or the file of a batch that
 * has results beside it. lines: lists of numbers as in 5-20,30; none: all. failed: only of
 * tasks that have failed. The exit status: 1 if nothing was found. Errors end the program.
 */
int output_results(const char *file, char **lines, int count, bool failed);
