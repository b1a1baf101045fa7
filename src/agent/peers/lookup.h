/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of neighbours, which the host finds. */
#pragma once

#include "agent/peers/neighbour.h"

/*
 * Find the neighbour's address for n->addr. Returns 0; -EINPROGRESS: lookup_found is called
 * when the lookup has ended; or the negative errno of a lookup that failed.
 */
int lookup_address(struct neighbour *n);

/*
 * The host's answer: 0 and an address, or a negative errno. The neighbour for which
 * lookup_address has returned -EINPROGRESS; NULL: there is none.
 */
struct neighbour *lookup_found(struct peers *p, uint32_t node_id, int rc,
			       const struct sockaddr_storage *addr);
