/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Complete output of tasks that print more than a result has: files in a directory beside the
 * file of results, FILE.outputs of FILE.results. The nodes write them; a result names them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The directory beside a file of results; to be freed. */
char *complete_output_dir(const char *results);

/* Output of a task that is printed. */
struct printed_output {
	size_t bytes; /* of files, 0: there was none */
	size_t lost;  /* tasks whose complete output is not there */
	char why[256]; /* of the first of these */
};

/*
 * True: the result's text of a stream is to be printed before its files. It is that of the
 * part with rank 0, which has no file, and other parts of the task have files.
 */
bool complete_output_begins_in_result(json_t *task, const char *stream);
/*
 * Print the files of a stream, "out" or "err", those of the first ranks first. results: the
 * file that the result is in, if that may have been moved with its directory; or NULL.
 * False: nothing was printed, and the result has all there is of it.
 */
bool complete_output_print(json_t *task, const char *stream, const char *results,
			   struct printed_output *p, FILE *to);
/* Count output that is known to be lost. */
void complete_output_note(json_t *task, struct printed_output *p);
/* Say on standard error that output is lost, if it is. */
void complete_output_say(const struct printed_output *p);
