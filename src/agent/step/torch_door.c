/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of PyTorch's TCPStore. Their queries become requests of the store, in order;
 * the next query is read when the last one has been answered. Only WAIT leaves the
 * connection free: what the client sends then ends the wait, as a client does that no
 * longer waits.
 */
#include "agent/step/torch_door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/step/control_path.h"
#include "agent/step/store_failure.h"
#include "agent/step/torch_peers.h"
#include "agent/step/torch_tree.h"
#include "libio/clock.h"
#include "libio/fd.h"
#include "libio/listener.h"
#include "libio/stream.h"
#include "libio/tcp.h"
#include "libpmi/tcpstore.h"
#include "libstore/store.h"

#define CLIENTS_MAX 65536       /* connections; half of the descriptors, where these are fewer */
#define PAUSE_BYTES (256u << 10) /* unread answers, then no query is read */
#define UNREAD_MAX (STORE_ANSWER_MAX + ((size_t)16 << 20)) /* bytes of answers */
#define LOOK_REST 2 /* see look() */
#define LINES_MAX 16 /* in the log about refused and about closed connections; of the rest a number */

struct torch_client {
	struct torch_client *prev, *next;
	struct torch_door *door;
	struct stream *stream;
	struct tcpstore *wire;
	struct store_client *store;
	enum tcpstore_op op; /* that is being answered */
	uint64_t token;      /* of the last request */
	uint32_t asked;      /* requests without an answer, but for a wait */
	bool waits;          /* in WAIT: `token` is its */
	bool due;            /* in the list of those that go on */
	struct torch_client *next_due;
	char why[STORE_TEXT_MAX]; /* the connection is to be closed, because; or "" */
};

struct torch_door {
	struct service *service;
	struct listener *listener;
	struct torch_client *clients;
	uint16_t port;
	struct torch_client *due; /* have been answered, and may have sent more */
	uv_timer_t soon;
	/* Connections that have been accepted, until it is known who has made them. */
	struct torch_peer_of peers[TORCH_PEERS_MAX];
	uint32_t npeers;
	uv_timer_t look;
	uint64_t rest_ms; /* before the next look: it may be long */
	uint32_t count, most;
	uint32_t refused, closed, full;
	bool told_used; /* the first node knows that a client has connected here */
	bool used;      /* on the first node: a client has connected to any node */
	bool step_ends;
	int code;       /* for srun, if the step ends */
	char failure[NODE_WHY_MAX]; /* of a rank; or "" */
};

static void forget_due(struct torch_client *c)
{
	struct torch_client **at = &c->door->due;

	while (c->due && *at != c)
		at = &(*at)->next_due;
	if (c->due)
		*at = c->next_due;
	c->due = false;
}

static void drop(struct torch_client *c)
{
	forget_due(c);
	DL_DELETE(c->door->clients, c);
	c->door->count--;
	store_client_close(c->store);
	tcpstore_destroy(c->wire);
	stream_close(c->stream);
	free(c);
}

/* Later, in the loop: its owner is in the middle of something. */
static void go_on_later(struct torch_client *c);

static void fail(struct torch_client *c, const char *why)
{
	if (!c->why[0])
		snprintf(c->why, sizeof(c->why), "%s", why);
	go_on_later(c);
}

/* ---- answers ---- */

static void send_bytes(struct torch_client *c, const void *data, size_t len)
{
	int rc = stream_write(c->stream, data, len, NULL);

	if (rc == -ENOMEM || rc == -ENOBUFS)
		fail(c, "no memory for an answer");
}

static void send_byte(struct torch_client *c, uint8_t byte)
{
	send_bytes(c, &byte, sizeof(byte));
}

static int add_value(struct payload_vec *v, struct payload *value)
{
	uint64_t len = value ? value->len : 0;
	struct payload *head = payload_copy(&len, sizeof(len));
	int rc = head ? payload_vec_add(v, head) : -ENOMEM;

	payload_unref(head);
	return rc || !value ? rc : payload_vec_add(v, value);
}

/* Values are not copied. A key that does not exist has an empty one. */
static void send_values(struct torch_client *c, struct payload *const *values, uint32_t n)
{
	struct payload_vec v;
	int rc = 0;

	payload_vec_init(&v);
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = add_value(&v, values[i]);
	rc = rc ? rc : stream_write_vec(c->stream, NULL, &v);
	payload_vec_clear(&v);
	if (rc == -ENOMEM || rc == -ENOBUFS)
		fail(c, "no memory for an answer");
}

