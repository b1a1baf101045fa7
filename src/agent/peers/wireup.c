/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making the links between neighbours.
 *
 * Each side listens from the start and tries once when its first rank starts
 * PMI, so the later one finds the earlier listening. The child tries again after a
 * refusal; the parent looks now and then, and gives up a child that has left, or was
 * never launched, much later. When nobody answers, or somebody else does, the neighbour
 * is told through the site's authenticated path where to connect to; both sides may,
 * since two connections do no harm:
 *
 *   the lower position (the parent) says CHOSEN on the first one that is proved
 *   and drops the others; the child answers TAKEN. Each side uses the link
 *   from then on, the child first.
 *
 * Both say with that what all nodes must have set alike (settings.h). A proved peer that
 * is no neighbour has another tree: it is told so, and fails with an error that names it.
 *
 * Ports: a node listens at the first free one of STEP_PORT_TRIES that
 * follow from the port seed and its position; a child that is refused tries
 * them in turn.
 */
#include "agent/peers/wireup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/peers/connect_back.h"
#include "agent/peers/lookup.h"
#include "agent/peers/missing.h"
#include "agent/peers/settings.h"
#include "libcoll/layout.h"

#define UNPROVED_MAX 256 /* inbound; over it the oldest is dropped */
#define BACKOFF_FIRST_MS 50
#define BACKOFF_MAX_MS 1000
#define CHILD_PATIENCE 5 /* times connect_ms: it may be launched late */
#define LACK_MS 5000     /* without a descriptor for a link; then an end */

/* ---- ports ---- */

static uint16_t port_of(const struct neighbour *n, unsigned try)
{
	const struct node *node = n->peers->node;

	return step_port(node->options, node->layout, n->position, try);
}

/* The even tries go where the node ought to be, the odd ones look around. */
static uint16_t next_port(const struct neighbour *n)
{
	const struct node *node = n->peers->node;

	if (n->tries % 2 == 0 && n->named_port)
		return n->named_port;
	if (node->options->port_first == 0 || node->options->addresses_told)
		return n->named_port;
	if (n->tries % 2 == 0)
		return port_of(n, 0);
	return port_of(n, 1 + n->tries / 2 % (STEP_PORT_TRIES - 1));
}

/* ---- attempts ---- */

static uint64_t waited_ms(const struct neighbour *n)
{
	return node_now(n->peers->node) - n->since;
}

/* The lower position; it says CHOSEN. */
static bool chooses(const struct neighbour *n)
{
	return n->position > n->peers->node->self.position;
}

static bool nobody_answers(int error)
{
	return error == -ETIMEDOUT || error == -EHOSTUNREACH ||
	       error == -ENETUNREACH;
}

static uint64_t patience_ms(const struct neighbour *n)
{
	uint64_t ms = n->peers->node->options->connect_ms;

	if (n->is_parent || nobody_answers(n->last_error))
		return ms;
	return ms * CHILD_PATIENCE;
}

/* Slurm's path needs the address, too. */
static void call(struct neighbour *n)
{
	if (n->called || n->looking || n->lookup_error)
		return;
	n->called = true;
	connect_back_call(n);
}

void wireup_explain(const struct neighbour *n, char *out, size_t size)
{
	char told[NODE_WHY_MAX];

	out[0] = '\0';
	if (!n->last_error)
		return;
	connect_back_explain(n, told, sizeof(told));
	snprintf(out, size, " (port %u): %s%s", n->port,
		 link_strerror(n->last_error), told);
}

static void untold(struct neighbour *n, unsigned seconds)
{
	char told[NODE_WHY_MAX];

	connect_back_explain(n, told, sizeof(told));
	neighbour_lost(n, "node %s did not send its address to node %s within %u s (Pmi2xNetwork)%s",
		       neighbour_name(n), node_own_name(n->peers->node), seconds,
		       told[0] ? told : ": see the logs of slurmd there, unless its ranks ended without PMI");
}

/* True: other nodes need a message of this node to find its port. */
static bool listens_elsewhere(const struct node *node)
{
	unsigned try = 0;

	if (!node->port || !node->options->port_first)
		return false;
	while (try < STEP_PORT_TRIES &&
	       step_port(node->options, node->layout, node->self.position, try) !=
		       node->port)
		try++;
	return try == STEP_PORT_TRIES;
}

