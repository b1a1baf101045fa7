/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm grow and shrink. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/options.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

static uint32_t take_number(const char *option, const char *text, uint32_t min)
{
	uint32_t number;

	if (!decimal_u32(text, min, LEDGER_NODES_MAX, &number))
		die_usage("%s must be a number from %u to %u", option, min,
			  LEDGER_NODES_MAX);
	return number;
}

/* The named nodes, or their number. */
static json_t *which_nodes(const char *command, uint32_t count, int argc,
			   char **argv)
{
	json_t *names;

	if (!count == !argc)
		die_usage("%s: name the nodes, or their number with -N", command);
	if (count)
		return json_integer(count);
	names = json_array();
	for (int i = 0; i < argc; i++)
		json_array_append_new(names, user_text("the name of a node", argv[i]));
	return names;
}

/* Asks for a change of the nodes, and prints for how many it is done. */
static void change_nodes(const char *dvm, json_t *request, json_t *nodes,
			 const char *done)
{
	struct conn *c = conn_open(dvm);
	json_t *answer;

	json_object_set_new(request, "nodes", nodes);
	answer = conn_ask(c, request);
	printf("%lld nodes %s\n", get_number(answer, "nodes"), done);
	json_decref(answer);
	conn_close(c);
}

/* ---- grow ---- */

static uint64_t take_job(const char *text)
{
	uint64_t job;

	if (!decimal_u64(text, 1, INT64_MAX, &job))
		die_usage("--jobid must be the number of a job");
	return job;
}

/* How many nodes a job has, as squeue says. */
static uint32_t nodes_of(uint64_t job)
{
	char command[64], answer[64] = "";
	uint32_t nodes = 0;
	FILE *out;

	snprintf(command, sizeof(command), "squeue -h -t R -o %%D -j %llu",
		 (unsigned long long)job);
	out = popen(command, "r");
	if (out && fgets(answer, sizeof(answer), out))
		answer[strcspn(answer, "\n")] = '\0';
	if (out)
		pclose(out);
	if (!decimal_u32(answer, 1, LEDGER_NODES_MAX, &nodes))
		die("squeue shows no running job %llu", (unsigned long long)job);
	return nodes;
}

int cmd_grow(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "jobid", required_argument, NULL, 'j' },
		{ 0 },
	};
	json_t *request = json_pack("{s:s}", "op", "grow");
	const char *dvm = NULL;
	uint32_t count = 0;
	uint64_t job = 0;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:N:", options, NULL)) != -1)
		switch (option) {
		case 'd': dvm = optarg; break;
		case 'N': count = take_number("-N", optarg, 1); break;
		case 'j': job = take_job(optarg); break;
		default: die_option(argv, option);
		}
	if (job && !count && optind == argc)
		count = nodes_of(job);
	json_object_set_new(request, "job", json_integer((json_int_t)job));
	change_nodes(dvm, request,
		     which_nodes("grow", count, argc - optind, argv + optind),
		     "more are up");
	return 0;
}

/* ---- shrink ---- */

int cmd_shrink(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "grace", required_argument, NULL, 'g' },
		{ 0 },
	};
	json_t *request = json_pack("{s:s}", "op", "shrink");
	const char *dvm = NULL;
	uint32_t count = 0;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:N:", options, NULL)) != -1)
		switch (option) {
		case 'd': dvm = optarg; break;
		case 'N': count = take_number("-N", optarg, 1); break;
		case 'g':
			json_object_set_new(request, "grace", json_integer(
				take_number("--grace", optarg, 0)));
			break;
		default: die_option(argv, option);
		}
	change_nodes(dvm, request,
		     which_nodes("shrink", count, argc - optind, argv + optind),
		     "leave when nothing runs there");
	return 0;
}