static void send_answer(struct torch_client *c, enum tcpstore_op op,
			const struct store_answer *a)
{
	switch (op) {
	case TCPSTORE_GET:
	case TCPSTORE_MULTI_GET:
	case TCPSTORE_COMPARE_SET:
		send_values(c, a->values, a->nvalues);
		break;
	case TCPSTORE_ADD:
	case TCPSTORE_GETNUMKEYS:
	case TCPSTORE_DELETE_KEY:
		send_bytes(c, &a->number, sizeof(a->number));
		break;
	case TCPSTORE_CHECK:
		send_byte(c, !a->number);
		break;
	case TCPSTORE_WAIT:
		send_byte(c, TCPSTORE_STOP_WAITING);
		break;
	default:
		break; /* has no answer */
	}
}

/* Must not call the store: what the client has sent meanwhile is read from the loop. */
static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct torch_client *c = arg;

	if (c->waits)
		c->waits = false;
	else
		c->asked--;
	if (a->status != STORE_OK)
		fail(c, a->text);
	else
		send_answer(c, c->op, a);
	if (!c->asked)
		go_on_later(c);
}

/* ---- queries ---- */

static struct store_bytes item(const struct tcpstore_query *q, uint32_t i)
{
	struct store_bytes b;

	b.data = tcpstore_at(q, i, &b.len);
	return b;
}

static void ask(struct torch_client *c, const struct store_request *rq)
{
	c->token++;
	c->waits = rq->op == STORE_WAIT;
	c->asked += !c->waits;
	store_ask(c->store, c->token, rq);
}

/* A request about one key, with the values of the query. */
static void ask_key(struct torch_client *c, const struct tcpstore_query *q, enum store_op op)
{
	const struct store_bytes key = item(q, 0);
	struct store_request rq = { .op = op, .keys = &key, .nkeys = 1, .number = q->delta };

	if (q->count == 2)
		rq.value = item(q, 1);
	if (q->count == 3) {
		rq.expected = item(q, 1);
		rq.value = item(q, 2);
	}
	ask(c, &rq);
}

static void ask_keys(struct torch_client *c, const struct tcpstore_query *q, enum store_op op)
{
	struct store_bytes *keys = calloc(q->count, sizeof(*keys));
	struct store_request rq = { .op = op, .keys = keys, .nkeys = q->count };

	if (!keys) {
		fail(c, "no memory for the keys of a query");
		return;
	}
	for (uint32_t i = 0; i < q->count; i++)
		keys[i] = item(q, i);
	ask(c, &rq);
	free(keys);
}

static void ask_pairs(struct torch_client *c, const struct tcpstore_query *q)
{
	for (uint32_t i = 0; i + 1 < q->count && !c->why[0]; i += 2) {
		const struct store_bytes key = item(q, i);
		const struct store_request rq = {
			.op = STORE_SET, .keys = &key, .nkeys = 1, .value = item(q, i + 1),
		};

		ask(c, &rq);
	}
}

static void count_keys(struct torch_client *c)
{
	const struct store_request rq = { .op = STORE_COUNT };

	ask(c, &rq);
}

/* The store takes no request without a key; these have their answer. */
static bool answer_empty(struct torch_client *c, const struct tcpstore_query *q)
{
	if (q->count || (q->op != TCPSTORE_CHECK && q->op != TCPSTORE_WAIT &&
			 q->op != TCPSTORE_MULTI_GET))
		return false;
	if (q->op == TCPSTORE_CHECK)
		send_byte(c, 0);
	if (q->op == TCPSTORE_WAIT)
		send_byte(c, TCPSTORE_STOP_WAITING);
	return true;
}

static void carry_out(struct torch_client *c, const struct tcpstore_query *q)
{
	switch (q->op) {
	case TCPSTORE_SET: ask_key(c, q, STORE_SET); break;
	case TCPSTORE_COMPARE_SET: ask_key(c, q, STORE_COMPARE_SET); break;
	case TCPSTORE_GET: ask_key(c, q, STORE_GET); break;
	case TCPSTORE_ADD: ask_key(c, q, STORE_ADD); break;
	case TCPSTORE_DELETE_KEY: ask_key(c, q, STORE_DELETE); break;
	case TCPSTORE_APPEND: ask_key(c, q, STORE_APPEND); break;
	case TCPSTORE_CHECK: ask_keys(c, q, STORE_CHECK); break;
	case TCPSTORE_WAIT: ask_keys(c, q, STORE_WAIT); break;
	case TCPSTORE_MULTI_GET: ask_keys(c, q, STORE_GET); break;
	case TCPSTORE_MULTI_SET: ask_pairs(c, q); break;
	case TCPSTORE_GETNUMKEYS: count_keys(c); break;
	case TCPSTORE_CANCEL_WAIT: send_byte(c, TCPSTORE_WAIT_CANCELED); break;
	case TCPSTORE_PING: send_bytes(c, &q->nonce, sizeof(q->nonce)); break;
	}
}