static void unreached(struct neighbour *n, unsigned seconds)
{
	const struct node *node = n->peers->node;
	char told[NODE_WHY_MAX], ports[128] = "", taken[160] = "";

	connect_back_explain(n, told, sizeof(told));
	if (told[0] && listens_elsewhere(node))
		snprintf(taken, sizeof(taken),
			 "; node %.64s listens on port %u, because the expected ports are in use",
			 node_own_name(node), node->port);
	if (!told[0] || nobody_answers(n->last_error))
		snprintf(ports, sizeof(ports),
			 "; %sopen ports %u-%u between the nodes (Pmi2xPorts)",
			 n->last_error == -ECONNREFUSED ?
				 "unless its ranks ended without PMI, " : "",
			 node->options->port_first, node->options->port_last);
	neighbour_lost(n, "cannot reach node %s (port %u) within %u s: %s%s%s%s",
		       neighbour_name(n), n->port, seconds,
		       link_strerror(n->last_error), ports, told, taken);
}

static void give_up(struct neighbour *n)
{
	const struct node *node = n->peers->node;
	const char *own = node_own_name(node), *name = neighbour_name(n);
	unsigned seconds = (unsigned)(patience_ms(n) / 1000);

	if (n->looking || n->lookup_error)
		neighbour_lost(n, "node %s cannot look up the address of node %s (%s within %u s): fix the resolver there, or give an IP address as NodeAddr in slurm.conf",
			       own, name,
			       n->looking ? "no answer" : "not found", seconds);
	else if (node->options->addresses_told && !n->named_port)
		untold(n, seconds);
	else
		unreached(n, seconds);
}

static bool somebody_else_answers(int error)
{
	return error == -EACCES || error == -EPROTO ||
	       error == -EADDRNOTAVAIL || error == -ENOPROTOOPT ||
	       error == -ECONNRESET;
}

/*
 * A link could not be begun for this reason. When it is want of descriptors, and
 * stays so for LACK_MS, the step is given up. `what`: see node_give_up.
 */
static void lack(struct peers *p, const char *what, int error)
{
	uint64_t now = node_now(p->node);

	if (error != -EMFILE && error != -ENFILE)
		return;
	if (!p->lack_since || now - p->lack_last > 2 * BACKOFF_MAX_MS)
		p->lack_since = now; /* it was not so in between */
	p->lack_last = now;
	if (now - p->lack_since >= LACK_MS)
		node_give_up(p->node, what, error);
}

/*
 * An attempt has failed. A refusal is what an early child sees, or an early
 * parent: the parent then leaves most to its child.
 */
static void attempt_failed(struct neighbour *n, int error)
{
	const struct node *node = n->peers->node;

	if (n->state != NEIGHBOUR_WAITING || !n->started)
		return;
	n->last_error = error;
	missing_tried(n, error);
	if (n->state != NEIGHBOUR_WAITING)
		return;
	lack(n->peers, "cannot connect to another node", error);
	if (nobody_answers(error) || somebody_else_answers(error) ||
	    waited_ms(n) > node->options->connect_ms / 2)
		call(n);
	if (n->absence == ABSENCE_UNHEARD) {
		neighbour_set_timer(n, 0);
	} else if (n->is_parent) {
		neighbour_set_timer(n, n->backoff_ms);
		n->backoff_ms *= 2;
		if (n->backoff_ms > BACKOFF_MAX_MS)
			n->backoff_ms = BACKOFF_MAX_MS;
	} else if (nobody_answers(error)) {
		neighbour_set_timer(n, node->options->connect_ms);
	} else if (node->options->port_first) { /* else the port was sent */
		neighbour_set_timer(n, BACKOFF_MAX_MS);
	}
}

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

static int connect_to(struct neighbour *n)
{
	struct peers *p = n->peers;
	const struct node *node = p->node;
	struct conn *c;
	int rc;

	set_port(&n->addr, n->port);
	c = conn_new(p, n);
	if (!c)
		return -ENOMEM;
	rc = link_connect(&c->link, loop_uv(node->loop), &node->self,
			  n->position, &n->addr, &node->link_options,
			  p->conn_ops, c);
	if (rc) {
		conn_drop(c);
		return rc;
	}
	n->attempt = c;
	return 0;
}

