/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reliable connection to one neighbour. Every message carries credits back in
 * its immediate data; where there is nothing to send, an empty message does.
 */
#include "verbs_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"

#define PSN_MASK 0xffffff
/*
 * How long one try takes is in the settings. 7, the most that the field allows,
 * is forever with Soft-RoCE.
 */
#define RETRIES 6
/*
 * Credits see to it that a message finds a receive request. Should one be late,
 * 0.64 ms (12) later is soon enough, and seven times show a broken neighbour;
 * 7 would mean forever.
 */
#define RNR_RETRIES 6
#define RNR_TIMER 12
/*
 * A dead neighbour is silent: one who only receives would wait forever. After a
 * second without a sign an empty RDMA write makes the adapter ask the other one.
 */
#define PROBE_MS 1000

enum kind { KIND_MESSAGE = 1, KIND_HELLO, KIND_CREDITS, KIND_GOODBYE };

#define IMMEDIATE(kind, credits) ((uint32_t)(kind) << 16 | (credits))
#define IMMEDIATE_KIND(immediate) ((immediate) >> 16)
#define IMMEDIATE_CREDITS(immediate) ((immediate) & 0xffff)

/* ---- the end ---- */

static void end_by_status(struct verbs_link *l, enum ibv_wc_status status)
{
	const char *trouble = l->device->trouble;
	const char *text = l->device->calls.wc_status_str(status);

	verbs_device_events(l->device);
	if (status == IBV_WC_RETRY_EXC_ERR)
		text = "no answer (transport retry counter exceeded)";
	else if (status == IBV_WC_WR_FLUSH_ERR)
		text = "queue pair in error state";
	delivery_end(&l->to_owner, "%.80s%s%s", text, trouble[0] ? "; " : "", trouble);
}

/* ---- open and close ---- */

static int post_receive(struct verbs_link *l, unsigned buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)verbs_receive_buffer(l->device, l->side,
							buffer),
		.length = TRANSPORT_MESSAGE_MAX,
		.lkey = l->device->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = verbs_wr_id(WORK_RECEIVE, l->side, buffer),
		.sg_list = &sge,
		.num_sge = 1,
	};

	return -ibv_post_recv(l->qp, &wr, &bad);
}

static int to_init(struct verbs_link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = l->device->port.number,
		/* For probes; no memory is registered for remote access. */
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return -l->device->calls.modify_qp(l->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		IBV_QP_ACCESS_FLAGS);
}

int verbs_link_open(struct verbs_link *l, struct verbs_device *d,
		    enum ring_side side, char *why)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = d->cq,
		.recv_cq = d->cq,
		.cap = {
			/* and one for the probe */
			.max_send_wr = VERBS_MESSAGES + VERBS_CONTROLS + 1,
			.max_recv_wr = VERBS_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int rc;

	l->device = d;
	l->side = side;
	l->credits = VERBS_MESSAGES;
	l->free_buffers = (1u << VERBS_MESSAGES) - 1;
	if (getrandom(&l->first_psn, sizeof(l->first_psn), 0) < 0)
		l->first_psn = 0;
	l->first_psn &= PSN_MASK;
	l->qp = d->calls.create_qp(d->pd, &attr);
	if (!l->qp)
		return verbs_cannot(why, "create a queue pair", -errno);
	rc = verbs_cannot(why, "initialize a queue pair", to_init(l));
	for (unsigned i = 0; i < VERBS_RECEIVES && !rc; i++)
		rc = verbs_cannot(why, "post a receive request", post_receive(l, i));
	return rc;
}

void verbs_link_close(struct verbs_link *l)
{
	if (l->qp)
		l->device->calls.destroy_qp(l->qp);
	l->qp = NULL;
}

/* ---- connecting ---- */

static int to_receive(struct verbs_link *l, const struct verbs_address *peer)
{
	const struct verbs_port *port = &l->device->port;
	enum ring_side theirs = other_side(l->side);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port->mtu < peer->mtu ? port->mtu : peer->mtu,
		.dest_qp_num = peer->qpn[theirs],
		.rq_psn = peer->first_psn[theirs],
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
	};

	verbs_device_route(l->device, peer->lid, &peer->gid, &attr.ah_attr);
	return -l->device->calls.modify_qp(l->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		IBV_QP_MIN_RNR_TIMER);
}