static void take_query(struct torch_client *c, const struct tcpstore_query *q)
{
	if (c->waits)
		(void)store_cancel(c->store, c->token);
	c->waits = false;
	c->op = q->op;
	if (!answer_empty(c, q))
		carry_out(c, q);
}

static bool may_read(const struct torch_client *c)
{
	return !c->asked && !c->why[0] && stream_queued(c->stream) <= PAUSE_BYTES;
}

/* The client may be gone after it. */
static void go_on(struct torch_client *c)
{
	const struct node *node = c->door->service->node;
	struct tcpstore_query q;
	int rc = 0;

	while (may_read(c) && (rc = tcpstore_next(c->wire, &q)) > 0)
		take_query(c, &q);
	if (rc < 0)
		fail(c, tcpstore_why(c->wire));
	if (!c->why[0])
		return;
	if (c->door->closed++ < LINES_MAX)
		log_error(node->log, "closed a connection to the TCPStore of step %s: %s",
			  c->door->service->step->jobid, c->why);
	drop(c);
}

static void on_soon(uv_timer_t *timer)
{
	struct torch_door *d = timer->data;
	struct torch_client *c;
	char why[NODE_WHY_MAX];

	while ((c = d->due)) {
		forget_due(c);
		go_on(c);
	}
	if (!d->used || !d->failure[0] || d->step_ends)
		return;
	d->step_ends = true;
	store_failure_explain(d->service, d->failure, why);
	control_path_end_waits(d->service, why, d->code);
}

static void look_soon(struct torch_door *d)
{
	uv_timer_start(&d->soon, on_soon, 0, 0);
}

static void go_on_later(struct torch_client *c)
{
	struct torch_door *d = c->door;

	if (c->due)
		return;
	c->due = true;
	c->next_due = d->due;
	d->due = c;
	look_soon(d);
}

/* ---- bytes ---- */

static size_t on_room(void *arg, void **at)
{
	static char nowhere[1];
	struct torch_client *c = arg;
	size_t n = tcpstore_room(c->wire, at);

	if (n)
		return n;
	fail(c, tcpstore_why(c->wire));
	*at = nowhere;
	return sizeof(nowhere);
}

static void on_input(void *arg, size_t len)
{
	struct torch_client *c = arg;

	if (!c->why[0])
		tcpstore_filled(c->wire, len);
	go_on(c);
}

static void on_end(void *arg, int error)
{
	drop(arg);
}

static void on_drained(void *arg)
{
	go_on_later(arg);
}

/* ---- connections ---- */

static void tell_used(struct torch_door *d)
{
	if (d->told_used)
		return;
	d->told_used = true;
	torch_tree_used(d->service);
}

static void admit(struct torch_door *d, int fd)
{
	static const struct stream_limits limits = { .queue = UNREAD_MAX, .pause = PAUSE_BYTES };
	static const struct stream_ops ops = {
		.room = on_room, .input = on_input, .end = on_end, .drained = on_drained,
	};
	static const struct store_client_ops store_ops = { .answer = on_answer };
	struct service *s = d->service;
	struct torch_client *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	tcp_send_at_once(fd);
	tcp_end_without_answer(fd, s->node->options->dead_peer_ms);
	c->door = d;
	c->wire = tcpstore_create(s->step->budget);
	c->store = store_client_open(s->store, STORE_TORCH, &store_ops, c);
	if (!c->wire || !c->store) {
		close(fd);
	} else if (!stream_open(&c->stream, loop_uv(s->node->loop), fd, &limits, &ops, c)) {
		DL_APPEND(d->clients, c);
		d->count++;
		tell_used(d);
		return;
	}
	store_client_close(c->store);
	tcpstore_destroy(c->wire);
	free(c);
}

static void refuse(struct torch_door *d, enum torch_peer peer, const char *name)
{
	if (peer == TORCH_PEER_GONE || d->refused++ >= LINES_MAX)
		return;
	log_error(d->service->node->log,
		  "refused a connection from %s to the TCPStore of step %s: %s", name,
		  d->service->step->jobid, peer == TORCH_PEER_OTHER_USER ?
		  "a process of another user" : "not the address of a node of the step");
}

