/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the application of each rank in Slurm's record of a step. */
#include "step_apps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "multi_prog.h"

/* By rank. */
struct app_table {
	uint32_t *apps;
	uint32_t ranks;
};

/* Both: whether each rank has an application. */

static bool read_programs(struct app_table *t, const stepd_step_rec_t *step)
{
	return step->argc > 1 && step->argv && step->argv[1] &&
	       multi_prog_read(t->apps, t->ranks, step->argv[1]);
}

static bool read_components(struct app_table *t, const stepd_step_rec_t *step)
{
	for (uint32_t i = 0; i < t->ranks; i++)
		t->apps[i] = step->het_job_tid_offsets[i];
	return true;
}

static bool has_several(const struct app_table *t)
{
	for (uint32_t i = 1; i < t->ranks; i++)
		if (t->apps[i] != t->apps[0])
			return true;
	return false;
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
	if ((het ? read_components(&t, step) : read_programs(&t, step)) &&
	    has_several(&t))
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
