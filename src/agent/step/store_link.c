/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries messages of the store over the links, and tells it of ends. */
#include "agent/step/store_link.h"

#include "agent/step/torch_tree.h"

#define STORE_SHARE 4 /* the store may have this part of Pmi2xBufferLimit */

static void op_send(void *arg, uint32_t position, const struct payload_vec *message)
{
	const struct service *s = arg;

	peers_send_store(s->peers, position, message);
}

static void op_links_wanted(void *arg)
{
	const struct service *s = arg;

	peers_begin(s->peers);
}

int store_link_open(struct service *s)
{
	const struct store_options options = {
		.bytes = s->node->options->buffer_limit / STORE_SHARE,
		.seed = s->step->hash_seed,
		.budget = s->step->budget,
	};
	const struct store_ops ops = { op_send, op_links_wanted, s };

	return store_create(&s->store, s->step->layout, pmi_server_place(s->server),
			    s->step->node_names, &options, &ops);
}

void store_link_free(struct service *s)
{
	store_destroy(s->store);
}

int store_link_message(void *service, uint32_t from, struct payload *message)
{
	struct service *s = service;

	torch_tree_asked(s);
	return store_input(s->store, from, message);
}

void store_link_gone(struct service *s, const struct peer_gone *gone)
{
	bool in_order = gone->end == PEER_LEFT || gone->end == PEER_SILENT;

	store_neighbour_gone(s->store, gone->position,
			     gone->is_parent ? gone->why :
			     in_order ? "has left the step" : "was lost with its node");
}

void store_link_rank_gone(struct service *s, uint32_t rank, const struct pmi_exit *end)
{
	char how[CAUSE_MAX];

	cause_text(end, how);
	store_rank_gone(s->store, rank, how);
}
