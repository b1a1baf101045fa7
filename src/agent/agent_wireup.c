/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making the links between neighbours.
 *
 * Each side listens from the start and tries once when its first rank starts
 * PMI, so the later one finds the earlier listening. What is refused then is
 * tried again by the child; the parent looks now and then, and gives up a child
 * that has left, or was never launched, much later. When nobody answers, or somebody else
 * does, the neighbour is told through the site's authenticated path where to
 * connect to; both sides may, since two connections do no harm:
 *
 *   the lower position (the parent) says CHOSEN on the first one that is proved
 *   and drops the others; the child answers TAKEN. Each side uses the link
 *   from then on, the child first.
 *
 * Ports: a node listens at the first free one of STEP_PORT_TRIES that
 * follow from the port seed and its position; a child that is refused tries
 * them in turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"

static void on_timer(uv_timer_t *timer);
static void on_accept(void *agent, int fd);

/* ---- ports ---- */

static uint16_t port_of(const struct agent *a, uint32_t position, unsigned try)
{
	return step_port(&a->options, a->step->layout, position, try);
}

int agent_wireup_open(struct agent *a)
{
	int fd;

	for (uint32_t i = 0; i < a->links->count; i++) {
		struct neighbour *n = &a->links->all[i];
		int rc = uv_timer_init(loop_uv(a->loop), &n->timer);

		if (rc)
			return rc;
		n->timer.data = n;
	}
	fd = a->fds.listener;
	if (fd < 0)
		return 0;
	a->fds.listener = -1;
	return listener_open(&a->links->listener, loop_uv(a->loop), fd,
			     on_accept, a);
}

/* The even tries go where the node ought to be, the odd ones look around. */
static uint16_t next_port(const struct neighbour *n)
{
	const struct agent *a = n->agent;

	if (n->tries % 2 == 0 && n->told_port)
		return n->told_port;
	if (a->options.port_first == 0 || a->options.addresses_told)
		return n->told_port;
	if (n->tries % 2 == 0)
		return port_of(a, n->position, 0);
	return port_of(a, n->position,
		       1 + n->tries / 2 % (STEP_PORT_TRIES - 1));
}

/* ---- attempts ---- */

static void set_timer(struct neighbour *n, uint64_t ms)
{
	uv_timer_start(&n->timer, on_timer, ms, 0);
}

void agent_wireup_stop(struct neighbour *n)
{
	struct conn *c = n->agent->links->first, *next;

	uv_timer_stop(&n->timer);
	n->attempt = NULL;
	for (; c; c = next) {
		next = c->next;
		if (c->neighbour == n && c != n->chosen)
			agent_conn_drop(c);
	}
}

static uint64_t waited_ms(const struct neighbour *n)
{
	return uv_now(loop_uv(n->agent->loop)) - n->since;
}

/* The lower position; it says CHOSEN. */
static bool chooses(const struct neighbour *n)
{
	return n->position > n->agent->step->position;
}

static bool nobody_answers(int error)
{
	return error == -ETIMEDOUT || error == -EHOSTUNREACH ||
	       error == -ENETUNREACH;
}

static uint64_t patience_ms(const struct neighbour *n)
{
	uint64_t ms = n->agent->options.connect_ms;

	if (n->is_parent || nobody_answers(n->last_error))
		return ms;
	return ms * AGENT_CHILD_PATIENCE;
}

/* Slurm's path needs the address, too. */
static void tell(struct neighbour *n)
{
	if (n->told || n->looking || n->lookup_error)
		return;
	n->told = true;
	agent_tell_neighbour(n->agent, n->position, false);
}

static void give_up_unknown(struct neighbour *n)
{
	const struct agent *a = n->agent;
	char why[AGENT_WHY_MAX];

	snprintf(why, sizeof(why),
		 "node %s cannot look up the address of node %s (%s within %u s): mend the resolver there, or give an IP address as NodeAddr in slurm.conf",
		 agent_node_name(a, a->step->position),
		 agent_node_name(a, n->position),
		 n->looking ? "no answer" : "not found",
		 (unsigned)(patience_ms(n) / 1000));
	agent_neighbour_lost(n, why);
}

