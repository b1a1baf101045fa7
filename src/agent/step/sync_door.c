/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the store at the socket of this node. */
#include "agent/step/sync_door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/step/store_link.h"
#include "libio/fd.h"
#include "libio/listener.h"
#include "libio/refusals.h"
#include "libio/stream.h"
#include "libstore/store_msg.h"

#define CLIENTS_MAX 4096       /* of a node; half of the descriptors, where these are fewer */
#define PENDING_MAX 16         /* requests of a client without an answer */
#define FIRST_BYTES 65536      /* of a message; more when they have come */
#define UNREAD_MAX (STORE_MSG_MAX + STORE_MSG_LENGTH) /* bytes of answers */

struct client {
	struct client *prev, *next;
	struct sync_door *door;
	struct stream *stream;
	struct store_client *store; /* NULL until its HELLO */
	uint32_t rank;
	unsigned char length[STORE_MSG_LENGTH];
	size_t have;             /* bytes of it, and then of the message */
	uint32_t size;           /* of the message, once its length has come */
	struct payload *message; /* NULL until then */
};

struct sync_door {
	struct service *service;
	struct listener *listener;
	struct refusals refused;
	struct client *clients;
	uint32_t count, most;
	bool told_full;
	bool *come; /* ranks of this node that have been clients; NULL: none, or no memory */
};

static void drop(struct client *c)
{
	DL_DELETE(c->door->clients, c);
	c->door->count--;
	store_client_close(c->store);
	stream_close(c->stream);
	payload_unref(c->message);
	free(c);
}

/* ---- answers ---- */

static void send_answer(const struct client *c, uint64_t number, const struct store_answer *a)
{
	static const struct store_answer lacks = {
		.status = STORE_FULL,
		.text = "no memory for the answer (see Pmi2xBufferLimit)",
	};
	struct budget *budget = c->door->service->step->budget;
	struct payload_vec v;
	int rc;

	payload_vec_init(&v);
	rc = store_msg_make_client_answer(&v, number, a, budget);
	if (rc) {
		payload_vec_clear(&v);
		rc = store_msg_make_client_answer(&v, number, &lacks, NULL);
	}
	if (!rc)
		(void)stream_write_vec(c->stream, NULL, &v);
	payload_vec_clear(&v);
}

static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	send_answer(arg, token, a);
}

/* ---- requests ---- */

static bool runs_here(const struct client *c, uint32_t rank)
{
	const struct pmi_step *step = c->door->service->step;

	return rank < layout_ranks(step->layout) &&
	       layout_rank_position(step->layout, rank) == step->position;
}

static void refuse(struct client *c, const char *why)
{
	const struct store_answer a = { .status = STORE_INVALID, .text = why };

	send_answer(c, 0, &a);
	stream_finish(c->stream);
}

static void note_comer(struct sync_door *d, uint32_t rank)
{
	const struct pmi_step *step = d->service->step;
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(step->layout, step->position, &count);

	if (!d->come)
		d->come = calloc(count, sizeof(*d->come));
	for (uint32_t i = 0; d->come && i < count; i++)
		d->come[i] |= ranks[i] == rank;
}

void sync_door_each_comer(const struct service *s, void (*fn)(void *arg, uint32_t rank), void *arg)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(s->step->layout, s->step->position, &count);

	for (uint32_t i = 0; s->sync && s->sync->come && i < count; i++)
		if (s->sync->come[i])
			fn(arg, ranks[i]);
}

static int on_hello(struct client *c, const struct store_msg *m)
{
	static const struct store_client_ops ops = { .answer = on_answer };
	const struct service *s = c->door->service;
	const struct store_answer welcome = {
		.number = layout_ranks(s->step->layout), .text = "",
	};

	if (c->store)
		return -EPROTO;
	if (m->version != STORE_CLIENT_VERSION) {
		refuse(c, "the client and the agent are of different releases of pmi2x: use pmi2x-sync of the release that the node has");
		return 0;
	}
	if (!runs_here(c, m->rank)) {
		refuse(c, "the rank in PMI2X_SYNC does not run on this node");
		return 0;
	}
	c->rank = m->rank;
	c->store = store_client_open(s->store, STORE_SYNC, &ops, c);
	if (!c->store)
		return -ENOMEM;
	note_comer(c->door, c->rank);
	send_answer(c, 0, &welcome);
	return 0;
}

static int on_ask(struct client *c, struct store_msg *m)
{
	if (m->space != STORE_SYNC || store_pending(c->store) >= PENDING_MAX)
		return -EPROTO;
	m->rq.rank = c->rank;
	store_ask(c->store, m->number, &m->rq);
	return 0;
}

