/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm grow and shrink. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/options.h"
#include "dvm/common/environ.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

struct change {
	const char *command; /* grow or shrink */
	const char *dvm;
	json_t *request;
	uint32_t count;      /* of nodes; 0: they are named */
	uint64_t job;        /* 0: that of the DVM */
};

/* The named nodes, or their number. */
static json_t *which_nodes(const struct change *ch, int argc, char **argv)
{
	json_t *names;

	if (!ch->count == !argc)
		die_usage("%s: name the nodes, or their number with -N", ch->command);
	if (ch->count)
		return json_integer(ch->count);
	names = json_array();
	for (int i = 0; i < argc; i++)
		json_array_append_new(names, user_text("the name of a node", argv[i]));
	return names;
}

/* Ask for the change, of the nodes that follow the options, and print for how many it is done. */
static void change_nodes(const struct change *ch, int argc, char **argv, const char *one,
			 const char *many)
{
	json_t *nodes = which_nodes(ch, argc - optind, argv + optind);
	struct conn *c = conn_look(ch->dvm);
	json_t *answer;
	long long n;

	json_object_set_new(ch->request, "nodes", nodes);
	answer = conn_ask(c, ch->request);
	n = get_number(answer, "nodes");
	printf("%lld %s\n", n, n == 1 ? one : many);
	json_decref(answer);
	conn_close(c);
}

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

	environ = environ_filter(environ_is_not_of_squeue);
	if (!environ)
		die("out of memory");
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

static void take_grace(struct change *ch, const char *text)
{
	uint32_t seconds = option_number("--grace", text, 0, LEDGER_NODES_MAX);

	json_object_set_new(ch->request, "grace", json_integer(seconds));
}

static struct change take_options(int argc, char **argv, const struct option *options)
{
	struct change ch = {
		.command = argv[0], .request = json_pack("{s:s}", "op", argv[0]),
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:N:", options, NULL)) != -1)
		switch (option) {
		case 'd': ch.dvm = optarg; break;
		case 'N': ch.count = option_number("-N", optarg, 1, LEDGER_NODES_MAX); break;
		case 'j': ch.job = take_job(optarg); break;
		case 'g': take_grace(&ch, optarg); break;
		default: die_option(argv, option, options);
		}
	return ch;
}

int cmd_grow(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "jobid", required_argument, NULL, 'j' },
		{ 0 },
	};
	struct change ch = take_options(argc, argv, options);

	if (ch.job && !ch.count && optind == argc)
		ch.count = nodes_of(ch.job);
	json_object_set_new(ch.request, "job", json_integer((json_int_t)ch.job));
	change_nodes(&ch, argc, argv, "node more is up", "nodes more are up");
	return 0;
}

int cmd_shrink(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "grace", required_argument, NULL, 'g' },
		{ 0 },
	};
	struct change ch = take_options(argc, argv, options);

	change_nodes(&ch, argc, argv, "node leaves when nothing runs there",
		     "nodes leave when nothing runs there");
	return 0;
}
