/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command pmi2x sim run: what its files share.
 *
 *   sim.c      options, scenarios, steps
 *   sim_dvm.c  DVMs
 *   sim_runs.c steps that are simulated several times
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim.h"

#define EXIT_SIMULATION 1 /* a rank waits forever, or libcoll broke a promise */
#define EXIT_USAGE 2      /* also for files that cannot be read or written */
#define SETS_MAX 64
#define RUNS_MAX 10000
#define RUNS_PRESET 100 /* with a calibration */

/* A file of results. */
struct output {
	const char *path; /* NULL: not asked for; "-": standard output */
	FILE *to;
	int (*put)(const struct sim *s, FILE *out);
};

enum { CSV, DETAILS, OUTPUTS };

struct options {
	const char *scenario;
	const char *calibration; /* a file; NULL: none */
	const char *journal; /* a directory; NULL: none */
	unsigned long runs;  /* with seeds from the scenario's on; 0: one, with all results */
	struct output outputs[OUTPUTS];
	char *sets[SETS_MAX];
	char nodes[64];      /* one of them */
	int nsets;
	bool paths, quiet;
};

/* These print a message and return EXIT_USAGE. */
int bad_usage(const char *what);
int failure(const char *what, const char *why);
/* The whole file, to be freed; or NULL after a message. At most `max` bytes. */
char *read_file(const char *path, size_t max);
/* Before the simulation, which may take minutes. 0, or EXIT_USAGE after a message. */
int open_outputs(struct options *o);
bool is_stdout(const struct output *o);
/* A full disk shows here at the latest. 0, or EXIT_USAGE after a message. */
int finish(FILE *to, const char *path);

/* The exit status. */
int simulate_runs(struct scenario *scenario, const struct options *o);
int simulate_dvm(const struct scenario *scenario, struct options *o);
