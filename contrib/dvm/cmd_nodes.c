/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm shrink. */
#include <getopt.h>
#include <stdio.h>

#include "client.h"
#include "dvm.h"
#include "libdvm/ledger.h"
#include "libutil/decimal.h"

static uint32_t take_number(const char *option, const char *text, uint32_t min)
{
	uint32_t number;

	if (!decimal_u32(text, min, LEDGER_NODES_MAX, &number))
		die_usage("%s must be a number from %u to %u", option, min,
			  LEDGER_NODES_MAX);
	return number;
}

/* Those that are named, or so many. */
static json_t *which_nodes(uint32_t count, int argc, char **argv)
{
	json_t *names;

	if (!count == !argc)
		die_usage("shrink: say which nodes, or how many with -N");
	if (count)
		return json_integer(count);
	names = json_array();
	for (int i = 0; i < argc; i++)
		json_array_append_new(names, json_string(argv[i]));
	return names;
}

int cmd_shrink(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "grace", required_argument, NULL, 'g' },
		{ 0 },
	};
	json_t *request = json_pack("{s:s}", "op", "shrink"), *answer;
	const char *dvm = NULL;
	uint32_t count = 0;
	struct conn *c;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+N:", options, NULL)) != -1)
		switch (option) {
		case 'd': dvm = optarg; break;
		case 'N': count = take_number("-N", optarg, 1); break;
		case 'g':
			json_object_set_new(request, "grace", json_integer(
				take_number("--grace", optarg, 0)));
			break;
		default: die_usage("shrink: there is no such option, or its value is missing");
		}
	json_object_set_new(request, "nodes", which_nodes(count, argc - optind,
							  argv + optind));
	c = conn_open(dvm);
	answer = conn_ask(c, request);
	printf("%lld nodes leave when nothing runs there\n",
	       get_number(answer, "nodes"));
	json_decref(answer);
	conn_close(c);
	return 0;
}
