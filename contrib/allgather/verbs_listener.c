/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams by which neighbours tell each other that they are ready. */
#include "verbs_listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define GRH_LEN 40 /* in front of every datagram that is received */
#define FIRST_MS 2
#define INTERVAL_MAX_MS 250
#define SENDS SIDES
#define QKEY_MASK 0x7fffffff /* the highest bit is for privileged users */

struct datagram {
	char magic[7];
	unsigned char side; /* of the one who receives it */
	unsigned char from[TRANSPORT_NONCE_LEN], to[TRANSPORT_NONCE_LEN];
};

static const char magic[7] = { 'p', 'm', 'i', '2', 'x', 'v', '1' };

_Static_assert(GRH_LEN + sizeof(struct datagram) <= VERBS_KNOCK_LEN,
	       "a datagram fits in its buffer");

/* ---- open and close ---- */

static int post_receive(struct verbs_knock *k, unsigned buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)verbs_knock_buffer(k->device, buffer),
		.length = VERBS_KNOCK_LEN,
		.lkey = k->device->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = verbs_wr_id(WORK_KNOCK_RECEIVE, SIDE_LEFT, buffer),
		.sg_list = &sge,
		.num_sge = 1,
	};

	return -ibv_post_recv(k->qp, &wr, &bad);
}

/* A datagram queue pair needs no neighbour to be ready. */
static int make_ready(struct verbs_knock *k)
{
	const struct verbs_calls *calls = &k->device->calls;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = k->device->port.number,
		.qkey = k->qkey,
	};
	int rc = -calls->modify_qp(k->qp, &attr, IBV_QP_STATE |
				   IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = -calls->modify_qp(k->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = -calls->modify_qp(k->qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN);
	return rc;
}

int verbs_knock_open(struct verbs_knock *k, struct verbs_device *d,
		     const unsigned char nonce[TRANSPORT_NONCE_LEN], char *why)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = d->cq,
		.recv_cq = d->cq,
		.cap = {
			.max_send_wr = SENDS,
			.max_recv_wr = VERBS_KNOCKS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	int rc;

	k->device = d;
	memcpy(k->nonce, nonce, sizeof(k->nonce));
	if (getrandom(&k->qkey, sizeof(k->qkey), 0) < 0)
		return verbs_cannot(why, "get random numbers", -errno);
	k->qkey &= QKEY_MASK;
	k->qp = d->calls.create_qp(d->pd, &attr);
	if (!k->qp)
		return verbs_cannot(why, "create a datagram queue pair", -errno);
	rc = verbs_cannot(why, "initialize a datagram queue pair", make_ready(k));
	for (unsigned i = 0; i < VERBS_KNOCKS && !rc; i++)
		rc = verbs_cannot(why, "post a receive request", post_receive(k, i));
	return rc;
}

void verbs_knock_close(struct verbs_knock *k)
{
	/* The queue pair may still be sending by them. */
	if (k->qp)
		k->device->calls.destroy_qp(k->qp);
	for (int side = 0; side < SIDES; side++) {
		if (k->doors[side].ah)
			k->device->calls.destroy_ah(k->doors[side].ah);
	}
}

/* ---- knocking ---- */

int verbs_knock_start(struct verbs_knock *k, enum ring_side side,
		      const struct verbs_address *peer,
		      const unsigned char nonce[TRANSPORT_NONCE_LEN],
		      char *why)
{
	struct verbs_door *door = &k->doors[side];
	struct ibv_ah_attr attr;

	verbs_device_route(k->device, peer->lid, &peer->gid, &attr);
	door->ah = k->device->calls.create_ah(k->device->pd, &attr);
	if (!door->ah)
		return verbs_cannot(why, "find a way to the address", -errno);
	door->qpn = peer->knock_qpn;
	door->qkey = peer->qkey;
	memcpy(door->nonce, nonce, sizeof(door->nonce));
	door->interval_ms = FIRST_MS;
	return 0;
}

static int send_datagram(struct verbs_knock *k, enum ring_side side)
{
	struct verbs_door *door = &k->doors[side];
	char *buffer = verbs_knock_buffer(k->device, VERBS_KNOCKS + side);
	struct datagram d = { .side = other_side(side) };
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer,
		.length = sizeof(d),
		.lkey = k->device->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = verbs_wr_id(WORK_KNOCK, side, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {
			.ah = door->ah,
			.remote_qpn = door->qpn,
			.remote_qkey = door->qkey,
		},
	};
	int rc;

	memcpy(d.magic, magic, sizeof(magic));
	memcpy(d.from, k->nonce, sizeof(d.from));
	memcpy(d.to, door->nonce, sizeof(d.to));
	memcpy(buffer, &d, sizeof(d));
	rc = -ibv_post_send(k->qp, &wr, &bad);
	door->sending = !rc;
	return rc;
}

int verbs_knock_progress(struct verbs_knock *k, enum ring_side side,
			 int64_t now_ms)
{
	struct verbs_door *door = &k->doors[side];

	if (!door->ah || door->sending || now_ms < door->due_ms)
		return 0;
	door->due_ms = now_ms + door->interval_ms;
	if (door->interval_ms < INTERVAL_MAX_MS)
		door->interval_ms *= 2;
	return send_datagram(k, side);
}

/* Anybody on the fabric can send a datagram: only the neighbour's counts. */
bool verbs_knock_heard(struct verbs_knock *k, const struct ibv_wc *wc,
		       enum ring_side *side)
{
	unsigned buffer = verbs_wr_buffer(wc->wr_id);
	struct datagram d;

	if (wc->status != IBV_WC_SUCCESS)
		return false;
	memset(&d, 0, sizeof(d));
	if (wc->byte_len == GRH_LEN + sizeof(d))
		memcpy(&d, verbs_knock_buffer(k->device, buffer) + GRH_LEN,
		       sizeof(d));
	post_receive(k, buffer);
	if (memcmp(d.magic, magic, sizeof(magic)) || d.side >= SIDES ||
	    memcmp(d.to, k->nonce, sizeof(d.to)))
		return false;
	*side = d.side;
	return k->doors[d.side].ah &&
	       memcmp(d.from, k->doors[d.side].nonce, sizeof(d.from)) == 0;
}
