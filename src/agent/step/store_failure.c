/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds to the reason of a failure what else waits. */
#include "agent/step/store_failure.h"

#include <stdio.h>

#include "libstore/store.h"

static void count_waiter(void *arg, void *client, uint32_t rank, bool for_it)
{
	*(uint32_t *)arg += for_it;
}

void store_failure_explain(const struct service *s, const char *why, char out[NODE_WHY_MAX])
{
	struct store_key_wait key;
	uint32_t n = 0;

	snprintf(out, NODE_WHY_MAX, "%s", why);
	if (!s->node->options->no_srun || !store_waits_for_key(s->store, &key) || key.space != STORE_TORCH)
		return;
	store_each_key_wait(s->store, &key, count_waiter, &n);
	snprintf(out, NODE_WHY_MAX, "%.400s (%u connection%s wait%s for key %s)", why, n,
		 n == 1 ? "" : "s", n == 1 ? "s" : "", key.key);
}
