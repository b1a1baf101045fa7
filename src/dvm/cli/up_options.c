/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of pmi2x-dvm up, and those that its heads get for them. */
#include "dvm/cli/up.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "dvm/cli/find.h"
#include "dvm/cli/options.h"
#include "dvm/common/bootstrap.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

void up_add(struct up *u, const char *option, const char *value)
{
	if (u->nargs + 3 > HEAD_ARGS_MAX)
		die_usage("too many options");
	u->args[u->nargs++] = (char *)(uintptr_t)option;
	if (value)
		u->args[u->nargs++] = (char *)(uintptr_t)value;
}

static void check_slots(const char *text)
{
	uint32_t number;

	if (strcmp(text, "core") && strcmp(text, "thread") &&
	    !decimal_u32(text, 1, DVM_CORES_MAX, &number))
		die_usage("--slots is core, thread or a number up to %d",
			  DVM_CORES_MAX);
}

static void check_preload(const char *code)
{
	if (!*code || strchr(code, '\n') || strlen(code) >= WELCOME_CODE_MAX)
		die_usage("--preload is one line of Python, of less than %d bytes: put more into a module",
			  WELCOME_CODE_MAX);
}

static void check_order(const char *text)
{
	if (strcmp(text, "fifo") && strcmp(text, "large") && strcmp(text, "work"))
		die_usage("--order is fifo, large or work");
}

static void take_counter(struct up *u, const char *text)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		die_usage("--counter is NAME=NUMBER");
	(void)option_number("--counter", equals + 1, 0, INT32_MAX);
	up_add(u, "-c", text);
}

static char *thousand(const char *option, const char *seconds)
{
	char *ms;

	(void)option_number(option, seconds, 0, INT32_MAX / 1000);
	if (asprintf(&ms, "%s000", seconds) < 0)
		die("out of memory");
	return ms;
}

static void take_journal(struct up *u, const char *dir, bool resume)
{
	if (u->journal)
		die_usage("--journal DIR starts a new journal, --resume DIR continues one: give one of the two");
	json_decref(user_text("the name of the journal", dir));
	u->journal = dir;
	if (resume)
		up_add(u, "-R", NULL);
}

static void take_name(struct up *u, const char *name)
{
	char copy[DVM_PATH_MAX];
	uint32_t number;

	snprintf(copy, sizeof(copy), "%s", name);
	if (dvm_split_name(copy, &number))
		die_usage("\"%s\" is the name of one of several DVMs: give --name %s and --dvms",
			  name, copy);
	json_decref(user_text("the name of the DVM", name));
	u->name = name;
}

static void take_nodelist(struct up *u, const char *text)
{
	json_decref(u->names);
	u->names = option_nodelist(text);
}

static const struct option options[] = {
	{ "nodes", required_argument, NULL, 'N' },
	{ "nodelist", required_argument, NULL, 'A' },
	{ "local", optional_argument, NULL, 'l' },
	{ "dvms", required_argument, NULL, 'D' },
	{ "dvm-nodes", required_argument, NULL, 'M' },
	{ "share", no_argument, NULL, 'S' },
	{ "name", required_argument, NULL, 'n' },
	{ "slots", required_argument, NULL, 's' },
	{ "gpus", required_argument, NULL, 'G' },
	{ "launcher", required_argument, NULL, 'L' },
	{ "counter", required_argument, NULL, 'c' },
	{ "grace", required_argument, NULL, 'g' },
	{ "patience", required_argument, NULL, 'p' },
	{ "within", required_argument, NULL, 'w' },
	{ "orphan", required_argument, NULL, 'W' },
	{ "width", required_argument, NULL, 't' },
	{ "max-queued", required_argument, NULL, 'm' },
	{ "order", required_argument, NULL, 'o' },
	{ "journal", required_argument, NULL, 'J' },
	{ "resume", required_argument, NULL, 'R' },
	{ "once", no_argument, NULL, 'O' },
	{ "fast", no_argument, NULL, 'F' },
	{ "preload", required_argument, NULL, 'I' },
	{ "take-over", no_argument, NULL, 'T' },
	{ 0 },
};

static void take_option(struct up *u, char **argv, int option, const char *value)
{
	switch (option) {
	case 'D': u->dvms = option_number("--dvms", value, 1, DVM_MEMBERS_MAX); break;
	case 'M':
		u->dvm_nodes = option_number("--dvm-nodes", value, 1, LEDGER_NODES_MAX);
		break;
	case 'S': up_add(u, "-S", NULL); break;
	case 'l':
		u->nodes = option_number("--local", local_nodes(argv, value), 1,
					 LEDGER_NODES_MAX);
		u->local = true;
		break;
	case 'N':
		u->nodes = option_number("--nodes", value, 1, LEDGER_NODES_MAX);
		u->local = false;
		break;
	case 'A': take_nodelist(u, value); break;
	case 'n': take_name(u, value); break;
	case 's': check_slots(value); up_add(u, "-s", value); break;
	case 'G': (void)option_number("--gpus", value, 0, LEDGER_GPUS_MAX);
		up_add(u, "-G", value); break;
	case 'L': u->launcher = true; up_add(u, "-L", value); break;
	case 'c': take_counter(u, value); break;
	case 'g': up_add(u, "-g", thousand("--grace", value)); break;
	case 'p': up_add(u, "-p", thousand("--patience", value)); break;
	case 'w': up_add(u, "-w", thousand("--within", value)); break;
	case 'W': (void)option_number("--orphan", value, 0, INT32_MAX / 1000);
		u->orphan = value;
		up_add(u, "-W", value); break;
	case 't': (void)option_number("--width", value, 0, LEDGER_NODES_MAX);
		up_add(u, "-t", value); break;
	case 'm': (void)option_number("--max-queued", value, 0, INT32_MAX);
		up_add(u, "-m", value); break;
	case 'J':
	case 'R': take_journal(u, value, option == 'R'); break;
	case 'O': up_add(u, "-O", NULL); break;
	case 'F': up_add(u, "-F", NULL); break;
	case 'I': check_preload(value); up_add(u, "-I", value); break;
	case 'T':
		u->take_over = true;
		up_add(u, "-T", NULL); break;
	case 'o':
		check_order(value);
		up_add(u, "-o", value); break;
	default: die_option(argv, option, options);
	}
}

void up_take_options(struct up *u, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:N:", options, NULL)) != -1)
		take_option(u, argv, option, optarg);
	if (optind < argc)
		die_usage("up: unexpected argument %s", argv[optind]);
	if (u->names && (u->local || u->launcher))
		die_usage("--nodelist is for srun: leave out --local and --launcher");
	if (u->orphan && !u->journal)
		die_usage("--orphan needs a journal, with which another head can continue: give --journal DIR, too");
	if (u->take_over && !u->journal)
		die_usage("--take-over needs the journal of another head: give --resume DIR, too");
}
