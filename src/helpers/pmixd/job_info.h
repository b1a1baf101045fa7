/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to what the clients of a namespace may ask of their job. */
#pragma once

#include "helpers/pmixd/info.h"
#include "libpmi/pmix_nspace.h"

/*
 * Values of the job, for server_register_nspace. `dir` is the server's directory. 0 or
 * -ENOMEM; `out` is the caller's to free in any case.
 *
 * Both maps are of the whole job, by position; what libpmix derives from them (node,
 * local rank and host name of each rank) is not said again. No node number at the level of
 * the job: libpmix files it under the machine's name, which need not be the node's.
 */
int job_info_make(struct info_list *out, const struct pmix_nspace *n,
		  const char *dir);

/*
 * Values of this node's ranks, for a second call: in one with the maps libpmix would
 * take them for all that is to be said of ranks, and derive nothing.
 */
int job_info_make_ranks(struct info_list *out, const struct pmix_nspace *n);
