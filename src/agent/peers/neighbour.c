/* SPDX-License-Identifier: BSD-3-Clause */
/* A neighbour in the tree: its state, its connections, what waits for its link. */
#include "agent/peers/neighbour.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "libutil/array.h"

struct neighbour *neighbour_find(const struct peers *p, uint32_t position)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->all[i].position == position)
			return &p->all[i];
	}
	return NULL;
}

const char *neighbour_name(const struct neighbour *n)
{
	return node_name(n->peers->node, n->position);
}

void neighbour_set_timer(struct neighbour *n, uint64_t ms)
{
	uv_timer_start(&n->timer, n->peers->on_timer, ms, 0);
}

/* ---- frames ---- */

void neighbour_drop_queue(struct neighbour *n)
{
	for (size_t i = 0; i < n->nqueue; i++) {
		payload_unref(n->queue[i].front);
		payload_vec_clear(&n->queue[i].body);
	}
	free(n->queue);
	n->queue = NULL;
	n->nqueue = n->queue_cap = n->queue_bytes = 0;
}

static int enqueue(struct neighbour *n, enum frame_type type,
		   struct payload *front, const struct payload_vec *body)
{
	size_t bytes = front->len + (body ? body->bytes : 0);
	struct queued_frame *f;
	int rc;

	if (bytes > PEERS_QUEUE_MAX - n->queue_bytes)
		return -ENOBUFS;
	rc = array_grow(&n->queue, n->nqueue, &n->queue_cap, sizeof(*f));
	if (rc)
		return rc;
	f = &n->queue[n->nqueue];
	f->type = type;
	payload_vec_init(&f->body);
	rc = body ? payload_vec_add_all(&f->body, body) : 0;
	if (rc) {
		payload_vec_clear(&f->body);
		return rc;
	}
	f->front = payload_ref(front);
	n->nqueue++;
	n->queue_bytes += bytes;
	return 0;
}

bool neighbour_may_send(const struct neighbour *n)
{
	return n->state != NEIGHBOUR_LEFT && n->state != NEIGHBOUR_LOST &&
	       !n->said_goodbye;
}

/* `front`: made by frame_header. */
static int write_frame(const struct neighbour *n, enum frame_type type,
		       struct payload *front, const struct payload_vec *body)
{
	const struct agent_host *host = n->peers->node->host;

	if (!host->send)
		return link_send_front(n->chosen->link, front, body);
	return host->send(host->arg, n->position, type,
			  front->data + FRAME_HEADER_BYTES,
			  front->len - FRAME_HEADER_BYTES, body);
}

void neighbour_send_bytes(const struct neighbour *n, enum frame_type type,
			  const void *data, size_t len)
{
	struct payload *front = frame_header(type, NULL, 0, len);
	struct payload *bytes = len ? payload_copy(data, len) : NULL;
	struct payload_vec body;
	bool lacks = len && !bytes;

	payload_vec_init(&body);
	if (front && !lacks && (!len || !payload_vec_add(&body, bytes)))
		write_frame(n, type, front, &body);
	payload_vec_clear(&body);
	payload_unref(front);
	payload_unref(bytes);
}

void neighbour_send(struct neighbour *n, enum frame_type type, const void *head,
		    size_t head_len, const struct payload_vec *body)
{
	struct payload *front = frame_header(type, head, head_len,
					     body ? body->bytes : 0);
	int rc = -ENOMEM;

	if (front && n->state == NEIGHBOUR_UP)
		rc = write_frame(n, type, front, body);
	else if (front)
		rc = enqueue(n, type, front, body);
	payload_unref(front);
	if (rc && rc != -EPIPE) /* a broken link tells so itself */
		neighbour_send_failed(n, rc);
}

void neighbour_send_failed(struct neighbour *n, int error)
{
	n->send_error = error;
	neighbour_set_timer(n, 0);
}

size_t neighbour_queued(const struct neighbour *n)
{
	if (n->state != NEIGHBOUR_UP)
		return n->queue_bytes;
	return n->chosen ? link_queued(n->chosen->link) : 0;
}