static void give_up_untold(struct neighbour *n)
{
	const struct agent *a = n->agent;
	char why[AGENT_WHY_MAX];

	snprintf(why, sizeof(why),
		 "node %s has not told node %s within %u s where it listens (Pmi2xNetwork): see the logs of slurmd there, unless its ranks ended without PMI",
		 agent_node_name(a, n->position),
		 agent_node_name(a, a->step->position),
		 (unsigned)(patience_ms(n) / 1000));
	agent_neighbour_lost(n, why);
}

static void give_up(struct neighbour *n)
{
	const struct agent *a = n->agent;
	char why[AGENT_WHY_MAX];

	if (n->looking || n->lookup_error) {
		give_up_unknown(n);
		return;
	}
	if (a->options.addresses_told && !n->told_port) {
		give_up_untold(n);
		return;
	}
	snprintf(why, sizeof(why),
		 "cannot reach node %s (port %u) within %u s: %s; %sopen ports %u-%u between the nodes (Pmi2xPorts)",
		 agent_node_name(a, n->position), n->port,
		 (unsigned)(patience_ms(n) / 1000),
		 link_strerror(n->last_error),
		 n->last_error == -ECONNREFUSED ?
			 "unless its ranks ended without PMI, " : "",
		 a->options.port_first, a->options.port_last);
	agent_neighbour_lost(n, why);
}

static bool somebody_else_answers(int error)
{
	return error == -EACCES || error == -EPROTO ||
	       error == -EADDRNOTAVAIL || error == -ENOPROTOOPT ||
	       error == -ECONNRESET;
}

/*
 * An attempt has failed. A refusal is what an early child sees, or an early
 * parent: the parent then leaves most to its child.
 */
