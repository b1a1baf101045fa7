/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-sim: the command line. */
#include "sim.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "report.h"

#define EXIT_SIMULATION 1 /* a rank waits for ever, or libcoll broke a promise */
#define EXIT_USAGE 2
#define PATH_LINES 24
#define SETS_MAX 64

struct options {
	const char *scenario;
	const char *csv;
	const char *details;
	char *sets[SETS_MAX];
	int nsets;
	bool paths, quiet;
};

struct progress {
	double begin, said;
	bool terminal;
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* ---- usage ---- */

static void show_key(void *arg, const char *section, const char *key,
		     const char *preset, const char *allowed)
{
	fprintf(arg, "  [%s] %s%s%s: %s\n", section, key, preset ? " = " : "",
		preset ? preset : "", allowed);
}

static void usage(FILE *to)
{
	fputs("Usage: pmi2x-sim [OPTION...] SCENARIO\n"
	      "Simulates the start-up of a job of any size: the collectives of\n"
	      "pmi2x, by its own code, or a model of another design, over a\n"
	      "network model. SCENARIO is a file, or - for standard input; see\n"
	      "pmi2x-sim-scenario(5).\n\n"
	      "Options:\n"
	      "  -c, --csv FILE       write the result as CSV, too; - : only that\n"
	      "  -d, --details FILE   write messages and bytes of every node and link\n"
	      "  -s, --set KEY=VALUE  set a key over the scenario; run=... replaces\n"
	      "                       its operations\n"
	      "  -p, --path           show what determined each end: the critical path\n"
	      "  -q, --quiet          no progress line\n"
	      "  -k, --keys           list the keys of a scenario, with defaults\n"
	      "  -h, --help           print this and exit\n"
	      "  -V, --version        print the version and exit\n\n"
	      "Exit status: 0 every rank came to its end, 1 one did not, 2 the\n"
	      "scenario cannot be simulated.\n", to);
}

static int bad_usage(const char *fmt, const char *what)
{
	fputs("pmi2x-sim: ", stderr);
	fprintf(stderr, fmt, what);
	fputs("\npmi2x-sim --help shows the options.\n", stderr);
	return EXIT_USAGE;
}

/* -1: go on; else the exit code. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "csv", required_argument, NULL, 'c' },
		{ "details", required_argument, NULL, 'd' },
		{ "set", required_argument, NULL, 's' },
		{ "path", no_argument, NULL, 'p' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "keys", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:d:s:pqkhV", longs, NULL)) != -1) {
		if (c == 'c')
			o->csv = optarg;
		else if (c == 'd')
			o->details = optarg;
		else if (c == 's' && o->nsets < SETS_MAX)
			o->sets[o->nsets++] = optarg;
		else if (c == 'p')
			o->paths = true;
		else if (c == 'q')
			o->quiet = true;
		else if (c == 'k')
			scenario_list_keys(show_key, stdout);
		else if (c == 'h')
			usage(stdout);
		else if (c == 'V')
			puts("pmi2x-sim " PACKAGE_VERSION);
		else
			return bad_usage("%s", "that option cannot be taken");
		if (c == 'h' || c == 'V' || c == 'k')
			return EXIT_SUCCESS;
	}
	if (argc - optind != 1)
		return bad_usage("%s", "one SCENARIO is needed");
	o->scenario = argv[optind];
	return -1;
}

/* ---- the scenario ---- */

/* The whole file, or NULL. */
static char *read_file(const char *path)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	char *text = malloc(SCENARIO_FILE_MAX + 1);
	size_t len;

	if (!in || !text) {
		bad_usage("%s cannot be read", path);
		free(text);
		return NULL;
	}
	len = fread(text, 1, SCENARIO_FILE_MAX + 1, in);
	if (ferror(in) || len > SCENARIO_FILE_MAX || memchr(text, 0, len)) {
		bad_usage("%s is no scenario: it cannot be read, is over 1 MiB, or has NUL bytes",
			  path);
		free(text);
		text = NULL;
	} else {
		text[len] = '\0';
	}
	if (in != stdin)
		fclose(in);
	return text;
}

