/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm report: what the journals of a DVM, or of several under one name, tell of their
 * tasks.
 *
 *   cmd_report.c     the command, the summary
 *   report_read.c    reading
 *   report_csv.c     a line for each task
 *   report_tables.c  a line for each run, as tables
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "dvm/core/history.h"

struct report_journal {
	char *dir;
	uint32_t member; /* number of the DVM, from 1; 0: it is the only one */
	struct journal_reader in;
};

struct report {
	const char *dir;
	struct report_journal *journals;
	struct history *histories; /* of the journals that can be read */
	size_t n;
	size_t unread;             /* journals that cannot be read, and have been named */
	struct history_figures figures;
};

/*
 * Read DIR, or DIR/1, DIR/2 and so on. A journal of several that cannot be read is named on
 * standard error; without any the program ends.
 */
void report_read(struct report *r, const char *dir);
/* Name damaged journals on standard error. The exit status. */
int report_tell_damage(const struct report *r);
void report_free(struct report *r);

/* The largest number of nodes, slots and GPUs that there were. */
struct journal_nodes report_most_nodes(const struct report *r);

/* A new reference to what was submitted: its "argv", "name" and so on. */
json_t *report_submitted(const struct history_task *t);
int report_signal(const struct history_task *t);

void report_csv(const struct report *r);
/* Tables with a line for each run. */
void report_tables(const struct report *runs, size_t n);