static void send_queue(struct neighbour *n)
{
	for (size_t i = 0; i < n->nqueue; i++)
		write_frame(n, n->queue[i].type, n->queue[i].front,
			    &n->queue[i].body);
	neighbour_drop_queue(n);
}

/* ---- its state ---- */

/* No more attempts; close all its connections but the link. */
static void stop_attempts(struct neighbour *n)
{
	struct conn *c, *next;

	uv_timer_stop(&n->timer);
	n->attempt = NULL;
	DL_FOREACH_SAFE(n->peers->conns, c, next) {
		if (c->neighbour == n && c != n->chosen)
			conn_drop(c);
	}
}

void neighbour_up(struct neighbour *n, struct conn *c)
{
	struct peers *p = n->peers;

	n->chosen = c;
	n->state = NEIGHBOUR_UP;
	p->lack_since = 0;
	stop_attempts(n);
	send_queue(n);
	log_debug(p->node->log, "link to node %s is up", neighbour_name(n));
	if (c)
		node_met(p->node, neighbour_name(n), c->link);
	p->ops->up(p->arg, n->position);
}

static void report_unsent(struct neighbour *n)
{
	struct peers *p = n->peers;

	for (size_t i = 0; i < n->nqueue; i++) {
		if (n->queue[i].type == FRAME_CONTROL_UP)
			p->ops->unsent(p->arg, &n->queue[i].body);
	}
}

static void gone(struct neighbour *n, enum peer_end end, uint64_t dealt_with,
		 const char *why)
{
	struct peers *p = n->peers;
	const struct peer_gone report = {
		.position = n->position,
		.is_parent = n->is_parent,
		.end = end,
		/*
		 * A parent that was never there has dealt with nothing, but
		 * what was for it may not have been kept.
		 */
		.in_order = end != PEER_BROKEN &&
			    (end != PEER_UNREACHED || !n->send_error),
		.dealt_with = dealt_with,
		.why = why,
	};

	log_debug(p->node->log, "%s", why);
	n->state = end == PEER_LEFT || end == PEER_SILENT ? NEIGHBOUR_LEFT :
							    NEIGHBOUR_LOST;
	if (n->chosen && !n->owes_answer)
		conn_drop(n->chosen);
	stop_attempts(n);
	if (n->is_parent)
		report_unsent(n);
	neighbour_drop_queue(n);
	p->ops->gone(p->arg, &report);
}

void neighbour_left(struct neighbour *n, uint64_t control_dealt_with)
{
	char why[NODE_WHY_MAX];

	snprintf(why, sizeof(why),
		 "node %s has left the step: its ranks have ended",
		 neighbour_name(n));
	gone(n, PEER_LEFT, control_dealt_with, why);
}

void neighbour_silent(struct neighbour *n, const char *why)
{
	gone(n, PEER_SILENT, 0, why);
}

void neighbour_lost(struct neighbour *n, const char *format, ...)
{
	char why[NODE_WHY_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	gone(n, n->state == NEIGHBOUR_UP ? PEER_BROKEN : PEER_UNREACHED, 0, why);
}

/* ---- its connections ---- */

struct conn *conn_new(struct peers *p, struct neighbour *n)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->peers = p;
	c->neighbour = n;
	DL_APPEND(p->conns, c);
	if (!n)
		strangers_join(&p->strangers, &c->stranger, c, &c->link);
	return c;
}

void conn_drop(struct conn *c)
{
	struct peers *p = c->peers;
	struct neighbour *n = c->neighbour;

	DL_DELETE(p->conns, c);
	strangers_leave(&p->strangers, &c->stranger);
	if (n && n->attempt == c)
		n->attempt = NULL;
	if (n && n->chosen == c)
		n->chosen = NULL;
	link_close(c->link);
	free(c);
}

bool conn_is_up(const struct conn *c)
{
	const struct neighbour *n = c->neighbour;

	return n && n->chosen == c && n->state == NEIGHBOUR_UP;
}
