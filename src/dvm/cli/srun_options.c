/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of srun: srun_options.h. */
#include "dvm/cli/srun_options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/duration.h"
#include "dvm/cli/node_list.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

#define TIME_MAX_S (INT32_MAX / 1000)
#define FILE_MAX 65536 /* bytes of a file of nodes */

/* The step; numbers are 0 if they were not given. */
struct step {
	uint32_t ranks, nodes, per_node, cores, gpus;
	uint64_t memory; /* bytes of each node */
	uint64_t seconds;
	const char *list; /* of its nodes, or NULL */
	uint32_t named;   /* nodes in it */
	const char *dir;
	bool pmi;
};

/* ---- values; each is false if only a real srun knows better ---- */

static bool take_ranks(struct step *s, const char *v)
{
	return decimal_u32(v, 1, INT32_MAX, &s->ranks);
}

static bool take_nodes(struct step *s, const char *v)
{
	return decimal_u32(v, 1, LEDGER_NODES_MAX, &s->nodes);
}

static bool take_per_node(struct step *s, const char *v)
{
	return decimal_u32(v, 1, LEDGER_RANKS_MAX, &s->per_node);
}

static bool take_cores(struct step *s, const char *v)
{
	return decimal_u32(v, 1, DVM_CORES_MAX, &s->cores);
}

static bool take_gpus(struct step *s, const char *v)
{
	return decimal_u32(v, 1, LEDGER_GPUS_MAX, &s->gpus);
}

static bool take_threads(struct step *s, const char *v)
{
	uint32_t threads;

	return decimal_u32(v, 1, DVM_CORES_MAX, &threads);
}

/* MiB, or a number with a unit; 0 is all memory of the node, which nothing is counted for. */
static bool take_memory(struct step *s, const char *v)
{
	static const char units[] = "KMGT";
	const char *unit;

	if (!decimal_take(&v, UINT32_MAX, &s->memory))
		return false;
	unit = *v ? strchr(units, *v) : &units[1];
	if (!unit || (*v && v[1]))
		return false;
	s->memory <<= 10 * (unit - units + 1);
	return s->memory <= INT64_MAX / LEDGER_RANKS_MAX;
}

static bool take_time(struct step *s, const char *v)
{
	return duration_parse(v, TIME_MAX_S, &s->seconds);
}

static bool take_dir(struct step *s, const char *v)
{
	s->dir = v;
	return *v;
}

static bool take_names(struct step *s, const char *v)
{
	json_t *names;
	bool ok;

	if (s->list || strchr(v, '/'))
		return false;
	names = json_array();
	ok = node_list_expand(v, names);
	s->list = v;
	s->named = (uint32_t)json_array_size(names);
	json_decref(names);
	return ok;
}

/* The file has names with commas or newlines between them. */
static bool take_node_file(struct step *s, const char *path)
{
	static char text[FILE_MAX];
	FILE *in = fopen(path, "re");
	size_t n = in ? fread(text, 1, sizeof(text), in) : 0;

	if (in)
		fclose(in);
	if (!n || n == sizeof(text) || strlen(text) != n)
		return false;
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	for (char *c = text; *c; c++)
		*c = *c == '\n' ? ',' : *c;
	return take_names(s, text);
}

static bool take_mpi(struct step *s, const char *v)
{
	s->pmi = strcmp(v, "none");
	return !s->pmi || !strcmp(v, "pmi2") || !strcmp(v, "pmi2x") || !strncmp(v, "pmix", 4);
}

static bool is_all(struct step *s, const char *v)
{
	return !strcmp(v, "ALL");
}

static bool is_closest(struct step *s, const char *v)
{
	return !strcmp(v, "closest");
}

static bool is_zero_or_one(struct step *s, const char *v)
{
	return !v || !strcmp(v, "0") || !strcmp(v, "1");
}

static bool accept(struct step *s, const char *v)
{
	return true;
}

/* ---- options ---- */

enum value { NO_VALUE, VALUE, VALUE_BEHIND /* without a blank, if there is one */ };

