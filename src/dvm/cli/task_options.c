/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a task, and of the commands that submit tasks. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/duration.h"
#include "dvm/cli/options.h"
#include "dvm/cli/submission.h"
#include "dvm/core/dvm_msg.h"
#include "libutil/decimal.h"

#define TIME_MAX_S (INT32_MAX / 1000) /* the daemons count milliseconds */

static void set_number(struct submission *s, const char *key, const char *option,
		       const char *text)
{
	json_object_set_new(s->task, key,
			    json_integer(option_number(option, text, 0, INT32_MAX)));
}

static void set_priority(struct submission *s, const char *text)
{
	const char *at = text;
	int n;

	if (!decimal_int(&at, &n) || *at)
		die_usage("--priority must be a whole number, which may be negative");
	json_object_set_new(s->task, "priority", json_integer(n));
}

static void set_memory(struct submission *s, const char *text)
{
	static const char units[] = "KMGT";
	const char *at = text, *unit;
	uint64_t n;
	int shift = 0;

	if (!decimal_take(&at, INT64_MAX, &n))
		die_usage("--mem is a number of bytes, or one with K, M, G or T");
	unit = *at ? strchr(units, *at) : NULL;
	if (*at && (!unit || at[1]))
		die_usage("--mem: unknown unit \"%s\"", at);
	if (unit)
		shift = 10 * (int)(unit - units + 1);
	if (n > (uint64_t)INT64_MAX >> shift)
		die_usage("--mem: %s is too much", text);
	json_object_set_new(s->task, "memory", json_integer((json_int_t)(n << shift)));
}

static void set_time(struct submission *s, const char *text)
{
	uint64_t seconds;

	if (!duration_parse(text, TIME_MAX_S, &seconds))
		die_usage("--time is MINUTES, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or has units as in 90s, 10m, 1h30m or 2d, and is at most %d days",
			  TIME_MAX_S / 86400);
	json_object_set_new(s->task, "time", json_integer((json_int_t)seconds));
}

static void set_counter(struct submission *s, const char *text)
{
	const char *equals = strchr(text, '=');
	json_t *counters = json_object_get(s->task, "counters");
	uint32_t n;
	char *name;

	if (!equals || !decimal_u32(equals + 1, 0, INT32_MAX, &n))
		die_usage("--counter is NAME=NUMBER");
	if (!counters) {
		counters = json_object();
		json_object_set_new(s->task, "counters", counters);
	}
	name = strndup(text, (size_t)(equals - text));
	if (!name || json_object_set_new(counters, name, json_integer(n)))
		die_usage("--counter: the name is not UTF-8 text");
	free(name);
}

static void set_max_fails(struct submission *s, const char *text)
{
	if (!max_fails_parse(text, &s->results.max_fails))
		die_usage("--max-fails is NUMBER or PERCENT%%, and ,now behind it ends running tasks, too");
}

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "ntasks", required_argument, NULL, 'n' },
	{ "cores", required_argument, NULL, 'c' },
	{ "gpus", required_argument, NULL, 'g' },
	{ "nodes", required_argument, NULL, 'N' },
	{ "nodelist", required_argument, NULL, 'w' },
	{ "per-node", required_argument, NULL, 'p' },
	{ "exclusive", no_argument, NULL, 'x' },
	{ "pmi", no_argument, NULL, 'i' },
	{ "mem", required_argument, NULL, 'm' },
	{ "counter", required_argument, NULL, 'C' },
	{ "time", required_argument, NULL, 't' },
	{ "retries", required_argument, NULL, 'r' },
	{ "priority", required_argument, NULL, 'P' },
	{ "name", required_argument, NULL, 'J' },
	{ "output", required_argument, NULL, 'o' },
	{ "error", required_argument, NULL, 'e' },
	{ "append", no_argument, NULL, 'a' + 256 },
	{ "no-output", no_argument, NULL, 'O' },
	{ "dvm", required_argument, NULL, 'd' },
	{ "wait", no_argument, NULL, 'w' + 256 },
	{ "quiet", no_argument, NULL, 'q' },
	{ "json", required_argument, NULL, 'j' },
	{ "each-line", required_argument, NULL, 'l' },
	{ "array", required_argument, NULL, 'a' },
	{ "report", required_argument, NULL, 'R' },
	{ "chdir", required_argument, NULL, 'D' },
	{ "journal", required_argument, NULL, 'D' + 256 },
	{ "local", optional_argument, NULL, 'L' },
	{ "orphan", required_argument, NULL, 'W' },
	{ "take-over", no_argument, NULL, 'T' },
	{ "again", no_argument, NULL, 'A' },
	{ "retry-failed", no_argument, NULL, 'F' },
	{ "shell", required_argument, NULL, 'S' },
	{ "stdin", no_argument, NULL, 's' },
	{ "max-fails", required_argument, NULL, 'M' },
	{ "print", no_argument, NULL, 'p' + 256 },
	{ "preloaded", no_argument, NULL, 'I' },
	{ 0 },
};