static void attempt_failed(struct neighbour *n, int error)
{
	const struct agent *a = n->agent;

	if (n->state != NEIGHBOUR_WAITING || !n->started)
		return;
	n->last_error = error;
	agent_missing_tried(n, error);
	if (n->state != NEIGHBOUR_WAITING)
		return;
	agent_links_lack(n->agent, "cannot connect to another node", error);
	if (nobody_answers(error) || somebody_else_answers(error) ||
	    waited_ms(n) > a->options.connect_ms / 2)
		tell(n);
	if (n->absence == ABSENCE_UNHEARD) {
		set_timer(n, 0);
	} else if (n->is_parent) {
		set_timer(n, n->backoff_ms);
		n->backoff_ms *= 2;
		if (n->backoff_ms > AGENT_BACKOFF_MAX_MS)
			n->backoff_ms = AGENT_BACKOFF_MAX_MS;
	} else if (nobody_answers(error)) {
		set_timer(n, a->options.connect_ms);
	} else if (a->options.port_first) { /* else it has been told */
		set_timer(n, AGENT_BACKOFF_MAX_MS);
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
	struct agent *a = n->agent;
	struct conn *c;
	int rc;

	set_port(&n->addr, n->port);
	c = agent_conn_new(a, n);
	if (!c)
		return -ENOMEM;
	rc = link_connect(&c->link, loop_uv(a->loop), &a->self, n->position,
			  &n->addr, &a->link_options, agent_conn_ops(), c);
	if (rc) {
		agent_conn_drop(c);
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
	set_timer(n, waited < limit ? limit - waited : 0);
}

static void connect_when_known(struct neighbour *n)
{
	int rc = agent_lookup(n);

	if (rc == -EINPROGRESS) {
		await_address(n);
		return;
	}
	rc = rc ? rc : connect_to(n);
	if (rc)
		attempt_failed(n, rc);
	else
		set_timer(n, n->agent->options.tell_after_ms);
}

static void attempt(struct neighbour *n, uint16_t port)
{
	if (n->attempt)
		agent_conn_drop(n->attempt);
	n->tries++;
	n->port = port;
	if (!port) { /* it listens we know not where; it will be told */
		attempt_failed(n, -EADDRNOTAVAIL);
		return;
	}
	connect_when_known(n);
}

/* Is a connection with it proved, and just waits to be chosen or taken? */
static bool is_settling(const struct neighbour *n)
{
	const struct conn *c = n->agent->links->first;

	for (; c; c = c->next) {
		if (c->neighbour == n && c != n->attempt)
			return true;
	}
	return false;
}

void agent_wireup_found(struct neighbour *n)
{
	if (n->state == NEIGHBOUR_WAITING && !n->attempt && !is_settling(n))
		connect_when_known(n);
}

bool agent_wireup_tried(const struct neighbour *n)
{
	return n->started || is_settling(n);
}

static void cannot_send(struct neighbour *n)
{
	char why[AGENT_WHY_MAX];

	snprintf(why, sizeof(why), "cannot send to node %s: %s",
		 agent_node_name(n->agent, n->position),
		 strerror(-n->send_error));
	agent_neighbour_lost(n, why);
}

void agent_wireup_send_failed(struct neighbour *n, int error)
{
	n->send_error = error;
	set_timer(n, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct neighbour *n = timer->data;

	if (n->send_error) {
		cannot_send(n);
	} else if (n->attempt) {
		tell(n); /* no answer yet; the attempt goes on */
	} else if (waited_ms(n) >= patience_ms(n)) {
		give_up(n);
	} else if (is_settling(n)) {
		set_timer(n, AGENT_BACKOFF_MAX_MS);
	} else if (n->looking) {
		await_address(n);
	} else {
		attempt(n, next_port(n));
	}
}

static void begin_attempts(struct neighbour *n)
{
	n->started = true;
	n->since = n->looked = uv_now(loop_uv(n->agent->loop));
	n->backoff_ms = AGENT_BACKOFF_FIRST_MS;
}

void agent_wireup_start(struct neighbour *n)
{
	if (n->started || n->state != NEIGHBOUR_WAITING)
		return;
	begin_attempts(n);
	/* Not at once: we may be inside a call of the engine. */
	set_timer(n, is_settling(n) ? AGENT_BACKOFF_MAX_MS : 0);
}

void agent_wireup_begin(struct agent *a)
{
	for (uint32_t i = 0; i < a->links->count; i++)
		agent_wireup_start(&a->links->all[i]);
}

/* An address counts only where the site wants it told: it makes us connect there. */
static bool takes_address(struct neighbour *n, const struct whereabouts *w)
{
	if (!n->agent->options.addresses_told)
		return true;
	if (w->addr.ss_family != n->agent->options.bind.ss_family)
		return false;
	n->addr = w->addr;
	n->has_addr = true;
	return true;
}

void agent_wireup_told(struct agent *a, const struct whereabouts *w)
{
	struct neighbour *n = agent_neighbour(a, w->from);
	uint16_t port = w->port;

	if (!n || n->state != NEIGHBOUR_WAITING || is_settling(n))
		return;
	if (!takes_address(n, w))
		return;
	n->told_port = port;
	if ((n->attempt || n->looking) && n->port == port)
		return;
	if (!n->started)
		begin_attempts(n);
	attempt(n, port);
}

void agent_wireup_again(struct neighbour *n)
{
	if (!n->attempt)
		set_timer(n, 0);
}

/* ---- connections under way ---- */

bool agent_wireup_drop_oldest(struct agent *a)
{
	struct conn *c = a->links->first;

	while (c && c->neighbour)
		c = c->next;
	if (!c)
		return false;
	refusals_add(&a->refused, link_source(c->link), -ENOBUFS);
	agent_conn_drop(c);
	return true;
}

static void on_accept(void *agent, int fd)
{
	struct agent *a = agent;
	struct conn *c;

	if (a->links->unproved >= AGENT_UNPROVED_MAX)
		agent_wireup_drop_oldest(a);
	c = agent_conn_new(a, NULL);
	if (!c) {
		close(fd);
		return;
	}
	if (link_accept(&c->link, loop_uv(a->loop), &a->self, fd,
			&a->link_options, agent_conn_ops(), c))
		agent_conn_drop(c);
}

/* Whose connection it is, known by its proof. */
static void assign(struct conn *c, struct neighbour *n)
{
	c->neighbour = n;
	c->agent->links->unproved--;
}

void agent_wireup_proved(struct conn *c)
{
	struct agent *a = c->agent;
	struct neighbour *n = c->neighbour;

	if (!n) {
		n = agent_neighbour(a, link_peer(c->link)->position);
		if (!n) {
			agent_conn_drop(c);
			return;
		}
		assign(c, n);
	}
	if (n->attempt == c)
		n->attempt = NULL;
	if (n->state != NEIGHBOUR_WAITING ||
	    (n->chosen && chooses(n))) {
		agent_conn_drop(c);
		return;
	}
	if (n->started) /* who proves himself may say nothing more */
		set_timer(n, AGENT_BACKOFF_MAX_MS);
	if (!chooses(n))
		return; /* it will choose */
	n->chosen = c;
	if (link_send(c->link, FRAME_CHOSEN, NULL))
		agent_conn_drop(c);
}

int agent_wireup_frame(struct conn *c, enum frame_type type)
{
	struct neighbour *n = c->neighbour;

	if (!n || n->state != NEIGHBOUR_WAITING)
		return -EPROTO;
	if (!chooses(n) && type == FRAME_CHOSEN) {
		n->chosen = c;
		link_send(c->link, FRAME_TAKEN, NULL);
		agent_neighbour_up(n, c);
		return 0;
	}
	if (chooses(n) && type == FRAME_TAKEN && n->chosen == c) {
		agent_neighbour_up(n, c);
		return 0;
	}
	return -EPROTO;
}

void agent_wireup_met(struct agent *a, const char *who, const struct link *l)
{
	const struct handshake_peer *peer = link_peer(l);

	if (a->met_other_build || !handshake_other_build(peer, &a->self))
		return;
	a->met_other_build = true;
	log_debug(a->log, "%s runs build %s, node %s build %s; both speak protocol %u",
		  who, peer->build, agent_node_name(a, a->step->position),
		  a->self.build, peer->protocol);
}

/* The peer is proved to belong to the step, so its word on this counts. */
static void protocols_differ(struct agent *a,
			     const struct handshake_peer *peer)
{
	struct neighbour *n = agent_neighbour(a, peer->position);
	char them[80], us[80], why[AGENT_WHY_MAX];

	snprintf(them, sizeof(them), "node %.64s",
		 peer->position < layout_nodes(a->step->layout) ?
			 agent_node_name(a, peer->position) : "?");
	snprintf(us, sizeof(us), "node %.64s",
		 agent_node_name(a, a->step->position));
	handshake_explain(why, sizeof(why), them, peer, us, &a->self);
	log_info(a->log, "%s", why); /* the user learns of it by what fails */
	if (n && n->state == NEIGHBOUR_WAITING)
		agent_neighbour_lost(n, why);
}

void agent_wireup_ended(struct conn *c, int error)
{
	struct agent *a = c->agent;
	struct neighbour *n = c->neighbour;
	struct handshake_peer peer = *link_peer(c->link);
	bool ours = n && n->attempt == c;
	bool settled = link_is_proved(c->link);

	if (!n)
		refusals_add(&a->refused, link_source(c->link), error);
	agent_conn_drop(c);
	if (error == -EPROTONOSUPPORT) {
		protocols_differ(a, &peer);
		return;
	}
	if (ours)
		attempt_failed(n, error);
	else if (settled && n && !is_settling(n) && !n->attempt)
		attempt_failed(n, -ECONNABORTED); /* try again, tell nobody */
}
