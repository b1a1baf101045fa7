/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads frames from connections with neighbours, and exchanges goodbyes. */
#include "agent/peers/links.h"

#include <errno.h>
#include <stdio.h>

#include "agent/peers/wireup.h"
#include "libutil/pack.h"

static int on_control_up(struct neighbour *n, struct payload *body)
{
	if (n->is_parent)
		return -EPROTO;
	if (!n->said_goodbye)
		n->control_up++;
	return n->peers->ops->control_up(n->peers->arg, n->position,
					 n->said_goodbye, body);
}

static int on_control_down(struct neighbour *n, struct payload *body)
{
	if (!n->is_parent)
		return -EPROTO;
	return n->peers->ops->control_down(n->peers->arg, body);
}

void links_say_goodbye(struct neighbour *n)
{
	uint64_t dealt_with = n->is_parent ? 0 : n->control_up;
	struct buf b;

	buf_init(&b, sizeof(dealt_with));
	if (!pack_u64(&b, dealt_with))
		neighbour_send_bytes(n, FRAME_GOODBYE, b.data, b.len);
	if (n->is_parent && n->chosen)
		link_shutdown(n->chosen->link);
	buf_free(&b);
	n->said_goodbye = true;
}

/*
 * To its parent a child is silent until it has a link of its own to srun, or ends:
 * when it is killed before that, the parent is the only one to notice.
 */
static void answer_goodbye(struct neighbour *n)
{
	const struct peers *p = n->peers;

	n->owes_answer = n->is_parent && !p->node->options->no_kill &&
			 p->ops->will_connect(p->arg);
	if (!n->owes_answer)
		links_say_goodbye(n);
}

void links_answer(struct neighbour *n)
{
	if (!n->owes_answer)
		return;
	n->owes_answer = false;
	if (!n->chosen)
		return;
	links_say_goodbye(n);
	if (link_queued(n->chosen->link))
		link_finish(n->chosen->link);
	else
		conn_drop(n->chosen);
}

static int on_goodbye(struct neighbour *n, struct payload *body)
{
	struct cursor c;
	uint64_t dealt_with;

	cursor_init(&c, body->data, body->len);
	dealt_with = unpack_u64(&c);
	if (!cursor_done(&c))
		return -EPROTO;
	if (!n->said_goodbye) /* its abort has been passed on: see link_ended */
		answer_goodbye(n);
	n->dealt_with = dealt_with;
	/* A neighbour that gets no goodbye takes this node for dead. */
	n->heard_goodbye = !n->owes_answer && neighbour_queued(n);
	if (n->heard_goodbye)
		link_finish(n->chosen->link);
	else
		neighbour_left(n, dealt_with);
	return 0;
}

static int on_store(struct neighbour *n, struct payload *body)
{
	return n->peers->ops->store(n->peers->arg, n->position, body);
}

static void on_proved(void *arg, struct link *l)
{
	wireup_proved(arg);
}

/* Frames that a link carries once it is up; the others belong to its making. */
static int (*const frame_handlers[FRAME_TYPES])(struct neighbour *n,
						struct payload *body) = {
	[FRAME_CONTROL_UP] = on_control_up,
	[FRAME_CONTROL_DOWN] = on_control_down,
	[FRAME_GOODBYE] = on_goodbye,
	[FRAME_STORE] = on_store,
};

int links_frame(struct neighbour *n, enum frame_type type, const void *head,
		size_t head_len, struct payload *body)
{
	struct coll_msg msg;

	if (type == FRAME_CHOSEN) /* the neighbour has begun to use a connection: no second one */
		return 0;
	if (type < FRAME_TYPES && frame_handlers[type])
		return frame_handlers[type](n, body);
	if (type != FRAME_COLLECTIVE || coll_msg_read(head, head_len, &msg))
		return -EPROTO;
	return n->peers->ops->message(n->peers->arg, n->position, &msg, body);
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct conn *c = arg;

	if (!frame_handlers[type])
		return wireup_frame(c, type, body);
	return conn_is_up(c) ? frame_handlers[type](c->neighbour, body) : -EPROTO;
}

static int on_message(void *arg, struct link *l, const void *head,
		      size_t head_len, struct payload *body)
{
	struct conn *c = arg;

	if (!conn_is_up(c) ||
	    (!c->has_head && coll_msg_read(head, head_len, &c->head)))
		return -EPROTO;
	c->has_head = false;
	return c->peers->ops->message(c->peers->arg, c->neighbour->position,
				      &c->head, body);
}

static struct payload *on_room(void *arg, struct link *l, const void *head,
			       size_t head_len, size_t len)
{
	struct conn *c = arg;

	c->has_head = conn_is_up(c) && !coll_msg_read(head, head_len, &c->head);
	if (!c->has_head)
		return NULL;
	return c->peers->ops->room(c->peers->arg, c->neighbour->position,
				   &c->head, len);
}

/*
 * A living node answers a goodbye. A child that does not has been killed, maybe before
 * its ranks have ended: its parent, which waits for the answer, is the last to know.
 */
static void link_ended(struct neighbour *n, int error)
{
	const char *name = neighbour_name(n);
	char why[NODE_WHY_MAX];

	if (n->heard_goodbye) {
		neighbour_left(n, n->dealt_with);
		return;
	}
	if (error == -EPROTO || error == -EMSGSIZE)
		snprintf(why, sizeof(why),
			 "node %s sent an invalid message; its connection is closed",
			 name);
	else
		snprintf(why, sizeof(why),
			 "lost the connection to node %s: %s", name,
			 link_strerror(error));
	if (n->said_goodbye)
		neighbour_silent(n, why);
	else
		neighbour_lost(n, "%s", why);
}

static void on_end(void *arg, struct link *l, int error)
{
	struct conn *c = arg;

	if (conn_is_up(c))
		link_ended(c->neighbour, error);
	else
		wireup_ended(c, error);
}

const struct link_ops links_conn_ops = {
	.proved = on_proved,
	.frame = on_frame,
	.message = on_message,
	.room = on_room,
	.end = on_end,
};
