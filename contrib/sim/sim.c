/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x sim run: the command line. */
#include "sim.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "report.h"
#include "sim_command.h"
#include "pmi2x-build.h"

#define PATH_LINES 24

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
	fputs("Usage: pmi2x sim run [OPTION...] SCENARIO\n"
	      "       pmi2x sim run [OPTION...] --calibration FILE\n"
	      "Simulates the start-up of a job of any size: the code of pmi2x's\n"
	      "collectives, or a model of another design, over a model of the\n"
	      "network. SCENARIO is a file, or - for standard input; see\n"
	      "pmi2x-sim-scenario(5).\n\n"
	      "Options:\n"
	      "  -c, --csv FILE       also write the result as CSV; - : to standard\n"
	      "                       output, without the table\n"
	      "  -d, --details FILE   write messages and bytes of each node and link as\n"
	      "                       CSV; - : as above\n"
	      "  -s, --set KEY=VALUE  replace a key of the scenario; the first run=... or\n"
	      "                       tasks=... replaces its operations or tasks\n"
	      "  -C, --calibration FILE\n"
	      "                       use the costs in FILE, a part of a scenario, where\n"
	      "                       SCENARIO has none, and print what --runs 100 prints\n"
	      "  -n, --nodes N        the same as --set nodes=N\n"
	      "  -r, --runs N         simulate N times with different random numbers, and print\n"
	      "                       between which times each operation is, in 80 % of them\n"
	      "  -p, --path           print the critical path of each operation\n"
	      "  -j, --journal DIR    write the journals of simulated DVMs, which pmi2x-dvm\n"
	      "                       report reads\n"
	      "  -q, --quiet          no progress line\n"
	      "  -k, --keys           list the keys of a scenario and their defaults\n"
	      "  -h, --help           print this and exit\n"
	      "  -V, --version        print the version and exit\n\n"
	      "Exit status: 0 each rank completed, 1 a rank did not, 2 the\n"
	      "scenario cannot be simulated, or a result cannot be written.\n", to);
}

int bad_usage(const char *what)
{
	if (what)
		fprintf(stderr, "pmi2x sim run: %s\n", what);
	fputs("pmi2x sim run --help shows the options.\n", stderr);
	return EXIT_USAGE;
}

int failure(const char *what, const char *why)
{
	fprintf(stderr, "pmi2x sim run: %s: %s\n", what, why);
	return EXIT_USAGE;
}

/* As take_option. */
static int take_set(char *pair, struct options *o)
{
	if (o->nsets == SETS_MAX)
		return bad_usage("--set: at most 64 of them");
	o->sets[o->nsets++] = pair;
	return -1;
}

/* As take_option. */
static int take_nodes(const char *text, struct options *o)
{
	snprintf(o->nodes, sizeof(o->nodes), "nodes=%s", text);
	return take_set(o->nodes, o);
}

/* As take_option. */
static int take_runs(const char *text, struct options *o)
{
	uint64_t n;

	if (!units_count(text, &n) || n < 2 || n > RUNS_MAX)
		return bad_usage("--runs: allowed is a number from 2 to 10000");
	o->runs = n;
	return -1;
}

/* -1: go on; else the exit code. */
static int take_option(int c, struct options *o)
{
	switch (c) {
	case 'c':
		o->outputs[CSV].path = optarg;
		return -1;
	case 'd':
		o->outputs[DETAILS].path = optarg;
		return -1;
	case 's':
		return take_set(optarg, o);
	case 'C':
		o->calibration = optarg;
		return -1;
	case 'n':
		return take_nodes(optarg, o);
	case 'r':
		return take_runs(optarg, o);
	case 'p':
		o->paths = true;
		return -1;
	case 'q':
		o->quiet = true;
		return -1;
	case 'j':
		o->journal = optarg;
		return -1;
	case 'k':
		scenario_list_keys(show_key, stdout);
		return EXIT_SUCCESS;
	case 'h':
		usage(stdout);
		return EXIT_SUCCESS;
	case 'V':
		puts("pmi2x sim run " PMI2X_BUILD);
		return EXIT_SUCCESS;
	default:
		return bad_usage(NULL); /* getopt has said what is wrong */
	}
}

static int check_options(const struct options *o)
{
	const char *csv = o->outputs[CSV].path;
	const char *details = o->outputs[DETAILS].path;

	if (csv && details && strcmp(csv, details) == 0)
		return bad_usage("--csv and --details cannot go to one file");
	if (o->runs && (csv || details || o->paths || o->journal))
		return bad_usage("--runs prints a table only: no --csv, --details, --path or --journal");
	return -1;
}