/* Nobody answers while nobody knows where it is. */
static void await_address(struct neighbour *n)
{
	uint64_t waited = waited_ms(n), limit;

	n->last_error = -EHOSTUNREACH;
	limit = patience_ms(n);
	neighbour_set_timer(n, waited < limit ? limit - waited : 0);
}

static void connect_when_known(struct neighbour *n)
{
	int rc = lookup_address(n);

	if (rc == -EINPROGRESS) {
		await_address(n);
		return;
	}
	rc = rc ? rc : connect_to(n);
	if (rc)
		attempt_failed(n, rc);
	else
		neighbour_set_timer(n, n->peers->node->options->connect_back_ms);
}

static void attempt(struct neighbour *n, uint16_t port)
{
	if (n->attempt)
		conn_drop(n->attempt);
	n->tries++;
	n->port = port;
	if (!port) { /* its port is unknown: the neighbour will send it */
		attempt_failed(n, -EADDRNOTAVAIL);
		return;
	}
	connect_when_known(n);
}

/* True: a connection with the neighbour is proved, and waits to be chosen or accepted. */
static bool is_settling(const struct neighbour *n)
{
	const struct conn *c = n->peers->conns;

	for (; c; c = c->next) {
		if (c->neighbour == n && c != n->attempt)
			return true;
	}
	return false;
}

void wireup_found(struct neighbour *n)
{
	if (n->state == NEIGHBOUR_WAITING && !n->attempt && !is_settling(n))
		connect_when_known(n);
}

bool wireup_tried(const struct neighbour *n)
{
	return n->started || is_settling(n);
}

static void on_timer(uv_timer_t *timer)
{
	struct neighbour *n = timer->data;

	if (n->send_error) {
		neighbour_lost(n, "cannot send to node %s: %s",
			       neighbour_name(n), strerror(-n->send_error));
	} else if (n->peers->node->host->send) {
		/* A neighbour that waits for this node must hear when the node has left, or will. */
		neighbour_send_bytes(n, FRAME_CHOSEN, NULL, 0);
		neighbour_up(n, NULL);
	} else if (n->attempt) {
		call(n); /* no answer yet; the attempt goes on */
	} else if (waited_ms(n) >= patience_ms(n)) {
		give_up(n);
	} else if (is_settling(n)) {
		neighbour_set_timer(n, BACKOFF_MAX_MS);
	} else if (n->looking) {
		await_address(n);
	} else {
		attempt(n, next_port(n));
	}
}

static void begin_attempts(struct neighbour *n)
{
	n->started = true;
	n->since = n->looked = node_now(n->peers->node);
	n->backoff_ms = BACKOFF_FIRST_MS;
}

void wireup_start(struct neighbour *n)
{
	if (n->started || n->state != NEIGHBOUR_WAITING)
		return;
	begin_attempts(n);
	/* Not at once: we may be inside a call of the engine. */
	neighbour_set_timer(n, is_settling(n) ? BACKOFF_MAX_MS : 0);
}

/* An address counts only where the site wants it told: it makes us connect there. */
static bool takes_address(struct neighbour *n, const struct whereabouts *w)
{
	if (!n->peers->node->options->addresses_told)
		return true;
	if (w->addr.ss_family != n->peers->node->options->bind.ss_family)
		return false;
	n->addr = w->addr;
	n->has_addr = true;
	return true;
}

void wireup_called(struct peers *p, const struct whereabouts *w)
{
	struct neighbour *n = neighbour_find(p, w->from);
	uint16_t port = w->port;

	if (!n || n->state != NEIGHBOUR_WAITING || is_settling(n))
		return;
	if (!takes_address(n, w))
		return;
	n->named_port = port;
	if ((n->attempt || n->looking) && n->port == port)
		return;
	if (!n->started)
		begin_attempts(n);
	attempt(n, port);
}

/* ---- connections under way ---- */

static void on_accept(void *arg, int fd)
{
	struct peers *p = arg;
	const struct node *node = p->node;
	struct conn *c;

	c = conn_new(p, NULL);
	if (!c) {
		close(fd);
		return;
	}
	if (link_accept(&c->link, loop_uv(node->loop), &node->self, fd,
			&node->link_options, p->conn_ops, c))
		conn_drop(c);
}

