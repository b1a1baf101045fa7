/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory of a batch, which it has between its runs. FILE.journal, in an array FILE.ELEMENT.journal,
 * is a directory beside the file, or in the working directory where that cannot be written:
 *
 *   journal, owner.N, lock  of the DVM that the batch has started (journal_file.h)
 *   batch                   locked by the client that works on the file; says who that is
 *   fresh                   no lines have been submitted: results that are there are of an
 *                           earlier run, also if a DVM has begun a journal
 *   begun                   lines have been submitted
 *   finished                all have succeeded, but others still use the DVM: the number
 *                           of its last task then
 *   earlier                 tasks up to this one are of runs that are finished
 *
 * The results are in FILE.results. Errors end the program, as in client.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch_dir {
	char *dir;       /* its whole path; NULL: standard input, and no --journal */
	char *results;   /* the same */
	bool named;      /* by --journal */
	bool begun;      /* an earlier run has */
	bool finished;   /* all lines have succeeded */
	uint64_t ignore; /* tasks of its journal up to this one are of finished runs */
	int lock;
};

/*
 * Make it and lock it. file: "-" is standard input. Files that are not regular have a
 * directory only with --journal, which is `journal`, or NULL.
 */
void batch_dir_open(struct batch_dir *b, const char *file, const char *journal);
bool batch_dir_has_journal(const struct batch_dir *b);
/* Lines are submitted from now on. */
void batch_dir_begin(struct batch_dir *b);
/*
 * Begin anew: earlier runs no longer count. used: the DVM that is up writes the journal, and
 * tasks up to `last` are of earlier runs.
 */
void batch_dir_start_over(struct batch_dir *b, bool used, uint64_t last);
/* All lines have succeeded. used, last: the same. */
void batch_dir_finish(struct batch_dir *b, bool used, uint64_t last);
