/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects which clients wait for keys, and which ranks of this node have come to the store. */
#include "agent/step/store_status.h"

#include <stdlib.h>

#include "agent/step/sync_door.h"
#include "agent/step/torch_door.h"
#include "agent/step/torch_ranks.h"
#include "agent/step/torch_tree.h"
#include "libpmi/status.h"
#include "libstore/store.h"
#include "libutil/array.h"

#define SHOWN_MAX 65536 /* waiters, and comers */

struct collecting {
	struct status_keys keys;
	size_t waiters_room, comers_room;
};

static void on_waiter(void *arg, void *client, uint32_t rank, bool for_it)
{
	struct collecting *c = arg;
	struct status_waiter w = { .id = rank, .other = !for_it };
	uint16_t port;

	if (c->keys.torch) {
		if (!torch_door_origin(client, &w.position, &port))
			return;
		w.id = port;
	}
	if (c->keys.nwaiters < SHOWN_MAX &&
	    !array_grow(&c->keys.waiters, c->keys.nwaiters, &c->waiters_room, sizeof(w)))
		c->keys.waiters[c->keys.nwaiters++] = w;
}

static void on_comer(void *arg, uint32_t rank, uint16_t port)
{
	const struct status_comer comer = { rank, port };
	struct collecting *c = arg;

	if (c->keys.ncomers < SHOWN_MAX &&
	    !array_grow(&c->keys.comers, c->keys.ncomers, &c->comers_room, sizeof(comer)))
		c->keys.comers[c->keys.ncomers++] = comer;
}

static void on_sync_comer(void *arg, uint32_t rank)
{
	on_comer(arg, rank, 0);
}

/* The port of the TCPStore that this node's ranks connect to; 0: none, or it is not known. */
static uint16_t torch_port(const struct service *s)
{
	if (!s->node->options->torch)
		return 0;
	return s->torch ? torch_door_port(s) : torch_tree_port(s);
}

int store_status_pack(const struct service *s, const char *wait, bool key_counts, uint32_t seconds,
		      struct buf *out)
{
	struct collecting c = { .keys = { .age_s = seconds } };
	struct node_status status = { .wait = wait[0] ? (char *)wait : NULL };
	const uint16_t port = torch_port(s);
	struct store_key_wait key;
	int rc;

	if (key_counts && store_waits_for_key(s->store, &key)) {
		c.keys.key = key.key;
		c.keys.torch = key.space == STORE_TORCH;
		store_each_key_wait(s->store, &key, on_waiter, &c);
	}
	sync_door_each_comer(s, on_sync_comer, &c);
	if (port)
		torch_ranks_look(s, port, on_comer, &c);
	status.keys = c.keys;
	rc = status_pack_waits(out, &status);
	free(c.keys.waiters);
	free(c.keys.comers);
	return rc;
}
