/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x sim run with DVMs: the file of tasks, the simulation, results and journals. */
#include "sim_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef SIM_DVM
#include "dvm_report.h"

#define PATH_BYTES 4096

/* ---- the file of tasks ---- */

/* A relative path begins at the directory of the scenario. */
static void path_of(char out[PATH_BYTES], const struct scenario *s, const char *scenario)
{
	const char *slash = *s->tasks_file == '/' ? NULL : strrchr(scenario, '/');

	snprintf(out, PATH_BYTES, "%.*s%s", slash ? (int)(slash - scenario) + 1 : 0, scenario,
		 s->tasks_file);
}

static int read_tasks(const struct scenario *s, const struct options *o,
		      struct workload_tasks *out)
{
	char path[PATH_BYTES], error[WORKLOAD_ERROR_MAX], *text;
	int rc;

	*out = (struct workload_tasks){ 0 };
	if (!*s->tasks_file)
		return 0;
	path_of(path, s, o->scenario);
	text = read_file(path, WORKLOAD_FILE_MAX);
	if (!text)
		return EXIT_USAGE;
	rc = workload_read_file(path, text, out, error);
	free(text);
	if (rc)
		fprintf(stderr, "pmi2x sim run: %s\n", error);
	return rc ? EXIT_USAGE : 0;
}

/* ---- journals ---- */

static int make_directory(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? failure(path, strerror(errno)) : 0;
}

/* The directory itself for one DVM, and one below it for each of several. */
static int write_journal(const struct sim_head *h, const char *dir)
{
	char path[PATH_BYTES];
	size_t n = (size_t)snprintf(path, sizeof(path), h->sim->nheads > 1 ? "%s/%u" : "%s", dir,
				    h->number + 1);
	FILE *to;

	if (n + sizeof("/journal") > sizeof(path))
		return failure(dir, strerror(ENAMETOOLONG));
	if (make_directory(path))
		return EXIT_USAGE;
	memcpy(path + n, "/journal", sizeof("/journal"));
	to = fopen(path, "w");
	if (!to)
		return failure(path, strerror(errno));
	fwrite(h->journal.data, 1, h->journal.len, to);
	return finish(to, path);
}

static int write_journals(const struct dvm_sim *s, const char *dir)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->nheads; i++)
		rc = write_journal(&s->heads[i], dir);
	return rc;
}

/* ---- running ---- */

static int report_dvm(struct dvm_sim *s, struct options *o)
{
	struct output *rows = &o->outputs[CSV];

	if (o->journal && write_journals(s, o->journal))
		return EXIT_USAGE;
	if (rows->to) {
		dvm_report_tasks(s, rows->to);
		if (is_stdout(rows))
			return finish(stdout, "standard output");
		if (finish(rows->to, rows->path))
			return EXIT_USAGE;
	}
	dvm_report_table(s, stdout);
	return finish(stdout, "standard output");
}

static int simulate(const struct scenario *scenario, const struct workload_tasks *tasks,
		    struct options *o)
{
	char error[SCENARIO_ERROR_MAX];
	struct dvm_sim *s = dvm_sim_new(scenario, tasks, o->outputs[CSV].to, error);
	int rc;

	if (!s)
		return failure(scenario->name, error);
	if (dvm_sim_run(s)) {
		fprintf(stderr, "pmi2x sim run: %s: %s\n", scenario->name, s->error);
		rc = EXIT_SIMULATION;
	} else {
		rc = report_dvm(s, o);
	}
	dvm_sim_free(s);
	return rc;
}

int simulate_dvm(const struct scenario *scenario, struct options *o)
{
	struct workload_tasks tasks;
	int rc;

	if (o->paths || o->outputs[DETAILS].path)
		return bad_usage("--path and --details are for steps, not for DVMs");
	if (read_tasks(scenario, o, &tasks))
		return EXIT_USAGE;
	rc = o->journal ? make_directory(o->journal) : 0;
	rc = rc ? rc : open_outputs(o);
	rc = rc ? rc : simulate(scenario, &tasks, o);
	free(tasks.tasks);
	return rc;
}

#else
int simulate_dvm(const struct scenario *scenario, struct options *o)
{
	return failure(scenario->name, "this pmi2x was built without jansson, which DVMs need");
}
#endif
