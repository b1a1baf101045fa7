/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP transport. Each element listens, and connects to its right neighbour;
 * the left one connects to it. The connecting side sends the number that the other gave
 * over PMI, and gets back its own: a stranger knows neither. See tcp_greet.c.
 */
#include "transport.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_address.h"
#include "tcp_greet.h"
#include "tcp_link.h"

#define POLL_MAX (1 + TCP_CALLERS_MAX + 2) /* listener, callers, sides */

struct transport {
	struct transport_events events;
	struct tcp_address address;
	struct tcp_greet greet;       /* connections that are being made */
	struct tcp_link links[SIDES];
};

/* ---- open and close ---- */

static void tcp_close(struct transport *t)
{
	if (!t)
		return;
	tcp_greet_close(&t->greet);
	for (int side = 0; side < SIDES; side++)
		tcp_link_free(&t->links[side]);
	free(t);
}

static int tcp_open(struct transport **out,
		    const struct transport_params *params, char *why)
{
	struct transport *t = calloc(1, sizeof(*t));
	uint16_t port;
	int rc = -ENOMEM;

	snprintf(why, TRANSPORT_REASON_MAX, "no memory");
	if (!t)
		return -ENOMEM;
	t->events = params->events;
	tcp_greet_init(&t->greet, params->nonce);
	for (int side = 0; side < SIDES; side++)
		t->links[side].fd = -1;
	for (int side = 0; side < SIDES; side++) {
		rc = tcp_link_init(&t->links[side]);
		if (rc)
			goto fail;
	}
	rc = tcp_greet_listen(&t->greet, &port, why);
	if (!rc)
		rc = tcp_address_local(&t->address, port, why);
	if (rc)
		goto fail;
	*out = t;
	return 0;
fail:
	tcp_close(t);
	return rc;
}

static void tcp_address(const struct transport *t, char *out)
{
	tcp_address_print(&t->address, out);
}

/* ---- connecting ---- */

static int tcp_connect(struct transport *t, enum ring_side side,
		       const struct transport_peer *peer, char *why)
{
	struct tcp_address address;

	if (tcp_address_parse(&address, peer->address)) {
		snprintf(why, TRANSPORT_REASON_MAX,
			 "not an address of the TCP transport: \"%.64s\"",
			 peer->address);
		return -EINVAL;
	}
	if (side == SIDE_LEFT)
		tcp_greet_expect(&t->greet, peer->nonce);
	else
		tcp_greet_call(&t->greet, &address, peer->nonce);
	return 0;
}

static bool tcp_connected(const struct transport *t, enum ring_side side)
{
	return t->links[side].fd >= 0;
}

static int take_connections(struct transport *t)
{
	int count = 0;

	for (int side = 0; side < SIDES; side++) {
		int fd = tcp_greet_progress(&t->greet, side);

		if (fd >= 0)
			tcp_link_start(&t->links[side], fd);
		else if (fd != -EAGAIN)
			delivery_end(&t->links[side].to_owner, "%s",
				     t->greet.why);
		count += fd != -EAGAIN;
	}
	return count;
}

/* ---- messages ---- */

static int tcp_send(struct transport *t, enum ring_side side,
		    const struct iovec *iov, int n, bool last)
{
	return tcp_link_send(&t->links[side], iov, n, last);
}

static bool tcp_flushed(const struct transport *t)
{
	return tcp_link_flushed(&t->links[SIDE_LEFT]) &&
	       tcp_link_flushed(&t->links[SIDE_RIGHT]);
}

static int tcp_progress(struct transport *t)
{
	int count = take_connections(t);

	for (int side = 0; side < SIDES; side++)
		count += tcp_link_progress(&t->links[side], side, &t->events);
	return count;
}

static void tcp_wait(struct transport *t, int timeout_ms)
{
	struct pollfd fds[POLL_MAX];
	int n = tcp_greet_poll(&t->greet, fds);

	for (int side = 0; side < SIDES; side++) {
		fds[n].fd = t->links[side].fd;
		fds[n++].events = tcp_link_events(&t->links[side]);
	}
	poll(fds, n, timeout_ms);
}

const struct transport_ops tcp_transport = {
	.name = "tcp",
	.open = tcp_open,
	.address = tcp_address,
	.connect = tcp_connect,
	.connected = tcp_connected,
	.send = tcp_send,
	.flushed = tcp_flushed,
	.progress = tcp_progress,
	.wait = tcp_wait,
	.close = tcp_close,
};
