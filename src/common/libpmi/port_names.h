/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that programs of PMI-1 and PMI-2 publish, each with a port. Names of PMIx:
 * name_store.h.
 */
#pragma once

#include <stdint.h>

#include "libpmi/control.h"
#include "libpmi/rc.h"

struct port_name;

/* All zeros, and the seed (ranks choose the names): no names. */
struct port_names {
	uint64_t hash_seed;
	struct port_name *names;
};

/*
 * Serve a request that came on `link`. The code for its answer, and *text for it: the
 * port that was looked up, or why there is an error; valid until the next call. Publish
 * takes name and text out of `msg`.
 */
enum pmi_rc port_names_publish(struct port_names *p, void *link,
			       struct control_msg *msg, const char **text);
enum pmi_rc port_names_unpublish(struct port_names *p, void *link,
				 struct control_msg *msg, const char **text);
enum pmi_rc port_names_lookup(struct port_names *p, void *link,
			      struct control_msg *msg, const char **text);
/* Forget names that were published on this link. */
void port_names_lost(struct port_names *p, const void *link);
void port_names_free(struct port_names *p);
