/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of PMIx (PMIx_Notify_event) as they travel between the nodes' pmi2x-pmixd: packed
 * by libpmix, of which all nodes have one release.
 */
#pragma once

#include "helpers/pmixd/library.h"

struct notification {
	pmix_status_t code;
	pmix_proc_t source;
	pmix_data_range_t range;
	pmix_info_t *info;
	size_t ninfo;
};

/* *data is malloc'ed. Not in the way of libpmix's thread. 0 or -EREMOTEIO. */
int notify_pack(const struct library *l, const struct notification *n, char **data,
		size_t *len);

/* Tell the clients of this node, as far as it is for them. 0, -ENOMEM or -EREMOTEIO. */
int notify_deliver(const struct library *l, const void *data, size_t len);
