/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbours of a node: their life, and what others may do with them. */
#include "agent/peers/peers.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/peers/connect_back.h"
#include "agent/peers/connect_back_listener.h"
#include "agent/peers/links.h"
#include "agent/peers/lookup.h"
#include "agent/peers/missing.h"
#include "agent/peers/wireup.h"
#include "libcoll/layout.h"
#include "libio/fd.h"

/* ---- making the links ---- */

void peers_begin(struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		wireup_start(&p->all[i]);
}

bool peers_settled(const struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->all[i].state == NEIGHBOUR_WAITING)
			return false;
	}
	return true;
}

bool peers_untouched(const struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->all[i].state != NEIGHBOUR_WAITING)
			return false;
	}
	return true;
}

void peers_node_found(struct peers *p, uint32_t node_id, int rc,
		      const struct sockaddr_storage *addr)
{
	struct neighbour *n = lookup_found(p, node_id, rc, addr);

	if (n)
		wireup_found(n);
}

void peers_connect_back_sent(struct peers *p, uint32_t node_id, int rc)
{
	const struct layout *layout = p->node->layout;
	struct neighbour *n = NULL;

	if (node_id < layout_nodes(layout))
		n = neighbour_find(p, layout_position(layout, node_id));
	if (!n)
		return;
	connect_back_sent(n, rc);
	missing_called(n, rc);
}

/*
 * Such a peer gets no link. Log one line only: the step's user could make any number of
 * peers.
 */
static void log_unproved(struct peers *p)
{
	if (!p->met_unproved)
		log_info(p->node->log,
			 "ignored a message through slurmd that asks node %s to connect: the sender did not prove that it belongs to this step; if nodes do not find each other, install the same version of pmi2x on all nodes",
			 node_own_name(p->node));
	p->met_unproved = true;
}

static void on_connect_back(void *arg, const void *data, size_t len)
{
	struct whereabouts where;
	struct peers *p = arg;

	if (connect_back_check(p->node, data, len, &where))
		log_unproved(p);
	else if (!p->leaving)
		wireup_called(p, &where);
}

int peers_started(struct peers *p, uint32_t position)
{
	struct neighbour *n = neighbour_find(p, position);

	return n ? missing_started(n) : -EPROTO;
}

void peers_srun_up(struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		missing_srun_up(&p->all[i]);
}

bool peers_asks(const struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (missing_is_asked(&p->all[i]))
			return true;
	}
	return false;
}

/* ---- a way of the host's ---- */

static bool is_living(const struct neighbour *n)
{
	return n && n->state != NEIGHBOUR_LEFT && n->state != NEIGHBOUR_LOST;
}

void peers_frame(struct peers *p, uint32_t position, enum frame_type type,
		 const void *head, size_t head_len, struct payload *body)
{
	struct neighbour *n = neighbour_find(p, position);

	if (!is_living(n))
		return;
	if (n->state == NEIGHBOUR_WAITING)
		neighbour_up(n, NULL);
	if (is_living(n) && links_frame(n, type, head, head_len, body))
		neighbour_lost(n, "node %s sent an invalid message",
			       neighbour_name(n));
}

void peers_lost(struct peers *p, uint32_t position, const char *why)
{
	struct neighbour *n = neighbour_find(p, position);

	if (is_living(n))
		neighbour_lost(n, "%s", why);
}

/* ---- sending ---- */

bool peers_send_message(struct peers *p, uint32_t position, const void *head,
			size_t head_len, const struct payload_vec *body)
{
	struct neighbour *n = neighbour_find(p, position);

	if (!n || !neighbour_may_send(n))
		return false;
	neighbour_send(n, FRAME_COLLECTIVE, head, head_len, body);
	return true;
}

/* A frame without a head. */
static void send_frame(struct neighbour *n, enum frame_type type, struct payload *frame)
{
	struct payload_vec body;

	payload_vec_init(&body);
	if (payload_vec_add(&body, frame)) {
		neighbour_send_failed(n, -ENOMEM);
	} else {
		n->control_up += type == FRAME_CONTROL_UP;
		neighbour_send(n, type, NULL, 0, &body);
	}
	payload_vec_clear(&body);
}

static void send_control(struct neighbour *n, struct payload *frame)
{
	if (neighbour_may_send(n))
		send_frame(n, n->is_parent ? FRAME_CONTROL_UP : FRAME_CONTROL_DOWN, frame);
}

void peers_send_control(struct peers *p, uint32_t position,
			struct payload *frame)
{
	struct neighbour *n = neighbour_find(p, position);

	if (n)
		send_control(n, frame);
}

void peers_send_store(struct peers *p, uint32_t position, const struct payload_vec *message)
{
	struct neighbour *n = neighbour_find(p, position);

	if (n && neighbour_may_send(n))
		neighbour_send(n, FRAME_STORE, NULL, 0, message);
}