static int take_message(struct client *c)
{
	struct store_msg m;
	int rc = store_msg_unpack(&m, c->message);

	if (rc)
		return rc;
	if (m.type == STORE_MSG_HELLO)
		rc = on_hello(c, &m);
	else if (!c->store)
		rc = -EPROTO;
	else if (m.type == STORE_MSG_ASK)
		rc = on_ask(c, &m);
	else if (m.type == STORE_MSG_CANCEL)
		(void)store_cancel(c->store, m.number);
	else
		rc = -EPROTO;
	store_msg_free(&m);
	return rc;
}

/* ---- bytes ---- */

static size_t on_room(void *arg, void **at)
{
	struct client *c = arg;

	if (!c->message) {
		*at = c->length + c->have;
		return STORE_MSG_LENGTH - c->have;
	}
	*at = c->message->data + c->have;
	return c->message->len - c->have;
}

static int begin_message(struct client *c)
{
	const uint32_t size = store_msg_length(c->length);

	if (!size || size > STORE_REQUEST_MAX)
		return -EPROTO;
	c->have = 0;
	c->size = size;
	c->message = payload_new_in(c->door->service->step->budget,
				    size < FIRST_BYTES ? size : FIRST_BYTES);
	return c->message ? 0 : -ENOMEM;
}

/* All bytes have come for which there was room. */
static int go_on(struct client *c)
{
	struct payload *p = c->message;
	size_t len = c->size - c->have > c->have ? 2 * c->have : c->size;
	int rc;

	if (c->have < c->size) {
		p = payload_resize(p, len);
		c->message = p ? p : c->message;
		return p ? 0 : -ENOMEM;
	}
	rc = take_message(c);
	payload_unref(c->message);
	c->message = NULL;
	c->have = 0;
	return rc;
}

static void on_input(void *arg, size_t n)
{
	struct client *c = arg;
	int rc = 0;

	c->have += n;
	if (!c->message && c->have == STORE_MSG_LENGTH)
		rc = begin_message(c);
	else if (c->message && c->have == c->message->len)
		rc = go_on(c);
	if (!rc)
		return;
	log_info(c->door->service->node->log,
		 "closed the connection of a pmi2x-sync client of rank %u: %s", c->rank,
		 rc == -ENOMEM ? "no memory for its request (see Pmi2xBufferLimit)" :
				 "it sent an invalid message");
	drop(c);
}

static void on_end(void *arg, int error)
{
	drop(arg);
}

/* ---- connections ---- */

/* Takes over the descriptor. */
static void admit(struct sync_door *d, int fd)
{
	static const struct stream_limits limits = { .queue = UNREAD_MAX, .pause = FIRST_BYTES };
	static const struct stream_ops ops = {
		.room = on_room, .input = on_input, .end = on_end,
	};
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	c->door = d;
	if (stream_open(&c->stream, loop_uv(d->service->node->loop), fd, &limits, &ops, c)) {
		free(c);
		return;
	}
	DL_APPEND(d->clients, c);
	d->count++;
}

static void on_accept(void *arg, int fd)
{
	struct sync_door *d = arg;
	const struct service *s = d->service;

	if (!refusals_let_in(&d->refused, fd, getuid(), "the socket of pmi2x-sync")) {
		close(fd);
		return;
	}
	if (d->count < d->most) {
		admit(d, fd);
		return;
	}
	if (!d->told_full)
		log_info(s->node->log, "node %s has %u clients of pmi2x-sync, as many as it may have: more are refused",
			 node_own_name(s->node), d->count);
	d->told_full = true;
	close(fd);
}

int sync_door_open(struct service *s)
{
	struct sync_door *d;
	int rc, fd = s->sync_fds[0];

	if (fd < 0)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	s->sync = d;
	d->service = s;
	d->most = fd_at_most_half(CLIENTS_MAX);
	refusals_init(&d->refused, s->node->log);
	s->sync_fds[0] = -1;
	rc = listener_open(&d->listener, loop_uv(s->node->loop), fd, on_accept, d);
	if (!rc && s->sync_fds[1] >= 0) {
		on_accept(d, s->sync_fds[1]);
		s->sync_fds[1] = -1;
	}
	return rc;
}

void sync_door_close(struct service *s)
{
	struct sync_door *d = s->sync;

	if (!d)
		return;
	while (d->clients)
		drop(d->clients);
	listener_close(d->listener);
	d->listener = NULL;
	refusals_end(&d->refused);
}

void sync_door_free(struct service *s)
{
	if (s->sync)
		free(s->sync->come);
	free(s->sync);
}
