/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of prun: prun_options.h. */
#include "dvm/cli/prun_options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dvm/cli/die.h"
#include "dvm/cli/options.h"
#include "dvm/cli/prrte.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

#define WORDS_MAX 16 /* for options of run, and "--" */
#define TIME_MAX_S (INT32_MAX / 1000)

/* The task; numbers are 0 if they were not given. */
struct job {
	uint32_t ranks, per_node, cores, seconds;
	const char *dir;
	char *dvm;
	struct prrte_hosts hosts;
};

/* ---- values ---- */

static void wrong_map(const char *value)
{
	die_usage("prun: --map-by %s: node, slot, core, hwthread or ppr:NUMBER:node may be followed by :PE=NUMBER, :HWTCPUS, :CORECPUS, :OVERSUBSCRIBE and :NOOVERSUBSCRIBE",
		  value);
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcasecmp(word, *words))
			return true;
	return false;
}

/* ppr:NUMBER:node. False: it is something else. */
static bool take_per_node(struct job *j, char **rest)
{
	const char *number = strsep(rest, ":"), *unit = strsep(rest, ":");

	return number && unit && !strcasecmp(unit, "node") &&
	       decimal_u32(number, 1, LEDGER_RANKS_MAX, &j->per_node);
}

static void take_map(struct job *j, const char *value)
{
	static const char *const units[] = { "node", "slot", "core", "hwthread", "hwt", NULL };
	static const char *const more[] = { "HWTCPUS", "CORECPUS", "OVERSUBSCRIBE",
					    "NOOVERSUBSCRIBE", NULL };
	char *copy = strdup(value), *rest = copy, *word = strsep(&rest, ":");

	if (!word || !(strcasecmp(word, "ppr") ? !*word || is_one_of(word, units) :
						 take_per_node(j, &rest)))
		wrong_map(value);
	while ((word = strsep(&rest, ":")))
		if (!is_one_of(word, more) &&
		    (strncasecmp(word, "PE=", 3) ||
		     !decimal_u32(word + 3, 1, DVM_CORES_MAX, &j->cores)))
			wrong_map(value);
	free(copy);
}

/* NAME=VALUE is set; the task has all other variables anyway. */
static void take_variable(const char *text)
{
	const char *equals = strchr(text, '=');
	char *name = equals ? strndup(text, (size_t)(equals - text)) : NULL;

	if (equals && (!name || setenv(name, equals + 1, 1)))
		die_usage("prun: -x %s: not a variable", text);
	free(name);
}

/* ---- options ---- */

enum { DVM_URI = 1, NP, PER_NODE, MAP, HOST, DIR, VARIABLE, TIMEOUT, TWO_WORDS, IGNORED };

static const struct option options[] = {
	{ "dvm-uri", required_argument, NULL, DVM_URI },
	{ "np", required_argument, NULL, NP },
	{ "n", required_argument, NULL, NP },
	{ "N", required_argument, NULL, PER_NODE },
	{ "map-by", required_argument, NULL, MAP },
	{ "host", required_argument, NULL, HOST },
	{ "H", required_argument, NULL, HOST },
	{ "wdir", required_argument, NULL, DIR },
	{ "x", required_argument, NULL, VARIABLE },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "mca", required_argument, NULL, TWO_WORDS },
	{ "pmixmca", required_argument, NULL, TWO_WORDS },
	{ "prtemca", required_argument, NULL, TWO_WORDS },
	{ "bind-to", required_argument, NULL, IGNORED },
	{ "verbose", no_argument, NULL, IGNORED },
	{ 0 },
};

static void take_option(struct job *j, char **argv, int option, const char *value)
{
	switch (option) {
	case DVM_URI:
		free(j->dvm);
		j->dvm = prrte_dvm_name("prun", value);
		break;
	case NP: j->ranks = option_number("prun: --np", value, 1, INT32_MAX); break;
	case PER_NODE:
		j->per_node = option_number("prun: -N", value, 1, LEDGER_RANKS_MAX);
		break;
	case MAP: take_map(j, value); break;
	case HOST: prrte_hosts_take(&j->hosts, "prun", value); break;
	case DIR: j->dir = value; break;
	case VARIABLE: take_variable(value); break;
	case TIMEOUT: j->seconds = option_number("prun: --timeout", value, 1, TIME_MAX_S); break;
	case TWO_WORDS: optind += argv[optind] != NULL; break;
	case IGNORED: break;
	default: die_option(argv, option, options);
	}
}

/* ---- the task ---- */

static char *put(const char *option, uint64_t number)
{
	char *word;

	if (asprintf(&word, "--%s=%llu", option, (unsigned long long)number) < 0)
		die("out of memory");
	return word;
}

/* The node of a DVM without a job has another name than its machine. */
static void put_places(char **run, int *count, const struct job *j)
{
	bool local = !getenv("SLURM_JOB_ID") && !prrte_hosts_elsewhere(&j->hosts);
	uint32_t named = (uint32_t)json_object_size(j->hosts.names);
	uint32_t per_node = j->per_node ? j->per_node : j->hosts.most;

	if (per_node)
		run[(*count)++] = put("per-node", per_node);
	if (named && named <= j->ranks)
		run[(*count)++] = put("nodes", named);
	if (named && !local)
		run[(*count)++] = prrte_hosts_option(&j->hosts);
}

/* PMI also for one rank: RADICAL-Pilot reads PMIX_RANK. */
static void put_job(char **run, int *count, const struct job *j)
{
	run[(*count)++] = strdup("run");
	run[(*count)++] = put("ranks", j->ranks);
	if (j->cores)
		run[(*count)++] = put("cores", j->cores);
	put_places(run, count, j);
	if (j->seconds && asprintf(&run[(*count)++], "--time=%us", j->seconds) < 0)
		die("out of memory");
	if (j->dir && asprintf(&run[(*count)++], "--chdir=%s", j->dir) < 0)
		die("out of memory");
	run[(*count)++] = strdup("--pmi");
	run[(*count)++] = strdup("--");
}

/* Refuse programs after the first. */
static void check_program(int argc, char **argv)
{
	if (optind == argc)
		die_usage("prun: name a program");
	for (int i = optind; i < argc; i++)
		if (!strcmp(argv[i], ":"))
			die_usage("prun: several programs, with : between them, are not supported");
}

char **prun_options_read(int argc, char **argv, int *count, char **dvm)
{
	struct job j = { 0 };
	char **run = calloc((size_t)argc + WORDS_MAX, sizeof(*run));
	int option;

	if (!run)
		die("out of memory");
	opterr = 0;
	while ((option = getopt_long_only(argc, argv, "+:", options, NULL)) != -1)
		take_option(&j, argv, option, optarg);
	check_program(argc, argv);
	if (!j.ranks)
		die_usage("prun: give the number of ranks: --np NUMBER");
	*count = 0;
	put_job(run, count, &j);
	for (int i = optind; i < argc; i++)
		run[(*count)++] = strdup(argv[i]);
	json_decref(j.hosts.names);
	*dvm = j.dvm;
	return run;
}
