/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bundles of all elements of the ring while they come in: a directory and the
 * bundles, in one piece of memory without pointers, which a node's ranks share
 * and an element of one rank has for itself.
 */
#pragma once

#include "group.h"

struct store_entry {
	uint64_t offset; /* of the bundle in the store; 0: has not come */
	uint64_t len;
};

struct store {
	struct group *group; /* NULL: own memory */
	char *base;
	size_t size;         /* of own memory */
	size_t used;
	uint32_t count;      /* of elements */
};

void store_init(struct store *s, struct group *group);
void store_free(struct store *s);

/* Forget the bundles; room for `count` of about `expected` bytes. -ENOMEM. */
int store_begin(struct store *s, uint32_t count, size_t expected);

/*
 * Memory for bundle i of `len` bytes, the same in every call for that i. NULL: no memory,
 * or `len` differs from the first call. Valid until a call for another bundle.
 */
char *store_bundle(struct store *s, uint32_t i, size_t len);

/*
 * Read a store of `used` bytes from any process of the node. Bundle i, or NULL
 * when the directory is wrong.
 */
const void *store_read(const void *base, size_t used, uint32_t count,
		       uint32_t i, size_t *len);