static int to_send(struct verbs_link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = l->device->settings.timeout,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES,
		.sq_psn = l->first_psn,
		.max_rd_atomic = 1,
	};

	return -l->device->calls.modify_qp(l->qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_link_connect(struct verbs_link *l, const struct verbs_address *peer,
		       char *why)
{
	int rc = to_receive(l, peer);

	if (!rc)
		rc = to_send(l);
	l->can_receive = !rc;
	return verbs_cannot(why, "connect a queue pair", rc);
}

/* ---- sending ---- */

static void post(struct verbs_link *l, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(l->qp, wr, &bad);

	if (error)
		delivery_end(&l->to_owner, "cannot send: %s", strerror(error));
	else
		l->sending++;
}

static uint32_t immediate(struct verbs_link *l, enum kind kind)
{
	uint32_t value = IMMEDIATE(kind, l->owed);

	l->owed = 0;
	return htonl(value);
}

static void send_control(struct verbs_link *l, enum kind kind)
{
	struct ibv_send_wr wr = {
		.wr_id = verbs_wr_id(WORK_CONTROL, l->side, 0),
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = immediate(l, kind),
	};

	l->controls++;
	post(l, &wr);
}

static void send_probe(struct verbs_link *l)
{
	struct ibv_send_wr wr = {
		.wr_id = verbs_wr_id(WORK_PROBE, l->side, 0),
		.opcode = IBV_WR_RDMA_WRITE,
	};

	post(l, &wr);
}

void verbs_link_peer_ready(struct verbs_link *l)
{
	if (l->up || l->to_owner.ended)
		return;
	l->up = true;
	l->heard_ms = clock_ms();
	send_control(l, KIND_HELLO);
}

void verbs_link_goodbye(struct verbs_link *l)
{
	if (l->up && !l->to_owner.ended && l->controls < VERBS_CONTROLS)
		send_control(l, KIND_GOODBYE);
}

static uint32_t gather(char *to, const struct iovec *iov, int n)
{
	uint32_t len = 0;

	for (int i = 0; i < n; i++) {
		memcpy(to + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	return len;
}

int verbs_link_send(struct verbs_link *l, const struct iovec *iov, int n,
		    bool last)
{
	unsigned buffer = ffs(l->free_buffers);
	struct ibv_sge sge = { .lkey = l->device->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.sg_list = &sge,
		.num_sge = 1,
	};
	char *to;

	if (!l->up || l->to_owner.ended)
		return -EPIPE;
	/* The last credit is for the last message. */
	if (l->credits < (last ? 1 : 2) || !buffer--)
		return -EAGAIN;
	to = verbs_send_buffer(l->device, l->side, buffer);
	sge.addr = (uintptr_t)to;
	sge.length = gather(to, iov, n);
	wr.wr_id = verbs_wr_id(WORK_SEND, l->side, buffer);
	wr.imm_data = immediate(l, KIND_MESSAGE);
	l->credits--;
	l->free_buffers &= ~(1u << buffer);
	post(l, &wr);
	return l->to_owner.ended ? -EPIPE : 0;
}

/* ---- completions ---- */

static void give_back(struct verbs_link *l, unsigned buffer)
{
	int rc = post_receive(l, buffer);

	if (rc)
		delivery_end(&l->to_owner, "cannot receive: %s", strerror(-rc));
}

static void keep_arrival(struct verbs_link *l, unsigned buffer, uint32_t len)
{
	unsigned last = (l->first_arrived + l->arrived_count++) % VERBS_RECEIVES;

	l->arrived[last].buffer = buffer;
	l->arrived[last].len = len;
}

/* A neighbour that breaks the rules is not worth more than a broken link. */
static void end_by_protocol(struct verbs_link *l)
{
	delivery_end(&l->to_owner, "a message that is against the protocol");
}

static void take_receive(struct verbs_link *l, const struct ibv_wc *wc)
{
	uint32_t value = ntohl(wc->imm_data);
	unsigned buffer = verbs_wr_buffer(wc->wr_id);

	l->up = true;
	l->credits += IMMEDIATE_CREDITS(value);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || l->credits > VERBS_MESSAGES) {
		end_by_protocol(l);
		return;
	}
	switch (IMMEDIATE_KIND(value)) {
	case KIND_MESSAGE:
		if (wc->byte_len)
			keep_arrival(l, buffer, wc->byte_len);
		else
			end_by_protocol(l);
		break;
	case KIND_GOODBYE:
		delivery_end(&l->to_owner, "connection closed");
		break;
	default:
		give_back(l, buffer);
		break;
	}
}

void verbs_link_completion(struct verbs_link *l, const struct ibv_wc *wc)
{
	enum verbs_work work = verbs_wr_work(wc->wr_id);

	if (work != WORK_RECEIVE)
		l->sending--;
	if (work == WORK_CONTROL)
		l->controls--;
	if (work == WORK_SEND)
		l->free_buffers |= 1u << verbs_wr_buffer(wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS) {
		end_by_status(l, wc->status);
		return;
	}
	l->heard_ms = clock_ms();
	if (work == WORK_RECEIVE)
		take_receive(l, wc);
}

/* ---- progress ---- */

static int deliver(struct verbs_link *l, const struct transport_events *events)
{
	int count = 0;

	while (l->arrived_count && !l->to_owner.told) {
		struct verbs_arrival *a = &l->arrived[l->first_arrived];

		if (!delivery_offer(&l->to_owner, l->side, events,
				    verbs_receive_buffer(l->device, l->side,
							 a->buffer), a->len))
			break;
		l->first_arrived = (l->first_arrived + 1) % VERBS_RECEIVES;
		l->arrived_count--;
		count++;
		if (!l->to_owner.ended) {
			give_back(l, a->buffer);
			l->owed++;
		}
	}
	return count;
}

static void return_credits(struct verbs_link *l)
{
	if (l->owed >= VERBS_MESSAGES / 2 && l->controls < VERBS_CONTROLS)
		send_control(l, KIND_CREDITS);
}

int verbs_link_progress(struct verbs_link *l, int64_t now_ms,
			const struct transport_events *events)
{
	int count = deliver(l, events);

	if (l->up && !l->to_owner.ended) {
		return_credits(l);
		if (now_ms >= verbs_link_due_ms(l))
			send_probe(l);
	}
	return count + delivery_tell_end(&l->to_owner, l->side, events);
}

int64_t verbs_link_due_ms(const struct verbs_link *l)
{
	/* The message that is under way is a probe itself. */
	if (!l->up || l->to_owner.ended || l->sending)
		return INT64_MAX;
	return l->heard_ms + PROBE_MS;
}
