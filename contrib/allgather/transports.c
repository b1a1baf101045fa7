/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of transports, in the order in which they are preferred. */
#include "transport.h"

#include <string.h>

const struct transport_ops *const transports[] = {
#ifdef HAVE_VERBS
	&verbs_transport,
#endif
	&tcp_transport,
	NULL,
};

const char *const transport_names[TRANSPORT_NAMES_MAX] = {
	"verbs", "tcp", NULL,
};

const struct transport_ops *transport_find(const char *name)
{
	for (int i = 0; transports[i]; i++) {
		if (strcmp(transports[i]->name, name) == 0)
			return transports[i];
	}
	return NULL;
}
