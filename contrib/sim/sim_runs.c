/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x sim run --runs: a step that is simulated several times, and how the times differ. */
#include "sim_command.h"

#include <stdlib.h>

#include "units.h"

#define LOW 0.1 /* of the runs are below the interval, and as many above it */

static int by_value(const void *a, const void *b)
{
	const sim_time x = *(const sim_time *)a, y = *(const sim_time *)b;

	return (x > y) - (x < y);
}

/* The time of each operation of a run. False after a message. */
static bool run_once(const struct scenario *scenario, sim_time *times, unsigned long runs)
{
	char error[SCENARIO_ERROR_MAX];
	struct sim *s = sim_new(scenario, error);
	bool ok;

	if (s)
		sim_run(s);
	ok = s && !s->failed;
	if (!ok)
		fprintf(stderr, "pmi2x sim run: %s\n", s ? s->error : error);
	for (uint32_t i = 0; ok && i < scenario->nops; i++)
		times[i * runs] = s->phases[i].last_exit - s->phases[i].first_entry;
	if (s)
		sim_free(s);
	return ok;
}

static void put_table(const struct scenario *scenario, sim_time *times, unsigned long runs)
{
	char low[UNITS_TEXT], middle[UNITS_TEXT], high[UNITS_TEXT], name[64];
	size_t at = (size_t)(LOW * (double)(runs - 1) + 0.5);

	printf("simulated: %s: %llu nodes of %llu ranks, %lu runs\n\n", scenario->name,
	       (unsigned long long)scenario->nodes, (unsigned long long)scenario->ranks_per_node, runs);
	printf("%-20s %10s %10s %10s %7s\n", "operation", "10 %", "median", "90 %", "width");
	for (uint32_t i = 0; i < scenario->nops; i++) {
		const sim_time *t = &times[i * runs];

		sim_time half;

		qsort(&times[i * runs], runs, sizeof(*times), by_value);
		half = t[runs / 2];
		snprintf(name, sizeof(name), "%u %s", i + 1, scenario_op_name(&scenario->ops[i]));
		printf("%-20s %10s %10s %10s %5.0f %%\n", name, units_show_time(low, t[at]),
		       units_show_time(middle, half), units_show_time(high, t[runs - 1 - at]),
		       half ? 100.0 * (double)(t[runs - 1 - at] - t[at]) / (double)half : 0);
	}
}

int simulate_runs(struct scenario *scenario, const struct options *o)
{
	sim_time *times = calloc(o->runs * scenario->nops, sizeof(*times));
	bool ok = times;

	if (!times)
		return failure(scenario->name, "not enough memory");
	for (unsigned long i = 0; ok && i < o->runs; i++, scenario->seed++)
		ok = run_once(scenario, &times[i], o->runs);
	if (ok)
		put_table(scenario, times, o->runs);
	free(times);
	return ok ? finish(stdout, "standard output") : EXIT_SIMULATION;
}
