/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of neighbours, which the host finds. */
#ifndef PMI2X_LOOKUP_H
#define PMI2X_LOOKUP_H

#include "agent/peers/neighbour.h"

/*
 * Have the neighbour's address in n->addr. 0; -EINPROGRESS: lookup_found will say
 * when it is known, or known not to be; or the negative errno of that.
 */
int lookup_address(struct neighbour *n);

/*
 * The host's answer: 0 and an address, or a negative errno. The neighbour for which
 * lookup_address has returned -EINPROGRESS; NULL: there is none.
 */
struct neighbour *lookup_found(struct peers *p, uint32_t node_id, int rc,
			       const struct sockaddr_storage *addr);

#endif
