/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of a batch that earlier runs had, by their text: equal lines count as often as
 * they occur. It comes from the results of earlier runs and from the journal of their DVM,
 * which has what the client did not live to write down.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "dvm/cli/results_file.h"
#include "dvm/core/dvm_msg.h"

#define LINE_RETRY ((json_int_t)DVM_LINE_MASK + 1) /* in "line" of a task: it had failed before */

struct known_line;
struct known_id;

/* A task that has not ended, in the journal of a DVM. */
struct pending_line {
	json_int_t id;
	size_t line;      /* in the file, as it was then */
	bool retry;
	bool wanted;      /* the file still has it */
	struct known_line *of;
};

struct batch_lines {
	struct known_line *all;
	struct known_id *ids; /* of the journal, whose results are written down */
	struct pending_line *pending;
	size_t npending, pending_cap;
	uint64_t last;        /* number of the journal's last task */
	/* A task that has ended, as its head describes it, or NULL; may be NULL. */
	json_t *(*find)(void *arg, json_int_t id);
	void *arg;
};

enum line_state { LINE_NEW, LINE_DONE, LINE_FAILED, LINE_PENDING };

/* Results of earlier runs; no file is no result. */
void batch_lines_read_results(struct batch_lines *b, const char *path);
/*
 * The journal in a directory, tasks after `ignore`: results that are not written down are
 * added to `out`, from find or as the journal has them.
 */
void batch_lines_read_journal(struct batch_lines *b, const char *dir, uint64_t ignore,
			      struct results_file *out);
/*
 * How earlier runs left the next line with this text, which is used up. A pending one is
 * told its number in the file.
 */
enum line_state batch_lines_take(struct batch_lines *b, const char *text, size_t line);
/* The command of a pending line; is it anywhere in the file? */
const char *batch_lines_text(const struct pending_line *p);
bool batch_lines_in_file(const struct pending_line *p);
void batch_lines_free(struct batch_lines *b);