/* As take_option. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "csv", required_argument, NULL, 'c' },
		{ "details", required_argument, NULL, 'd' },
		{ "set", required_argument, NULL, 's' },
		{ "calibration", required_argument, NULL, 'C' },
		{ "nodes", required_argument, NULL, 'n' },
		{ "runs", required_argument, NULL, 'r' },
		{ "path", no_argument, NULL, 'p' },
		{ "journal", required_argument, NULL, 'j' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "keys", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c, rc = -1;

	while (rc < 0 &&
	       (c = getopt_long(argc, argv, "c:d:s:j:C:n:r:pqkhV", longs, NULL)) != -1)
		rc = take_option(c, o);
	if (rc >= 0)
		return rc;
	if (argc - optind != 1 && (argc != optind || !o->calibration))
		return bad_usage("one SCENARIO is needed");
	o->scenario = argv[optind];
	return check_options(o);
}

/* ---- the scenario ---- */

/* The error in a file's text; NULL: none. */
static const char *why_no_text(FILE *in, const char *text, size_t len, size_t max)
{
	if (ferror(in))
		return strerror(errno);
	if (len > max)
		return max < (1 << 30) ? "no scenario: it is larger than 1 MiB" :
					 "no tasks: the file is larger than 1 GiB";
	if (memchr(text, 0, len))
		return "there are NUL bytes in it";
	return NULL;
}

/* Up to max + 1 bytes, and room for a NUL; NULL: errno. */
static char *read_stream(FILE *in, size_t max, size_t *len)
{
	char *text = NULL, *more;
	size_t cap = 0, n = 1;

	for (*len = 0; n && *len <= max; *len += n) {
		if (*len == cap) {
			cap = cap ? 2 * cap : 65536;
			cap = cap < max + 1 ? cap : max + 1;
			more = realloc(text, cap + 1);
			if (!more) {
				free(text);
				return NULL;
			}
			text = more;
		}
		n = fread(text + *len, 1, cap - *len, in);
	}
	return text;
}

