/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data that ranks of a namespace enter a fence with, and what becomes of those that
 * a fence brings. Either libpmix's collection of a whole node is handed on and given to
 * libpmix on every node (store), or each rank's data are, and are kept here until a
 * client asks for that rank (demand). The data that a node hands on names its kind, so
 * that nodes need not agree.
 *
 * Handed on as entries (libpmi/pmix_msg.h) whose first byte is an enum collect_kind.
 */
#pragma once

#include "helpers/pmixd/events.h"
#include "helpers/pmixd/library.h"
#include "helpers/pmixd/pieces.h"
#include "helpers/pmixd/pmixd.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"

#define COLLECT_STORE_RANKS 256 /* most ranks of a namespace that PMIXD_COLLECT_AUTO stores */

enum collect_kind {
	COLLECT_NODE = 'S', /* libpmix's collection of a node */
	COLLECT_RANK = 'D', /* data that a rank has committed */
};

struct collect;

/* `l` and `n` must outlive it. 0 or -ENOMEM. */
int collect_create(struct collect **out, const struct library *l,
		   const struct pmix_nspace *n, enum pmixd_collect mode);
void collect_free(struct collect *c);

/* A client of PMIx 3 or older comes: not all libpmix can give it data on demand. */
void collect_old_client(struct collect *c);

/*
 * Append the entries of this node's members of the fence, in these slots, to `out`. The
 * data that a rank has committed is a piece of its own there. Waits for libpmix's thread
 * when they are on demand. 0, or a negative errno.
 */
int collect_give(struct collect *c, const struct event *fence, const uint32_t *slots,
		 uint32_t count, struct pieces *out);

/* As above, but gives the data that each member has committed, whatever the kind. */
int collect_give_ranks(struct collect *c, const uint32_t *slots, uint32_t count,
		       struct pieces *out);

/*
 * Takes the entries that a fence has brought: the data of `m`, whose bytes are
 * `message`. The data of ranks stay there, referred to. *store, malloc'ed, is what
 * libpmix is to be given; NULL: nothing. 0, -EPROTO or -ENOMEM.
 */
int collect_take(struct collect *c, const struct pmix_msg *m, struct payload *message,
		 char **store, size_t *store_len);

/*
 * The data of a rank that a fence has brought, if `key` (NULL: any) may be in them and libpmix
 * has not been given them yet: it has by this. They stay until the next fence.
 */
bool collect_find(struct collect *c, uint32_t rank, const char *key,
		  const void **data, size_t *len);