static const struct option_of_srun {
	const char *name;
	char letter; /* 0: none */
	enum value value;
	bool (*take)(struct step *s, const char *value);
} options[] = {
	{ "chdir", 'D', VALUE, take_dir },
	{ "cpus-per-task", 'c', VALUE, take_cores },
	{ "exact", 0, NO_VALUE, accept },
	{ "export", 0, VALUE, is_all },
	{ "gpu-bind", 0, VALUE, is_closest },
	{ "gpus-per-task", 0, VALUE, take_gpus },
	{ "kill-on-bad-exit", 'K', VALUE_BEHIND, is_zero_or_one },
	{ "mem", 0, VALUE, take_memory },
	{ "mpi", 0, VALUE, take_mpi },
	{ "nodefile", 'F', VALUE, take_node_file },
	{ "nodelist", 'w', VALUE, take_names },
	{ "nodes", 'N', VALUE, take_nodes },
	{ "ntasks", 'n', VALUE, take_ranks },
	{ "ntasks-per-node", 0, VALUE, take_per_node },
	{ "quit-on-interrupt", 0, NO_VALUE, accept },
	{ "threads-per-core", 0, VALUE, take_threads },
	{ "time", 't', VALUE, take_time },
};

#define OPTIONS (sizeof(options) / sizeof(*options))

/* The option of a word, and what follows its name there; NULL: it is none of these. */
static const struct option_of_srun *find_option(const char *word, const char **rest)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option_of_srun *o = &options[i];

		if (word[1] == '-' && strlen(o->name) == len - 2 &&
		    !strncmp(word + 2, o->name, len - 2)) {
			*rest = word[len] ? word + len + 1 : NULL;
			return o;
		}
		if (word[1] != '-' && word[1] && word[1] == o->letter) {
			*rest = word[2] ? word + 2 : NULL;
			return o;
		}
	}
	return NULL;
}

/* Read options up to the program; its index, or 0. */
static int read_options(struct step *s, int argc, char **argv)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-') {
		const char *value;
		const struct option_of_srun *o = find_option(argv[i++], &value);

		if (!o || (o->value == NO_VALUE && value))
			return !o && !strcmp(argv[i - 1], "--") ? i : 0;
		if (o->value == VALUE && !value && !(value = argv[i++]))
			return 0;
		if (!o->take(s, value))
			return 0;
	}
	return i;
}

/* ---- the step ---- */

/* A separator of jobs with several kinds of nodes. */
static bool has_colon(char **words)
{
	for (; *words; words++)
		if (!strcmp(*words, ":"))
			return true;
	return false;
}

/* Complete and check what the options say together. */
static bool complete(struct step *s)
{
	if (!s->ranks && s->nodes && s->per_node <= INT32_MAX / s->nodes)
		s->ranks = s->nodes * s->per_node;
	if (s->named && !s->nodes)
		s->nodes = s->named;
	return s->ranks && s->nodes <= s->ranks && (!s->named || s->named == s->nodes);
}

static void put(char **argv, int *count, const char *option, uint64_t number)
{
	if (number && asprintf(&argv[(*count)++], "--%s=%llu", option, (unsigned long long)number) < 0)
		abort();
}

/* As srun's, the memory is that of a node: its ranks share it. */
static uint64_t memory_of_rank(const struct step *s)
{
	uint32_t nodes = s->nodes ? s->nodes : 1;

	return s->memory / ((s->ranks + nodes - 1) / nodes);
}

static void put_step(char **argv, int *count, const struct step *s)
{
	argv[(*count)++] = strdup("run");
	put(argv, count, "ranks", s->ranks);
	put(argv, count, "nodes", s->nodes);
	put(argv, count, "per-node", s->per_node);
	put(argv, count, "cores", s->cores);
	put(argv, count, "gpus", s->gpus);
	put(argv, count, "mem", memory_of_rank(s));
	if (s->seconds && asprintf(&argv[(*count)++], "--time=%llus",
				   (unsigned long long)s->seconds) < 0)
		abort();
	if (s->list && asprintf(&argv[(*count)++], "--nodelist=%s", s->list) < 0)
		abort();
	if (s->dir && asprintf(&argv[(*count)++], "--chdir=%s", s->dir) < 0)
		abort();
	if (s->pmi)
		argv[(*count)++] = strdup("--pmi");
	argv[(*count)++] = strdup("--");
}

char **srun_options_read(int argc, char **argv, int *count)
{
	struct step s = { 0 };
	int program = read_options(&s, argc, argv);
	char **run = NULL;

	*count = 0;
	if (program && program < argc && !has_colon(argv + program) && complete(&s))
		run = calloc((size_t)(argc + SRUN_RUN_MAX), sizeof(*run));
	if (run) {
		put_step(run, count, &s);
		for (int i = program; i < argc; i++)
			run[(*count)++] = strdup(argv[i]);
	}
	return run;
}
