/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs transport: InfiniBand and RoCE. Each side of the ring is a reliable
 * connection; the addresses that PMI carries are all it takes to make one.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "verbs_address.h"

#define BATCH 16
/* How long close waits until a neighbour's adapter has the goodbye. */
#define GOODBYE_MS 100

/* ---- completions ---- */

static void ready_was_sent(struct transport *t, const struct ibv_wc *wc)
{
	enum ring_side side = verbs_wr_side(wc->wr_id);

	t->listener.neighbours[side].sending = false;
	if (wc->status != IBV_WC_SUCCESS)
		delivery_end(&t->links[side].to_owner,
			     "cannot send a datagram: %s",
			     t->device.calls.wc_status_str(wc->status));
}

static void take_completion(struct transport *t, const struct ibv_wc *wc)
{
	enum ring_side side;

	switch (verbs_wr_work(wc->wr_id)) {
	case WORK_READY_SEND:
		ready_was_sent(t, wc);
		break;
	case WORK_READY_RECEIVE:
		if (verbs_listener_received(&t->listener, wc, &side))
			verbs_link_peer_ready(&t->links[side]);
		break;
	default:
		verbs_link_completion(&t->links[verbs_wr_side(wc->wr_id)], wc);
		break;
	}
}

static int take_completions(struct transport *t)
{
	struct ibv_wc wc[BATCH];
	int n, count = 0;

	do {
		n = verbs_device_poll(&t->device, wc, BATCH);
		for (int i = 0; i < n; i++)
			take_completion(t, &wc[i]);
		count += n > 0 ? n : 0;
	} while (n == BATCH);
	return count;
}

/* ---- open and close ---- */

static bool all_said(const struct transport *t)
{
	for (int side = 0; side < SIDES; side++) {
		const struct verbs_link *l = &t->links[side];

		if (l->up && !l->to_owner.ended && l->sending)
			return false;
	}
	return true;
}

/* Neighbours would notice only after retries that this is the end. */
static void say_goodbye(struct transport *t)
{
	int64_t end = clock_ms() + GOODBYE_MS;

	take_completions(t);
	for (int side = 0; side < SIDES; side++)
		verbs_link_goodbye(&t->links[side]);
	while (!all_said(t) && clock_ms() < end) {
		verbs_device_wait(&t->device, 1);
		take_completions(t);
	}
}

static void verbs_close(struct transport *t)
{
	if (!t)
		return;
	if (t->device.cq)
		say_goodbye(t);
	for (int side = 0; side < SIDES; side++)
		verbs_link_close(&t->links[side]);
	verbs_listener_close(&t->listener);
	verbs_device_close(&t->device);
	free(t);
}

static int verbs_open(struct transport **out,
		      const struct transport_params *params, char *why)
{
	struct transport *t = calloc(1, sizeof(*t));
	int rc;

	snprintf(why, TRANSPORT_REASON_MAX, "no memory");
	if (!t)
		return -ENOMEM;
	t->events = params->events;
	rc = verbs_device_open(&t->device, why);
	if (!rc)
		rc = verbs_listener_open(&t->listener, &t->device, params->nonce,
				      why);
	for (int side = 0; side < SIDES && !rc; side++)
		rc = verbs_link_open(&t->links[side], &t->device, side, why);
	if (rc) {
		verbs_close(t);
		return rc;
	}
	*out = t;
	return 0;
}

static void verbs_address(const struct transport *t, char *out)
{
	const struct verbs_port *port = &t->device.port;
	struct verbs_address a = {
		.fabric = port->fabric,
		.mtu = port->mtu,
		.lid = port->lid,
		.gid = port->gid,
		.ready_qpn = t->listener.qp->qp_num,
		.qkey = t->listener.qkey,
	};

	for (int side = 0; side < SIDES; side++) {
		a.qpn[side] = t->links[side].qp->qp_num;
		a.first_psn[side] = t->links[side].first_psn;
	}
	verbs_address_print(&a, out);
}

/* ---- connecting ---- */

static int verbs_connect(struct transport *t, enum ring_side side,
			 const struct transport_peer *peer, char *why)
{
	unsigned mine = t->device.port.fabric;
	struct verbs_address address;
	int rc;

	if (verbs_address_parse(&address, peer->address)) {
		snprintf(why, TRANSPORT_REASON_MAX,
			 "not an address of the verbs transport: \"%.64s\"",
			 peer->address);
		return -EINVAL;
	}
	if (address.fabric != mine) {
		snprintf(why, TRANSPORT_REASON_MAX, "it uses %s, this one %s; "
			 "see PMI2X_ALLGATHER_VERBS_DEVICE, _GID_INDEX",
			 verbs_fabric_name(address.fabric),
			 verbs_fabric_name(mine));
		return -EINVAL;
	}
	rc = verbs_link_connect(&t->links[side], &address, why);
	if (rc)
		return rc;
	return verbs_listener_start(&t->listener, side, &address, peer->nonce, why);
}

static bool verbs_connected(const struct transport *t, enum ring_side side)
{
	return t->links[side].up && !t->links[side].to_owner.ended;
}

/* ---- messages ---- */

static int verbs_send(struct transport *t, enum ring_side side,
		      const struct iovec *iov, int n, bool last)
{
	return verbs_link_send(&t->links[side], iov, n, last);
}

/* A queue pair dies with its process: the neighbour's adapter must have all. */
static bool verbs_flushed(const struct transport *t)
{
	return all_said(t);
}

static void send_ready(struct transport *t, enum ring_side side, int64_t now)
{
	struct verbs_link *l = &t->links[side];
	int rc;

	if (l->up || l->to_owner.ended)
		return;
	rc = verbs_listener_progress(&t->listener, side, now);
	if (rc)
		delivery_end(&l->to_owner, "cannot send a datagram: %s", strerror(-rc));
}

static int verbs_progress(struct transport *t)
{
	int64_t now = clock_ms();
	int count = take_completions(t);

	if (t->device.has_event)
		count += verbs_device_events(&t->device);
	for (int side = 0; side < SIDES; side++) {
		if (t->device.dead)
			delivery_end(&t->links[side].to_owner, "%s",
				     t->device.trouble);
		send_ready(t, side, now);
		count += verbs_link_progress(&t->links[side], now, &t->events);
	}
	return count;
}

static int64_t due_ms(const struct transport *t, enum ring_side side)
{
	const struct verbs_neighbour *n = &t->listener.neighbours[side];
	const struct verbs_link *l = &t->links[side];

	if (n->ah && !l->up && !l->to_owner.ended)
		return n->due_ms;
	return verbs_link_due_ms(l);
}

static void verbs_wait(struct transport *t, int timeout_ms)
{
	int64_t now = clock_ms();

	for (int side = 0; side < SIDES; side++) {
		int64_t left = due_ms(t, side) - now;

		if (left < timeout_ms)
			timeout_ms = left > 0 ? (int)left : 0;
	}
	verbs_device_wait(&t->device, timeout_ms);
}

const struct transport_ops verbs_transport = {
	.name = "verbs",
	.open = verbs_open,
	.address = verbs_address,
	.connect = verbs_connect,
	.connected = verbs_connected,
	.send = verbs_send,
	.flushed = verbs_flushed,
	.progress = verbs_progress,
	.wait = verbs_wait,
	.close = verbs_close,
};