static void take_option(struct submission *s, char **argv, int option, const char *value)
{
	switch (option) {
	case 'n': set_number(s, "ranks", "--ranks", value); break;
	case 'c': set_number(s, "cores", "--cores", value); break;
	case 'g': set_number(s, "gpus", "--gpus", value); break;
	case 'N': set_number(s, "nodes", "--nodes", value); break;
	case 'w': json_object_set_new(s->task, "on", option_nodelist(value)); break;
	case 'p': set_number(s, "per_node", "--per-node", value); break;
	case 'r': set_number(s, "retries", "--retries", value); break;
	case 'P': set_priority(s, value); break;
	case 'S': s->shell = value; break;
	case 'x': json_object_set_new(s->task, "exclusive", json_true()); break;
	case 'i': json_object_set_new(s->task, "pmi", json_true()); break;
	case 'm': set_memory(s, value); break;
	case 'C': set_counter(s, value); break;
	case 't': set_time(s, value); break;
	case 'J':
		json_object_set_new(s->task, "name", user_text("the value of --name", value));
		break;
	case 'o': output_option(s, value); break;
	case 'e': error_option(s, value); break;
	case 'a' + 256: json_object_set_new(s->task, "append", json_true()); break;
	case 'O': json_object_set_new(s->task, "output", json_string("none")); break;
	case 'd': s->dvm = value; break;
	case 'w' + 256: s->wait = true; break;
	case 'q': s->quiet = true; break;
	case 'j': s->json = value; break;
	case 'l': s->lines = value; break;
	case 'a': s->array = value; break;
	case 'R': s->report = value; break;
	case 'D': chdir_option(s, value); break;
	case 'D' + 256: s->journal = value; break;
	case 'L': s->local = local_nodes(argv, value); break;
	case 'W': s->orphan = value; break;
	case 'T': s->take_over = true; break;
	case 'A': s->again = true; break;
	case 'F': s->retry_failed = true; break;
	case 's': s->stdin_goes = true; break;
	case 'M': set_max_fails(s, value); break;
	case 'I': json_object_set_new(s->task, "preloaded", json_true()); break;
	case 'p' + 256: s->results.print = true; break;
	default: die_option(argv, option, long_options);
	}
}

void task_options_take(struct submission *s, int argc, char **argv)
{
	const char *letters = s->options_anywhere ? ":n:c:g:N:D:J:o:e:t:w:" : "+:n:c:g:N:D:J:o:e:t:w:";
	int option;

	s->task = json_object();
	s->tasks = json_array();
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, long_options, NULL)) != -1)
		take_option(s, argv, option, optarg);
}

bool task_options_any_batch(const struct submission *s)
{
	return s->journal || s->local || s->orphan || s->take_over || s->again ||
	       s->retry_failed || s->shell;
}

void task_options_refuse_batch(const struct submission *s)
{
	if (task_options_any_batch(s))
		die_usage("--journal, --local, --orphan, --take-over, --again, --retry-failed and --shell are options of up and batch");
}

