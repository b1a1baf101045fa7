/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the KVS that a group's barrier has brought to this node before the fence
 * of the step that will: they hide what was fenced before, and go when that fence has
 * ended here. Lies in the heap; not shared with ranks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/records.h"
#include "libutil/budget.h"

#define EARLY_MAX ((size_t)64 << 20) /* bytes of all values, as early_put counts */

struct early_value;

struct early {
	struct early_value *values;
	size_t used;
	uint64_t seed;         /* of the hash: ranks choose the keys */
	struct budget *budget; /* NULL: none */
};

void early_init(struct early *e, uint64_t seed, struct budget *budget);
void early_free(struct early *e);
/*
 * Keep a copy, instead of an earlier value of the key, until fence number `fence`
 * has ended. 0, -ENOSPC (EARLY_MAX) or -ENOMEM.
 */
int early_put(struct early *e, const struct record *r, uint32_t fence);
/* NUL-terminated; valid until the next call that changes something. */
bool early_find(const struct early *e, const char *key, size_t key_len,
		const char **value, size_t *value_len);
/* This fence has ended here, and so have all before it. */
void early_fenced(struct early *e, uint32_t fence);
