/* SPDX-License-Identifier: BSD-3-Clause */
/* prun and pterm, for engines: tasks of a DVM, and its end. */
#include <getopt.h>
#include <stdlib.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/options.h"
#include "dvm/cli/prrte.h"
#include "dvm/cli/prun_options.h"

int cmd_prun(int argc, char **argv)
{
	int count;
	char *dvm, **run;

	argv[0] = "prun";
	run = prun_options_read(argc, argv, &count, &dvm);
	optind = 1;
	return run_task(count, run, dvm, NULL);
}

int cmd_pterm(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm-uri", required_argument, NULL, 'u' },
		{ "pmixmca", required_argument, NULL, 'm' },
		{ 0 },
	};
	char *down[] = { "down", "--cancel", "--dvm", NULL, NULL };
	int option;

	argv[0] = "pterm";
	opterr = 0;
	while ((option = getopt_long_only(argc, argv, "+:", options, NULL)) != -1)
		if (option == 'u')
			down[3] = prrte_dvm_name("pterm", optarg);
		else if (option == 'm')
			optind += argv[optind] != NULL;
		else
			die_option(argv, option, options);
	if (optind < argc)
		die_usage("pterm: unexpected argument %s", argv[optind]);
	optind = 1;
	return cmd_down(down[3] ? 4 : 2, down);
}
