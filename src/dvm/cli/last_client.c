/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a DVM that batch has started: last_client.h. */
#include "dvm/cli/last_client.h"

#include <string.h>

/* Without a journal there is nothing that could be kept. */
static const char *work_of(json_t *hello, const char *work)
{
	return *get_text(hello, "journal") ? work : "cancel";
}

long long last_client_leaves(struct conn *c, const char *work,
			     void (*fn)(void *arg, json_t *event), void *arg)
{
	json_t *hello = conn_hello(c), *answer, *event;
	long long others;

	if (!json_is_true(json_object_get(hello, "ends")))
		return -1;
	answer = conn_try(c, json_pack("{s:s,s:s,s:b}", "op", "down", "work",
				       work_of(hello, work), "last", 1));
	others = answer && !strcmp(event_name(answer), "ok") ? get_number(answer, "others") : -1;
	json_decref(answer);
	while (!others && (event = conn_next(c))) {
		if (fn)
			fn(arg, event);
		json_decref(event);
	}
	return others;
}