void peers_send_down(struct peers *p, struct payload *frame)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (!p->all[i].is_parent)
			send_control(&p->all[i], frame);
	}
}

void peers_break(struct peers *p, uint32_t position)
{
	struct neighbour *n = neighbour_find(p, position);

	if (is_living(n))
		neighbour_send_failed(n, -ENOMEM);
}

bool peers_has_parent(const struct peers *p)
{
	return p->parent && neighbour_may_send(p->parent);
}

uint64_t peers_sent_up(const struct peers *p)
{
	return p->parent ? p->parent->control_up : 0;
}

/* ---- for people ---- */

uint32_t peers_count(const struct peers *p)
{
	return p->count;
}

struct peer_status peers_status(const struct peers *p, uint32_t i)
{
	const struct neighbour *n = &p->all[i];

	return (struct peer_status){
		.position = n->position,
		.is_parent = n->is_parent,
		.state = n->state,
		.queued = neighbour_queued(n),
	};
}

/* ---- leaving ---- */

/*
 * A link that we have chosen may be up for the other side already, which would
 * take its end for our death.
 */
static void abandon(struct neighbour *n)
{
	char why[NODE_WHY_MAX];

	if (n->chosen)
		links_say_goodbye(n);
	wireup_explain(n, why, sizeof(why));
	neighbour_lost(n, "node %s left the step before it was connected with node %s%s",
		       node_own_name(n->peers->node), neighbour_name(n), why);
}

void peers_abandon(struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->all[i].state == NEIGHBOUR_WAITING)
			abandon(&p->all[i]);
	}
}

void peers_prepare_leave(struct peers *p)
{
	p->leaving = true;
	peers_answer(p);
	for (uint32_t i = 0; i < p->count; i++) {
		struct neighbour *n = &p->all[i];

		if (n->state == NEIGHBOUR_WAITING && !wireup_tried(n))
			abandon(n);
	}
}

void peers_answer(struct peers *p)
{
	if (p->parent)
		links_answer(p->parent);
}

bool peers_flushed(const struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (neighbour_queued(&p->all[i]))
			return false;
	}
	return true;
}

void peers_leave(struct peers *p, bool parent)
{
	for (uint32_t i = 0; i < p->count; i++) {
		struct neighbour *n = &p->all[i];

		if (n->is_parent == parent && n->state == NEIGHBOUR_UP &&
		    !n->said_goodbye)
			links_say_goodbye(n);
	}
}

bool peers_gone(const struct peers *p, bool parent)
{
	for (uint32_t i = 0; i < p->count; i++) {
		const struct neighbour *n = &p->all[i];

		if (n->is_parent == parent && n->state == NEIGHBOUR_UP)
			return false;
	}
	return true;
}

/* ---- life ---- */

static int add_neighbour(struct peers *p, uint32_t position)
{
	struct neighbour *n = &p->all[p->count];
	int rc = uv_timer_init(loop_uv(p->node->loop), &n->timer);

	if (rc)
		return rc;
	n->timer.data = n;
	n->peers = p;
	n->position = position;
	p->count++;
	return 0;
}

static int add_neighbours(struct peers *p, const struct tree_place *place)
{
	int rc = 0;

	p->all = calloc(place->children + 1, sizeof(*p->all));
	if (!p->all)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < place->children; i++)
		rc = add_neighbour(p, tree_child(place, i).first);
	if (rc || place->parent == TREE_NONE)
		return rc;
	p->parent = &p->all[p->count];
	p->parent->is_parent = true;
	return add_neighbour(p, place->parent);
}

int peers_create(struct peers **out, struct node *node,
		 const struct tree_place *place, int listener, int connect_back,
		 const struct peers_ops *ops, void *arg)
{
	struct peers *p = calloc(1, sizeof(*p));
	int rc = -ENOMEM;

	*out = p;
	if (p) {
		p->node = node;
		p->ops = ops;
		p->arg = arg;
		p->conn_ops = &links_conn_ops;
		rc = add_neighbours(p, place);
	}
	if (!rc)
		rc = wireup_open(p, listener);
	else
		fd_close(&listener);
	if (!rc && connect_back >= 0)
		rc = connect_back_listener_open(&p->connect_back, node, connect_back,
						&p->strangers.refused, on_connect_back, p);
	else
		fd_close(&connect_back);
	return rc;
}

void peers_stop(struct peers *p)
{
	if (!p)
		return;
	p->leaving = true;
	connect_back_listener_close(p->connect_back);
	p->connect_back = NULL;
	listener_close(p->listener);
	p->listener = NULL;
	while (p->conns)
		conn_drop(p->conns);
	for (uint32_t i = 0; i < p->count; i++)
		node_close_handle(&p->all[i].timer);
	strangers_close(&p->strangers);
}

void peers_destroy(struct peers *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		neighbour_drop_queue(&p->all[i]);
	free(p->all);
	free(p);
}
