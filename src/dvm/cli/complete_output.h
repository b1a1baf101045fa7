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

/* Print the text of a stream that a result has. */
typedef void result_text_fn(void *arg, json_t *task, const char *stream, FILE *to);
/*
 * Print a stream, "out" or "err": its files, those of the first ranks first, or the result's text
 * where there are none. If only the part with rank 0 has no file, its text comes first. results:
 * the file that the result is in, if that may have been moved with its directory; or NULL.
 */
void complete_output_print(json_t *task, const char *stream, const char *results,
			   struct printed_output *p, FILE *to, result_text_fn *text, void *arg);
/* Count output that is known to be lost. */
void complete_output_note(json_t *task, struct printed_output *p);
/* Say on standard error that output is lost, if it is. */
void complete_output_say(const struct printed_output *p);