static int read_scenario(struct scenario *s, struct options *o)
{
	char error[SCENARIO_ERROR_MAX], *text = read_file(o->scenario);
	bool own_runs = false;
	int rc;

	if (!text)
		return EXIT_USAGE;
	scenario_defaults(s);
	rc = scenario_parse(s, strcmp(o->scenario, "-") == 0 ? "standard input" :
							       o->scenario,
			    text, error);
	for (int i = 0; !rc && i < o->nsets; i++) {
		bool run = strncmp(o->sets[i], "run", 3) == 0;

		if (run && !own_runs)
			s->nops = 0;
		own_runs |= run;
		rc = scenario_set(s, o->sets[i], error);
	}
	if (!rc)
		rc = scenario_check(s, error);
	free(text);
	if (!rc)
		return 0;
	fprintf(stderr, "pmi2x-sim: %s\n", error);
	return EXIT_USAGE;
}

/* ---- running ---- */

static uint32_t phase_now(const struct sim *s)
{
	uint32_t i = 0;

	while (i + 1 < s->scenario->nops &&
	       s->phases[i].succeeded + s->phases[i].failed >= s->nranks)
		i++;
	return i;
}

static void say_progress(void *arg, const struct sim *s)
{
	struct progress *p = arg;
	double now = seconds(CLOCK_MONOTONIC);
	uint32_t phase = phase_now(s);
	char at[UNITS_TEXT];

	if (now - p->said < (p->terminal ? 1 : 10) || now - p->begin < 1)
		return;
	p->said = now;
	fprintf(stderr, "%spmi2x-sim: %.0f s, %.1f million events, simulated %s, operation %u of %u: %.0f %% of the ranks in, %.0f %% out%s",
		p->terminal ? "\r\033[K" : "", now - p->begin,
		s->handled * 1e-6, units_show_time(at, s->now), phase + 1,
		s->scenario->nops, 100.0 * s->phases[phase].entered / s->nranks,
		100.0 * (s->phases[phase].succeeded +
			 s->phases[phase].failed) / s->nranks,
		p->terminal ? "" : "\n");
}

static void run(struct sim *s, const struct options *o)
{
	struct progress progress = {
		.begin = seconds(CLOCK_MONOTONIC),
		.terminal = isatty(STDERR_FILENO),
	};

	if (!o->quiet) {
		s->progress = say_progress;
		s->progress_arg = &progress;
	}
	sim_run(s);
	if (progress.said && progress.terminal)
		fputs("\r\033[K", stderr);
}

static int write_csv(const struct sim *s, const char *path,
		     int (*put_rows)(const struct sim *s, FILE *out))
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	int rc;

	if (!out)
		return bad_usage("%s cannot be written", path);
	rc = put_rows(s, out);
	if (ferror(out) || (out != stdout && fclose(out)))
		rc = -1;
	return rc ? bad_usage("%s cannot be written", path) : 0;
}

static int report(const struct sim *s, const struct options *o)
{
	bool table = !o->csv || strcmp(o->csv, "-") != 0;
	int rc = 0;

	if (table && report_table(s, stdout))
		rc = bad_usage("%s", "not enough memory for the report");
	if (table && o->paths) {
		putchar('\n');
		report_paths(s, stdout, PATH_LINES);
	}
	if (!rc && o->csv)
		rc = write_csv(s, o->csv, report_csv);
	if (!rc && o->details)
		rc = write_csv(s, o->details, report_details);
	return rc;
}

static int simulate(const struct scenario *scenario, const struct options *o)
{
	char error[SCENARIO_ERROR_MAX];
	struct sim *s = sim_new(scenario, error);
	int rc;

	if (!s) {
		fprintf(stderr, "pmi2x-sim: %s\n", error);
		return EXIT_USAGE;
	}
	run(s, o);
	rc = report(s, o);
	if (!rc && s->failed) {
		fprintf(stderr, "pmi2x-sim: %s\n", s->error);
		rc = EXIT_SIMULATION;
	}
	sim_free(s);
	return rc;
}

int main(int argc, char **argv)
{
	static struct scenario scenario;
	struct options o = { .scenario = NULL };
	int rc = parse_options(argc, argv, &o);

	if (rc < 0)
		rc = read_scenario(&scenario, &o);
	else
		return rc;
	return rc ? rc : simulate(&scenario, &o);
}
