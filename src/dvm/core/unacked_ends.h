/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of parts (node.h) that the head may not have in its journal: the next head gets
 * them. Calls no system function; one thread at a time.
 */
#pragma once

#include "dvm/core/dvm_msg.h"

struct kept_set;

/* NULL: no memory. */
struct kept_set *kept_create(void);
void kept_destroy(struct kept_set *k);

/* Both are copied. 0 or a negative errno: it is not kept. */
int kept_add(struct kept_set *k, const struct dvm_held *held,
	     const struct dvm_ended *ended);
/*
 * Keeps a failure that is reported of a part after its end, if the part is kept;
 * copied. 0 or a negative errno.
 */
int kept_add_failed(struct kept_set *k, const struct dvm_failed *failed);
/* Nothing, when there is none. */
void kept_remove(struct kept_set *k, uint64_t task, uint32_t instance);
/* Append HELD and ENDED of all, and FAILED. 0 or a negative errno. */
int kept_say(const struct kept_set *k, struct buf *out);
