/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready datagrams of the verbs transport: verbs_listener.h. */
#include "verbs_listener.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define GRH_LEN 40 /* in front of every datagram that is received */
#define FIRST_MS 2
#define INTERVAL_MAX_MS 250
#define SENDS SIDES
#define QKEY_MASK 0x7fffffff /* the highest bit is for privileged users */

struct datagram {
	char magic[7];
	unsigned char side; /* the receiver's side on which the sender is */
	unsigned char from[TRANSPORT_NONCE_LEN], to[TRANSPORT_NONCE_LEN];
};

static const char magic[7] = { 'p', 'm', 'i', '2', 'x', 'v', '1' };

_Static_assert(GRH_LEN + sizeof(struct datagram) <= VERBS_READY_LEN,
	       "a datagram fits in its buffer");

/* ---- open and close ---- */

static int post_receive(struct verbs_listener *l, unsigned buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)verbs_listener_buffer(l->device, buffer),
		.length = VERBS_READY_LEN,
		.lkey = l->device->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = verbs_wr_id(WORK_READY_RECEIVE, SIDE_LEFT, buffer),
		.sg_list = &sge,
		.num_sge = 1,
	};

	return -ibv_post_recv(l->qp, &wr, &bad);
}

/* A datagram queue pair needs no neighbour to be ready. */
static int make_ready(struct verbs_listener *l)
{
	const struct verbs_calls *calls = &l->device->calls;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = l->device->port.number,
		.qkey = l->qkey,
	};
	int rc = -calls->modify_qp(l->qp, &attr, IBV_QP_STATE |
				   IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = -calls->modify_qp(l->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = -calls->modify_qp(l->qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN);
	return rc;
}

int verbs_listener_open(struct verbs_listener *l, struct verbs_device *d,
			const unsigned char nonce[TRANSPORT_NONCE_LEN], char *why)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = d->cq,
		.recv_cq = d->cq,
		.cap = {
			.max_send_wr = SENDS,
			.max_recv_wr = VERBS_READY_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	int rc;

	l->device = d;
	memcpy(l->nonce, nonce, sizeof(l->nonce));
	if (getrandom(&l->qkey, sizeof(l->qkey), 0) < 0)
		return verbs_cannot(why, "get random numbers", -errno);
	l->qkey &= QKEY_MASK;
	l->qp = d->calls.create_qp(d->pd, &attr);
	if (!l->qp)
		return verbs_cannot(why, "create a datagram queue pair", -errno);
	rc = verbs_cannot(why, "initialize a datagram queue pair", make_ready(l));
	for (unsigned i = 0; i < VERBS_READY_RECEIVES && !rc; i++)
		rc = verbs_cannot(why, "post a receive request", post_receive(l, i));
	return rc;
}

void verbs_listener_close(struct verbs_listener *l)
{
	/* The queue pair may still be sending by them. */
	if (l->qp)
		l->device->calls.destroy_qp(l->qp);
	for (int side = 0; side < SIDES; side++) {
		if (l->neighbours[side].ah)
			l->device->calls.destroy_ah(l->neighbours[side].ah);
	}
}

/* ---- ready datagrams ---- */

int verbs_listener_start(struct verbs_listener *l, enum ring_side side,
			 const struct verbs_address *peer,
			 const unsigned char nonce[TRANSPORT_NONCE_LEN], char *why)
{
	struct verbs_neighbour *n = &l->neighbours[side];
	struct ibv_ah_attr attr;

	verbs_device_route(l->device, peer->lid, &peer->gid, &attr);
	n->ah = l->device->calls.create_ah(l->device->pd, &attr);
	if (!n->ah)
		return verbs_cannot(why, "find a way to the address", -errno);
	n->qpn = peer->ready_qpn;
	n->qkey = peer->qkey;
	memcpy(n->nonce, nonce, sizeof(n->nonce));
	n->interval_ms = FIRST_MS;
	return 0;
}

static int send_datagram(struct verbs_listener *l, enum ring_side side)
{
	struct verbs_neighbour *n = &l->neighbours[side];
	char *buffer = verbs_listener_buffer(l->device, VERBS_READY_RECEIVES + side);
	struct datagram d = { .side = other_side(side) };
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer,
		.length = sizeof(d),
		.lkey = l->device->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = verbs_wr_id(WORK_READY_SEND, side, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {
			.ah = n->ah,
			.remote_qpn = n->qpn,
			.remote_qkey = n->qkey,
		},
	};
	int rc;

	memcpy(d.magic, magic, sizeof(magic));
	memcpy(d.from, l->nonce, sizeof(d.from));
	memcpy(d.to, n->nonce, sizeof(d.to));
	memcpy(buffer, &d, sizeof(d));
	rc = -ibv_post_send(l->qp, &wr, &bad);
	n->sending = !rc;
	return rc;
}

int verbs_listener_progress(struct verbs_listener *l, enum ring_side side, int64_t now_ms)
{
	struct verbs_neighbour *n = &l->neighbours[side];

	if (!n->ah || n->sending || now_ms < n->due_ms)
		return 0;
	n->due_ms = now_ms + n->interval_ms;
	if (n->interval_ms < INTERVAL_MAX_MS)
		n->interval_ms *= 2;
	return send_datagram(l, side);
}

/* Any process on the fabric can send a datagram: only the neighbour's counts. */
bool verbs_listener_received(struct verbs_listener *l, const struct ibv_wc *wc,
			     enum ring_side *side)
{
	unsigned buffer = verbs_wr_buffer(wc->wr_id);
	struct datagram d;

	if (wc->status != IBV_WC_SUCCESS)
		return false;
	memset(&d, 0, sizeof(d));
	if (wc->byte_len == GRH_LEN + sizeof(d))
		memcpy(&d, verbs_listener_buffer(l->device, buffer) + GRH_LEN,
		       sizeof(d));
	post_receive(l, buffer);
	if (memcmp(d.magic, magic, sizeof(magic)) || d.side >= SIDES ||
	    memcmp(d.to, l->nonce, sizeof(d.to)))
		return false;
	*side = d.side;
	return l->neighbours[d.side].ah &&
	       memcmp(d.from, l->neighbours[d.side].nonce, sizeof(d.from)) == 0;
}
