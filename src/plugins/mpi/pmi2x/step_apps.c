/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the application of each rank in Slurm's record of a step. */
#include "step_apps.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_APP UINT32_MAX
/* Of a file of srun --multi-prog; one that has more counts as one application. */
#define RANGES_MAX 65536

/* By rank. */
struct app_table {
	uint32_t *apps;
	uint32_t ranks;
	uint32_t ranges; /* read so far */
};

/* ---- the file of srun --multi-prog: "0,2-3 program argument ..." ---- */

/* The first line that has a rank is its own. */
static void take_range(struct app_table *t, uint32_t app, uint64_t first, uint64_t last)
{
	t->ranges++;
	for (uint64_t rank = first; rank <= last && rank < t->ranks; rank++)
		if (t->apps[rank] == NO_APP)
			t->apps[rank] = app;
}

/* What Slurm does not understand it takes for no rank. */
static void take_ranges(struct app_table *t, uint32_t app, const char *text)
{
	if (*text == '*')
		take_range(t, app, 0, UINT32_MAX);
	while (isdigit((unsigned char)*text) && t->ranges < RANGES_MAX) {
		char *end;
		uint64_t first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		take_range(t, app, first, last);
		text = *end == ',' ? end + 1 : end;
	}
}

static const char *line_end(const char *text)
{
	return text + strcspn(text, "\n");
}

/* A backslash at the end of a line: the next one belongs to it. */
static const char *next_line(const char *text)
{
	const char *end = line_end(text);

	while (*end && end > text && end[-1] == '\\') {
		text = end + 1;
		end = line_end(text);
	}
	return *end ? end + 1 : end;
}

static void take_lines(struct app_table *t, const char *text)
{
	uint32_t app = 0;

	for (; *text; text = next_line(text)) {
		text += strspn(text, " \t\r\v\f");
		if (*text != '#' && *text != '\n' && *text)
			take_ranges(t, app++, text);
	}
}

static void read_programs(struct app_table *t, const stepd_step_rec_t *step)
{
	if (step->argc > 1 && step->argv && step->argv[1])
		take_lines(t, step->argv[1]);
}

/* ---- het steps ---- */

static void read_components(struct app_table *t, const stepd_step_rec_t *step)
{
	for (uint32_t i = 0; i < t->ranks; i++)
		t->apps[i] = step->het_job_tid_offsets[i];
}

/* ---- both ---- */

/* Whether there is more than one, and each rank has one. */
static bool has_several(const struct app_table *t)
{
	bool several = false;

	for (uint32_t i = 0; i < t->ranks; i++) {
		if (t->apps[i] == NO_APP)
			return false;
		several |= t->apps[i] != t->apps[0];
	}
	return several && t->ranges < RANGES_MAX;
}

static int make_runs(struct step_apps *out, const struct app_table *t)
{
	out->sizes = calloc(t->ranks, sizeof(*out->sizes));
	out->numbers = calloc(t->ranks, sizeof(*out->numbers));
	if (!out->sizes || !out->numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->ranks; i++) {
		if (!i || t->apps[i] != t->apps[i - 1])
			out->numbers[out->count++] = t->apps[i];
		out->sizes[out->count - 1]++;
	}
	return 0;
}

int step_apps_read(struct step_apps *out, const stepd_step_rec_t *step, uint32_t ranks)
{
	bool het = step->het_job_offset != NO_VAL && step->het_job_tid_offsets;
	struct app_table t = { .ranks = ranks };
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (!het && !(step->flags & LAUNCH_MULTI_PROG))
		return 0;
	t.apps = malloc(ranks * sizeof(*t.apps));
	if (!t.apps)
		return -ENOMEM;
	memset(t.apps, 0xff, ranks * sizeof(*t.apps)); /* NO_APP */
	if (het)
		read_components(&t, step);
	else
		read_programs(&t, step);
	if (has_several(&t))
		rc = make_runs(out, &t);
	free(t.apps);
	return rc;
}

void step_apps_free(struct step_apps *a)
{
	free(a->sizes);
	free(a->numbers);
	memset(a, 0, sizeof(*a));
}
