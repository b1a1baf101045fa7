/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm cancel, and its report of nodes that could not be reached. */
#include <time.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "libio/clock.h"

#define TRIES 100
#define TRY_MS 100 /* between two: ten seconds in all */

bool say_unreached(json_t *event)
{
	json_t *nodes = json_object_get(event, "nodes"), *n;
	char clock[16];
	time_t until;
	size_t i;

	json_array_foreach(nodes, i, n) {
		until = (time_t)json_number_value(json_object_get(n, "until")) + 1;
		strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&until));
		fprintf(stderr, "pmi2x-dvm: node %s cannot be reached: ranks there may run until %s\n",
			get_text(n, "name"), clock);
	}
	return json_array_size(nodes);
}

/* Drops nodes of an answer that have been heard of less than `seconds` ago. */
static void drop_heard(json_t *event, double seconds)
{
	json_t *nodes = json_object_get(event, "nodes"), *n;

	for (size_t i = json_array_size(nodes); i; i--) {
		n = json_array_get(nodes, i - 1);
		if (json_number_value(json_object_get(n, "silent")) < seconds)
			json_array_remove(nodes, i - 1);
	}
}

bool cancel_is_unheard(struct conn *c)
{
	json_t *event = NULL;
	bool any = true;

	for (int i = 0; any && i <= TRIES; i++) {
		if (event)
			sleep_ms(TRY_MS);
		json_decref(event);
		event = conn_ask(c, json_pack("{s:s}", "op", "unreached"));
		drop_heard(event, i * TRY_MS / 1e3);
		any = json_array_size(json_object_get(event, "nodes"));
	}
	any = say_unreached(event);
	json_decref(event);
	return any;
}
