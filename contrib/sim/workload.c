/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading lines of a workload, and drawing their tasks. */
#include "workload.h"

#include <stdio.h>
#include <string.h>

#define SPACE " \t"

/* ---- reading ---- */

static bool count_of(const char *text, uint64_t *out)
{
	return units_count(text, out) && *out <= WORKLOAD_RANKS_MAX;
}

static bool time_of(const char *text, uint64_t *out)
{
	sim_time t;

	if (!units_time(text, &t))
		return false;
	*out = (uint64_t)t;
	return true;
}

/* "3", or "3-5". */
static bool range_of(char *text, bool (*one)(const char *, uint64_t *),
		     struct workload_range *out)
{
	char *dash = strchr(text, '-');

	if (dash)
		*dash = '\0';
	if (!one(text, &out->low))
		return false;
	out->high = out->low;
	return !dash || (one(dash + 1, &out->high) && out->high >= out->low);
}

/* One key with its value. */
static bool set(struct workload_line *l, const char *key, char *value)
{
	const struct {
		const char *name;
		struct workload_range *range;
	} counts[] = {
		{ "ranks", &l->ranks }, { "cores", &l->cores },
		{ "gpus", &l->gpus }, { "nodes", &l->nodes },
	};

	if (!value)
		return false;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (strcmp(key, counts[i].name) == 0)
			return range_of(value, count_of, counts[i].range);
	return false;
}

static bool is_distribution(const char *word)
{
	static const char *const names[] = { "fixed", "uniform", "exponential", "normal" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(word, names[i]) == 0)
			return true;
	return false;
}

/* A time or a range; or a distribution, which takes the rest of the line. */
static bool set_time(struct workload_line *l, char *value, char **rest)
{
	char text[128];

	if (!value)
		return false;
	if (!is_distribution(value))
		return range_of(value, time_of, &l->time) && l->time.low;
	if (snprintf(text, sizeof(text), "%s %s", value, *rest) >= (int)sizeof(text))
		return false;
	*rest += strlen(*rest);
	l->drawn = distribution_parse(text, &l->draw) && l->draw.a;
	return l->drawn;
}

bool workload_parse(char *value, unsigned int line, struct workload_line *out)
{
	char *rest, *word = strtok_r(value, SPACE, &rest);

	*out = (struct workload_line){
		.ranks = { 1, 1 }, .cores = { 1, 1 }, .line = line,
	};
	if (!word || !units_count(word, &out->count) || !out->count)
		return false;
	while ((word = strtok_r(NULL, SPACE, &rest))) {
		char *first = strtok_r(NULL, SPACE, &rest);

		if (strcmp(word, "time") == 0 ? !set_time(out, first, &rest) :
						!set(out, word, first))
			return false;
	}
	return out->ranks.low && (out->time.low || out->drawn);
}

/* ---- drawing ---- */

void workload_begin(struct workload *w, const struct workload_line *lines, uint32_t nlines,
		    bool mixed, uint64_t seed)
{
	*w = (struct workload){
		.lines = lines, .nlines = nlines, .mixed = mixed, .random = { seed },
	};
	for (uint32_t i = 0; i < nlines; i++) {
		w->left[i] = lines[i].count;
		w->all += lines[i].count;
	}
}

void workload_begin_file(struct workload *w, const struct workload_tasks *file)
{
	*w = (struct workload){ .file = *file, .all = file->count };
}

/* So that each order of all tasks is as likely. */
static uint32_t next_line(struct workload *w)
{
	uint64_t at = w->mixed ? random_below(&w->random, w->all) : 0;
	uint32_t i = 0;

	while (at >= w->left[i])
		at -= w->left[i++];
	return i;
}

static uint64_t draw(struct workload *w, const struct workload_range *r)
{
	return r->low + (r->low < r->high ? random_below(&w->random, r->high - r->low + 1) : 0);
}

/* A process runs for a millisecond at least: a time of 0 is none. */
static sim_time draw_time(struct workload *w, const struct workload_line *l)
{
	sim_time t = l->drawn ? distribution_draw(&l->draw, &w->random) :
				(sim_time)draw(w, &l->time);

	return l->drawn && t < SIM_MS ? SIM_MS : t;
}

static void draw_task(struct workload *w, struct workload_task *out)
{
	uint32_t i = next_line(w);
	const struct workload_line *l = &w->lines[i];

	w->left[i]--;
	*out = (struct workload_task){
		.ranks = (uint32_t)draw(w, &l->ranks),
		.cores = (uint32_t)draw(w, &l->cores),
		.gpus = (uint32_t)draw(w, &l->gpus),
		.nodes = (uint32_t)draw(w, &l->nodes),
		.time = draw_time(w, l),
		.line = l->line,
	};
}

bool workload_next(struct workload *w, struct workload_task *out)
{
	if (!w->all)
		return false;
	if (w->file.tasks)
		*out = w->file.tasks[w->file.count - w->all];
	else
		draw_task(w, out);
	w->all--;
	return true;
}