char *read_file(const char *path, size_t max)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	size_t len = 0;
	char *text = in ? read_stream(in, max, &len) : NULL;
	const char *why = text ? why_no_text(in, text, len, max) : strerror(errno);

	if (in && in != stdin)
		fclose(in);
	if (why) {
		failure(path, why);
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

/* 0, or -1 with `error`; EXIT_USAGE: the file cannot be read. */
static int parse_file(struct scenario *s, const char *path, char error[SCENARIO_ERROR_MAX])
{
	char *text = read_file(path, SCENARIO_FILE_MAX);
	int rc;

	if (!text)
		return EXIT_USAGE;
	rc = scenario_parse(s, strcmp(path, "-") == 0 ? "standard input" : path, text, error);
	free(text);
	return rc;
}

/* As parse_file: what is simulated with a calibration and no scenario. */
static int parse_usual(struct scenario *s, char error[SCENARIO_ERROR_MAX])
{
	char text[] = "[operations]\nrun = fence 64\nrun = allgather 64\nrun = ring 64\n";

	return scenario_parse(s, "the usual operations", text, error);
}

/* Costs only: what is simulated stands in the scenario. */
static int read_calibration(struct scenario *s, const struct options *o,
			    char error[SCENARIO_ERROR_MAX])
{
	int rc = o->calibration ? parse_file(s, o->calibration, error) : 0;

	return rc || !o->calibration ? rc : scenario_check_costs(s, error);
}

/* As parse_file. */
static int read_keys(struct scenario *s, struct options *o, char error[SCENARIO_ERROR_MAX])
{
	bool own_runs = false, own_tasks = false;
	int rc;

	scenario_defaults(s);
	rc = read_calibration(s, o, error);
	if (!rc)
		rc = o->scenario ? parse_file(s, o->scenario, error) : parse_usual(s, error);
	for (int i = 0; !rc && i < o->nsets; i++) {
		bool run = strncmp(o->sets[i], "run", 3) == 0;
		bool tasks = strncmp(o->sets[i], "tasks", 5) == 0;

		if (run && !own_runs)
			s->nops = 0;
		if (tasks && !own_tasks)
			s->nworkload = 0;
		own_runs |= run;
		own_tasks |= tasks;
		rc = scenario_set(s, o->sets[i], error);
	}
	s->dvm.journal |= o->journal != NULL;
	return rc ? rc : scenario_check(s, error);
}

static int read_scenario(struct scenario *s, struct options *o)
{
	char error[SCENARIO_ERROR_MAX];
	int rc = read_keys(s, o, error);

	if (rc == -1)
		fprintf(stderr, "pmi2x sim run: %s\n", error);
	return rc ? EXIT_USAGE : 0;
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

/* ---- results ---- */

bool is_stdout(const struct output *o)
{
	return o->path && strcmp(o->path, "-") == 0;
}

int open_outputs(struct options *o)
{
	for (struct output *out = o->outputs; out < o->outputs + OUTPUTS; out++) {
		if (!out->path)
			continue;
		out->to = is_stdout(out) ? stdout : fopen(out->path, "w");
		if (!out->to)
			return failure(out->path, strerror(errno));
	}
	return 0;
}

int finish(FILE *to, const char *path)
{
	int rc, why;

	errno = 0;
	rc = fflush(to) || ferror(to);
	why = errno;
	if (to != stdout && fclose(to) && !rc) {
		rc = -1;
		why = errno;
	}
	if (!rc)
		return 0;
	return failure(path, why ? strerror(why) : "cannot be written");
}

/* A calibration says how far times differ: that is printed if nothing else is asked for. */
static bool wants_runs(const struct scenario *s, const struct options *o)
{
	return o->calibration && (s->node.spread || s->node.drift) && !scenario_is_dvm(s) &&
	       !o->outputs[CSV].path && !o->outputs[DETAILS].path && !o->paths && !o->journal;
}

static int write_output(const struct sim *s, struct output *o)
{
	if (!o->to)
		return 0;
	if (o->put(s, o->to))
		return failure(o->path, "not enough memory");
	return finish(o->to, o->path);
}

static int write_table(const struct sim *s, bool paths)
{
	if (report_table(s, stdout))
		return failure("the table", "not enough memory");
	if (paths) {
		putchar('\n');
		report_paths(s, stdout, PATH_LINES);
	}
	return finish(stdout, "standard output");
}

/* Files first: whoever reads the table may not want all of it. */
static int report(const struct sim *s, struct options *o)
{
	bool table = true;
	int rc = 0;

	for (struct output *out = o->outputs; out < o->outputs + OUTPUTS; out++) {
		rc |= write_output(s, out);
		table &= !is_stdout(out);
	}
	return table ? rc | write_table(s, o->paths) : rc;
}

static int simulate(const struct scenario *scenario, struct options *o)
{
	char error[SCENARIO_ERROR_MAX];
	struct sim *s = sim_new(scenario, error);
	int rc;

	if (!s) {
		fprintf(stderr, "pmi2x sim run: %s\n", error);
		return EXIT_USAGE;
	}
	rc = open_outputs(o);
	if (!rc) {
		run(s, o);
		rc = report(s, o);
	}
	if (!rc && s->failed) {
		fprintf(stderr, "pmi2x sim run: %s\n", s->error);
		rc = EXIT_SIMULATION;
	}
	sim_free(s);
	return rc;
}

/*
 * Heads and nodes make and free small objects all the time. That takes a sixth less
 * processor time if the C library keeps many of each size. It reads that when a program starts.
 */
static void keep_small_memory(char **argv)
{
	char own[4096];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (n <= 0 || getenv("GLIBC_TUNABLES"))
		return;
	own[n] = '\0';
	if (!setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=60000", 0))
		execv(own, argv); /* if it fails, all is as before, and slower */
}

int main(int argc, char **argv)
{
	static struct scenario scenario;
	struct options o = {
		.outputs = { [CSV].put = report_csv,
			     [DETAILS].put = report_details },
	};
	int rc;

	keep_small_memory(argv);
	rc = parse_options(argc, argv, &o);
	if (rc >= 0)
		return rc;
	rc = read_scenario(&scenario, &o);
	if (rc)
		return rc;
	if (o.journal && !scenario_is_dvm(&scenario))
		return bad_usage("--journal is for scenarios with a [workload]");
	if (!o.runs && wants_runs(&scenario, &o))
		o.runs = RUNS_PRESET;
	if (o.runs && scenario_is_dvm(&scenario))
		return bad_usage("--runs is for steps, not for DVMs");
	if (o.runs)
		return simulate_runs(&scenario, &o);
	return scenario_is_dvm(&scenario) ? simulate_dvm(&scenario, &o) :
					    simulate(&scenario, &o);
}