static void take_in(struct torch_door *d, int fd)
{
	if (d->count < d->most) {
		admit(d, fd);
		return;
	}
	if (!d->full++)
		log_error(d->service->node->log,
			  "the TCPStore of step %s has %u connections, as many as it may have: more are refused",
			  d->service->step->jobid, d->count);
	close(fd);
}

/* Look at all at once. A long look is followed by a rest of LOOK_REST times its length. */
static void look(struct torch_door *d)
{
	int64_t began = clock_ns(CLOCK_MONOTONIC);
	uint32_t n = d->npeers;

	torch_peers_look(d->service->node, d->peers, n);
	d->rest_ms = (uint64_t)(LOOK_REST * (clock_ns(CLOCK_MONOTONIC) - began) / 1000000);
	d->npeers = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct torch_peer_of *p = &d->peers[i];

		if (p->peer == TORCH_PEER_MAY) {
			take_in(d, p->fd);
			continue;
		}
		refuse(d, p->peer, p->name);
		close(p->fd);
	}
}

static void on_look(uv_timer_t *timer)
{
	look(timer->data);
}

static void on_accept(void *arg, int fd)
{
	struct torch_door *d = arg;

	d->peers[d->npeers++].fd = fd;
	if (d->npeers == TORCH_PEERS_MAX)
		look(d);
	else if (d->npeers == 1)
		uv_timer_start(&d->look, on_look, d->rest_ms, 0);
}

/* ---- ranks ---- */

/* May be called by the store. */
void torch_door_rank_failed(struct service *s, const char *why, int code)
{
	struct torch_door *d = s->torch;

	if (!d || !d->listener || d->failure[0])
		return;
	d->code = code;
	snprintf(d->failure, sizeof(d->failure), "%s", why);
	look_soon(d);
}

/* May be called by the store. */
void torch_door_used(struct service *s)
{
	struct torch_door *d = s->torch;

	if (!d || !d->listener)
		return;
	d->used = true;
	look_soon(d);
}

void torch_door_rank_ended(struct service *s, uint32_t rank, const struct pmi_exit *end)
{
	const struct agent_options *o = s->node->options;
	char how[CAUSE_MAX], why[NODE_WHY_MAX];

	if (!o->torch || !o->end_on_failure || !end || !end->status || end->by_launcher)
		return;
	cause_text(end, how);
	snprintf(why, sizeof(why),
		 "rank %u (node %.64s) %s, and other ranks use the TCPStore of PMI2X_TORCH",
		 rank, node_own_name(s->node), how);
	torch_tree_rank_failed(s, why, cause_exit_code(how));
}

/* ---- for people ---- */

uint16_t torch_door_port(const struct service *s)
{
	return s->torch->listener ? s->torch->port : 0;
}

bool torch_door_origin(const void *client, uint32_t *position, uint16_t *port)
{
	const struct torch_client *c = client;

	return torch_peers_origin(c->door->service->node, stream_fd(c->stream), position, port);
}

/* ---- life ---- */

int torch_door_open(struct service *s)
{
	struct torch_door *d;
	int rc, fd = s->torch_fd;

	if (fd < 0)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	s->torch = d;
	s->torch_fd = -1;
	d->service = s;
	d->most = fd_at_most_half(CLIENTS_MAX);
	d->port = torch_peers_port(fd);
	rc = uv_timer_init(loop_uv(s->node->loop), &d->soon);
	d->soon.data = d;
	if (!rc)
		rc = uv_timer_init(loop_uv(s->node->loop), &d->look);
	d->look.data = d;
	if (!rc)
		return listener_open(&d->listener, loop_uv(s->node->loop), fd, on_accept, d);
	close(fd);
	return rc;
}

static void tell_rest(const struct torch_door *d, const char *what, uint32_t count)
{
	if (count > LINES_MAX)
		log_info(d->service->node->log, "%s %u more connections to the TCPStore of step %s",
			 what, count - LINES_MAX, d->service->step->jobid);
}

void torch_door_close(struct service *s)
{
	struct torch_door *d = s->torch;

	if (!d)
		return;
	while (d->clients)
		drop(d->clients);
	listener_close(d->listener);
	d->listener = NULL;
	while (d->npeers)
		close(d->peers[--d->npeers].fd);
	node_close_handle(&d->soon);
	node_close_handle(&d->look);
	tell_rest(d, "refused", d->refused);
	tell_rest(d, "closed", d->closed);
	d->refused = d->closed = 0;
}

void torch_door_free(struct service *s)
{
	free(s->torch);
}