/* The proof tells which neighbour has this connection. */
static void assign(struct conn *c, struct neighbour *n)
{
	c->neighbour = n;
	strangers_leave(&c->peers->strangers, &c->stranger);
}

void wireup_proved(struct conn *c)
{
	struct neighbour *n = c->neighbour;

	if (!n) {
		n = neighbour_find(c->peers, link_peer(c->link)->position);
		if (!n) {
			settings_send(c, FRAME_APART);
			link_finish(c->link);
			return;
		}
		assign(c, n);
	}
	if (n->attempt == c)
		n->attempt = NULL;
	if (n->state != NEIGHBOUR_WAITING ||
	    (n->chosen && chooses(n))) {
		conn_drop(c);
		return;
	}
	if (n->started) /* a proved peer sends nothing before START */
		neighbour_set_timer(n, BACKOFF_MAX_MS);
	if (!chooses(n))
		return; /* the other side chooses */
	n->chosen = c;
	if (settings_send(c, FRAME_CHOSEN))
		conn_drop(c);
}

int wireup_frame(struct conn *c, enum frame_type type,
		 const struct payload *body)
{
	struct neighbour *n = c->neighbour;

	if (!n || n->state != NEIGHBOUR_WAITING)
		return -EPROTO;
	if (type == FRAME_APART)
		return settings_apart(n, body);
	if (settings_compare(n, body))
		return -EPROTO;
	if (!chooses(n) && type == FRAME_CHOSEN) {
		n->chosen = c;
		settings_send(c, FRAME_TAKEN);
		neighbour_up(n, c);
		return 0;
	}
	if (chooses(n) && type == FRAME_TAKEN && n->chosen == c) {
		neighbour_up(n, c);
		return 0;
	}
	return -EPROTO;
}

/* The peer is proved to belong to the step, so its word on this counts. */
static void protocols_differ(struct peers *p, const struct handshake_peer *peer)
{
	const struct node *node = p->node;
	struct neighbour *n = neighbour_find(p, peer->position);
	char them[80], us[80], why[NODE_WHY_MAX];

	snprintf(them, sizeof(them), "node %.64s",
		 peer->position < layout_nodes(node->layout) ?
			 node_name(node, peer->position) : "?");
	snprintf(us, sizeof(us), "node %.64s", node_own_name(node));
	handshake_explain(why, sizeof(why), them, peer, us, &node->self);
	log_info(node->log, "%s", why); /* the user learns of it by what fails */
	if (n && n->state == NEIGHBOUR_WAITING)
		neighbour_lost(n, "%s", why);
}

void wireup_ended(struct conn *c, int error)
{
	struct peers *p = c->peers;
	struct neighbour *n = c->neighbour;
	struct handshake_peer peer = *link_peer(c->link);
	bool ours = n && n->attempt == c;
	bool settled = link_is_proved(c->link);

	if (!settled)
		strangers_ended(&p->strangers, &c->stranger, error);
	conn_drop(c);
	if (error == -EPROTONOSUPPORT) {
		protocols_differ(p, &peer);
		return;
	}
	if (ours)
		attempt_failed(n, error);
	else if (settled && n && !is_settling(n) && !n->attempt)
		attempt_failed(n, -ECONNABORTED); /* try again, call nobody */
}

/* ---- life ---- */

static bool waits_for_link(const struct peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		const struct neighbour *n = &p->all[i];

		if (n->state == NEIGHBOUR_WAITING && wireup_tried(n))
			return true;
	}
	return false;
}

/*
 * Nobody can be let in. Strangers who hold what is lacking go first, and those
 * who come when all links are up do no harm outside.
 */
static void on_starved(void *arg, int error)
{
	struct peers *p = arg;

	if (!strangers_drop_oldest(&p->strangers) && waits_for_link(p))
		lack(p, "cannot accept a connection of another node", error);
}

static void drop_stranger(void *owner)
{
	conn_drop(owner);
}

int wireup_open(struct peers *p, int listener)
{
	int rc;

	p->on_timer = on_timer;
	strangers_init(&p->strangers, UNPROVED_MAX, drop_stranger, p->node->log);
	if (listener < 0)
		return 0;
	rc = listener_open(&p->listener, loop_uv(p->node->loop), listener,
			   on_accept, p);
	if (!rc)
		listener_on_starved(p->listener, on_starved);
	return rc;
}
