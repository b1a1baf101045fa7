/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm down. */
#include <getopt.h>
#include <string.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/options.h"

int cmd_down(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "wait", no_argument, NULL, 'w' },
		{ "cancel", no_argument, NULL, 'c' },
		{ "keep", no_argument, NULL, 'k' },
		{ 0 },
	};
	const char *name = NULL, *work = "refuse";
	bool unreached = false;
	struct conn *c;
	json_t *event;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1)
		if (option == 'd')
			name = optarg;
		else if (option == 'w' || option == 'c' || option == 'k')
			work = option == 'w' ? "wait" :
			       option == 'c' ? "cancel" : "keep";
		else
			die_option(argv, option, options);
	c = conn_look(name);
	json_decref(conn_ask(c, json_pack("{s:s,s:s}", "op", "down", "work",
					  work)));
	while ((event = conn_next(c))) { /* until it has gone */
		unreached |= !strcmp(event_name(event), "unreached") && say_unreached(event);
		json_decref(event);
	}
	conn_say_logs(c);
	conn_close(c);
	return unreached;
}
