/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of tasks: CSV whose first line names the columns, as pmi2x sim run --csv writes it.
 * An empty field has the default, and so has a column that is not there.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"
#include "workload.h"

#define COLUMNS_MAX 32
#define COLUMNS "ranks, cores, gpus, nodes and seconds; dvm, submitted, placed, started and ended are ignored"

enum column { RANKS, CORES, GPUS, NODES, SECONDS, IGNORED, UNKNOWN };

struct file {
	const char *name;
	char *error;
	unsigned int line;
	enum column columns[COLUMNS_MAX];
	size_t ncolumns;
};

static const struct {
	const char *name;
	enum column column;
	const char *allowed;
} columns[] = {
	{ "ranks", RANKS, "a number from 1 to 1048576" },
	{ "cores", CORES, "a number from 1 to 1048576" },
	{ "gpus", GPUS, "a number from 0 to 1048576" },
	{ "nodes", NODES, "a number from 0 to 1048576" },
	{ "seconds", SECONDS, "a number above 0" },
	{ "dvm", IGNORED, "" }, { "submitted", IGNORED, "" }, { "placed", IGNORED, "" },
	{ "started", IGNORED, "" }, { "ended", IGNORED, "" },
};

#define KNOWN (sizeof(columns) / sizeof(*columns))

static int fail(struct file *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct file *f, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(f->error, WORKLOAD_ERROR_MAX, "%.256s:%u: ", f->name, f->line);

	va_start(ap, fmt);
	vsnprintf(f->error + n, WORKLOAD_ERROR_MAX - (size_t)n, fmt, ap);
	va_end(ap);
	return -1;
}

/* The next field of a line, or NULL. */
static char *next_field(char **rest)
{
	char *field = *rest, *comma = field ? strchr(field, ',') : NULL;

	*rest = comma ? comma + 1 : NULL;
	if (comma)
		*comma = '\0';
	return field;
}

/* ---- the first line ---- */

static enum column column_of(const char *name)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (strcmp(columns[i].name, name) == 0)
			return columns[i].column;
	return UNKNOWN;
}

static bool has(const struct file *f, enum column column)
{
	for (size_t i = 0; i < f->ncolumns; i++)
		if (f->columns[i] == column)
			return true;
	return false;
}

static int read_columns(struct file *f, char *line)
{
	char *rest = line, *name;

	while ((name = next_field(&rest))) {
		enum column c = column_of(name);

		if (c == UNKNOWN || f->ncolumns == COLUMNS_MAX)
			return fail(f, "%.64s: there is no such column; allowed are " COLUMNS, name);
		if (c != IGNORED && has(f, c))
			return fail(f, "%s: the column is there twice", name);
		f->columns[f->ncolumns++] = c;
	}
	return has(f, SECONDS) ? 0 :
		fail(f, "seconds: the column is missing; the first line names the columns");
}

/* ---- tasks ---- */

static bool set_count(const char *text, uint64_t least, uint32_t *out)
{
	uint64_t n;

	if (!units_count(text, &n) || n < least || n > WORKLOAD_RANKS_MAX)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool set_seconds(const char *text, sim_time *out)
{
	double seconds;

	if (!units_number(text, &seconds))
		return false;
	*out = sim_time_of(seconds * (double)SIM_S);
	return *out > 0;
}

static bool set(struct workload_task *t, enum column column, const char *text)
{
	switch (column) {
	case RANKS: return set_count(text, 1, &t->ranks);
	case CORES: return set_count(text, 1, &t->cores);
	case GPUS: return set_count(text, 0, &t->gpus);
	case NODES: return set_count(text, 0, &t->nodes);
	case SECONDS: return set_seconds(text, &t->time);
	default: return true;
	}
}

static int refuse(struct file *f, enum column column)
{
	return fail(f, "%s: allowed is %s", columns[column].name, columns[column].allowed);
}

static int read_task(struct file *f, char *line, struct workload_task *t)
{
	char *rest = line, *field;
	size_t i = 0;

	*t = (struct workload_task){ .ranks = 1, .cores = 1, .line = f->line };
	while ((field = next_field(&rest))) {
		if (i == f->ncolumns)
			return fail(f, "there are more fields than the %zu columns", f->ncolumns);
		if (*field && !set(t, f->columns[i], field))
			return refuse(f, f->columns[i]);
		i++;
	}
	return t->time ? 0 : refuse(f, SECONDS);
}

static int add_task(struct file *f, char *line, struct workload_tasks *out, size_t *cap)
{
	if (array_grow(&out->tasks, out->count, cap, sizeof(*out->tasks)))
		return fail(f, "not enough memory");
	if (read_task(f, line, &out->tasks[out->count]))
		return -1;
	out->count++;
	return 0;
}

/* A line without its end, which may be CR LF; *text is behind it. NULL: no more. */
static char *next_line(char **text)
{
	char *line = *text, *end = line ? strchr(line, '\n') : NULL;
	size_t len;

	*text = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	len = line ? strlen(line) : 0;
	if (len && line[len - 1] == '\r')
		line[len - 1] = '\0';
	return line;
}

int workload_read_file(const char *name, char *text, struct workload_tasks *out,
		       char error[WORKLOAD_ERROR_MAX])
{
	struct file f = { .name = name, .error = error };
	size_t cap = 0;
	char *line;
	int rc = 0;

	*out = (struct workload_tasks){ 0 };
	while (!rc && (line = next_line(&text))) {
		f.line++;
		if (!*line)
			continue;
		rc = f.ncolumns ? add_task(&f, line, out, &cap) : read_columns(&f, line);
	}
	if (!rc && !out->count)
		rc = fail(&f, "there is no task");
	if (rc) {
		free(out->tasks);
		*out = (struct workload_tasks){ 0 };
	}
	return rc;
}
