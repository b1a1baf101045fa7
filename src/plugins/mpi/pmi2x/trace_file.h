/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace file of a step. srun writes it, with the rights of the user who
 * runs srun, in the directory that the user or mpi.conf names: agents, some of
 * which are root, never see a path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/log.h"

#define TRACE_ENV "PMI2X_TRACE"

struct trace_file;

/*
 * Make the new file pmi2x-trace.<jobid>.jsonl in `dir`, which is an absolute
 * path. NULL, with a line in the log that says what to do, when it cannot be
 * made or is there already; the step then runs without a trace.
 */
struct trace_file *trace_file_create(const char *dir, const char *jobid,
				     const struct log_hook *log);
/* Expect a record from this many more nodes. */
void trace_file_expect(struct trace_file *t, uint32_t nodes);
/* The record of a node; one that came already or is no line is ignored. */
void trace_file_add(struct trace_file *t, uint32_t position, const void *data,
		    size_t len);
bool trace_file_missing(const struct trace_file *t);
/* Write the end and close. NULL is allowed. */
void trace_file_close(struct trace_file *t);
