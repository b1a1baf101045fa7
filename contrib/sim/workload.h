/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tasks of a scenario: lines of it, each of which describes many that are alike, or a
 * file with one line for each task.
 *
 *   workload.c       lines
 *   workload_file.c  files
 */
#pragma once

#include "random.h"
#include "units.h"

#define WORKLOAD_LINES_MAX 64
#define WORKLOAD_RANKS_MAX 1048576
#define WORKLOAD_FORMS \
	"COUNT [ranks N] [cores N] [gpus N] [nodes N] time TIME; each N and TIME may be a range, as 1-9 or 480s-600s; or time exponential MEAN, or time normal MEAN DEVIATION, at the end"
#define WORKLOAD_FILE_MAX ((size_t)1 << 30) /* bytes */
#define WORKLOAD_ERROR_MAX 512

/* Uniform from low to high, both included. */
struct workload_range {
	uint64_t low, high;
};

struct workload_line {
	uint64_t count; /* of tasks */
	struct workload_range ranks, cores, gpus, nodes;
	struct workload_range time; /* ps that each rank runs; unless it is drawn: */
	bool drawn;
	struct distribution draw;
	unsigned int line;          /* of the file */
};

/* A task as it is submitted. */
struct workload_task {
	uint32_t ranks, cores, gpus, nodes; /* cores and gpus: of each rank */
	sim_time time;
	unsigned int line;
};

/* False: it is none of the forms. Changes the text. */
bool workload_parse(char *value, unsigned int line, struct workload_line *out);

/* The tasks of a file. */
struct workload_tasks {
	struct workload_task *tasks; /* NULL: there is no file */
	uint64_t count;
};

/*
 * Read a file of tasks as CSV; the text is changed, and terminated by NUL. 0, or -1 with
 * the file, the line, the column and what is allowed in `error`.
 */
int workload_read_file(const char *name, char *text, struct workload_tasks *out,
		       char error[WORKLOAD_ERROR_MAX]);

/* The tasks of a file; or those of all lines, one after another, or mixed at random. */
struct workload {
	struct workload_tasks file;
	const struct workload_line *lines;
	uint32_t nlines;
	bool mixed;
	uint64_t left[WORKLOAD_LINES_MAX]; /* tasks of each line */
	uint64_t all;                      /* that are left */
	struct sim_random random;
};

void workload_begin(struct workload *w, const struct workload_line *lines, uint32_t nlines,
		    bool mixed, uint64_t seed);
/* The tasks of a file instead, which stay the caller's. */
void workload_begin_file(struct workload *w, const struct workload_tasks *file);
/* The next task. False: there is none. */
bool workload_next(struct workload *w, struct workload_task *out);
