/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the functions of libibverbs at run time. */
#include "verbs_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "transport.h"

#define LIBRARY "libibverbs.so.1"

struct entry {
	const char *name;
	size_t offset;
};

#define ENTRY(function) { "ibv_" #function, offsetof(struct verbs_calls, function) }

static const struct entry entries[] = {
	ENTRY(get_device_list),
	ENTRY(free_device_list),
	ENTRY(open_device),
	ENTRY(close_device),
	ENTRY(query_device),
	ENTRY(query_port),
	ENTRY(query_gid),
	ENTRY(get_async_event),
	ENTRY(ack_async_event),
	ENTRY(create_comp_channel),
	ENTRY(destroy_comp_channel),
	ENTRY(create_cq),
	ENTRY(destroy_cq),
	ENTRY(get_cq_event),
	ENTRY(ack_cq_events),
	ENTRY(alloc_pd),
	ENTRY(dealloc_pd),
	ENTRY(reg_mr),
	ENTRY(dereg_mr),
	ENTRY(create_qp),
	ENTRY(modify_qp),
	ENTRY(destroy_qp),
	ENTRY(create_ah),
	ENTRY(destroy_ah),
	ENTRY(wc_status_str),
	ENTRY(event_type_str),
};

#define ENTRIES (sizeof(entries) / sizeof(*entries))

_Static_assert(sizeof(struct verbs_calls) == ENTRIES * sizeof(void *),
	       "every function of the table is looked up");

int verbs_calls_load(struct verbs_calls *calls, char *why)
{
	/* Drivers that it has loaded refer to it: it can never be unloaded. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);

	if (!library) {
		snprintf(why, TRANSPORT_REASON_MAX,
			 LIBRARY " cannot be loaded; install libibverbs "
			 "(Debian: libibverbs1 and ibverbs-providers)");
		return -ENODEV;
	}
	for (size_t i = 0; i < ENTRIES; i++) {
		void *function = dlsym(library, entries[i].name);

		if (!function) {
			snprintf(why, TRANSPORT_REASON_MAX,
				 LIBRARY " has no %s", entries[i].name);
			dlclose(library);
			return -ENODEV;
		}
		memcpy((char *)calls + entries[i].offset, &function,
		       sizeof(function));
	}
	dlclose(library);
	return 0;
}
