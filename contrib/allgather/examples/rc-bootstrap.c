/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Example: connect every process of a job with every other one by reliable
 * connections (RC queue pairs), and have each send a greeting to all.
 *
 *   cc rc-bootstrap.c -libverbs $(pkg-config --cflags --libs pmi2x-allgather pmi2x)
 *   srun --mpi=pmi2x -n 64 ./a.out [DEVICE [GID-INDEX]]
 *
 * What each process tells the others, its address and one queue pair number for
 * each of them, is one allgather over the ring. For the rest it is what any
 * program with verbs does; errors end it with a message.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmi2.h"
#include "pmi2x_allgather.h"

/* A process publishes its port, and a queue pair for each rank. */
struct card {
	union ibv_gid gid;
	uint32_t mtu, lid;
	uint32_t qpn[];
};

static int rank, size;

static void need(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "rc-bootstrap: rank %d: %s failed\n", rank, what);
	PMI2_Abort(1, what); /* does not return */
}

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp **qps; /* one for each rank; NULL for our own */
static int *greetings;      /* the rank of who has sent it; our own is last */
static int gid_index;

static void open_adapter(const char *name)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; i < count && !context; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			context = ibv_open_device(list[i]);
	need(context != NULL, "opening a device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 2 * size, NULL, NULL, 0);
	greetings = calloc(size + 1, sizeof(*greetings));
	need(pd && cq && greetings, "ibv_alloc_pd, ibv_create_cq, calloc");
	greetings[size] = rank;
	mr = ibv_reg_mr(pd, greetings, (size + 1) * sizeof(*greetings),
			IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
}

/* A queue pair for one other rank, with a receive request for its greeting. */
static struct ibv_qp *create_queue_pair(int peer)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_sge sge = { (uintptr_t)&greetings[peer], sizeof(int),
			       mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	need(qp != NULL, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	return qp;
}

static void connect_queue_pair(struct ibv_qp *qp, const struct card *mine,
			       const struct card *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mine->mtu < peer->mtu ? mine->mtu : peer->mtu,
		.dest_qp_num = peer->qpn[rank],
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .dlid = peer->lid, .port_num = 1 },
	};

	if (!peer->lid) { /* RoCE */
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = peer->gid;
		attr.ah_attr.grh.sgid_index = gid_index;
		attr.ah_attr.grh.hop_limit = 64;
	}
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 18;
	attr.retry_cnt = 6;
	attr.rnr_retry = 6;
	attr.max_rd_atomic = 1;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static void bootstrap(pmi2x_ring *ring)
{
	/* A multiple of 8, so that all cards are aligned. */
	size_t len = sizeof(struct card) + (size + 1) / 2 * 8;
	struct card *mine = calloc(1, len);
	char *cards = malloc(len * size);
	struct ibv_port_attr port;

	qps = calloc(size, sizeof(*qps));
	need(mine && cards && qps, "malloc");
	need(!ibv_query_port(context, 1, &port), "ibv_query_port");
	need(!ibv_query_gid(context, 1, gid_index, &mine->gid), "GID");
	mine->mtu = port.active_mtu;
	mine->lid = port.lid;
	for (int r = 0; r < size; r++) {
		qps[r] = r == rank ? NULL : create_queue_pair(r);
		mine->qpn[r] = qps[r] ? qps[r]->qp_num : 0;
	}
	need(!pmi2x_ring_allgather(ring, mine, len, cards), "the allgather");
	for (int r = 0; r < size; r++)
		if (r != rank)
			connect_queue_pair(qps[r], mine,
					   (struct card *)(cards + r * len));
	free(cards);
	free(mine);
	/* Nobody sends before all can receive: an empty allgather is a barrier. */
	need(!pmi2x_ring_allgather(ring, NULL, 0, NULL), "the barrier");
}

static void greet_all(void)
{
	struct ibv_sge sge = { (uintptr_t)&greetings[size], sizeof(int),
			       mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	for (int r = 0; r < size; r++)
		if (r != rank)
			need(!ibv_post_send(qps[r], &wr, &bad), "ibv_post_send");
	for (int left = 2 * (size - 1); left > 0;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		need(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "greeting");
		left -= n;
	}
	for (int r = 0; r < size; r++)
		need(r == rank || greetings[r] == r, "the right greeting");
}

int main(int argc, char **argv)
{
	int spawned, appnum;
	char why[PMI2X_RING_ERROR_MAX];
	pmi2x_ring *ring;

	need(!PMI2_Init(&spawned, &size, &rank, &appnum), "PMI2_Init");
	need(!pmi2x_ring_create(&ring, NULL, why, sizeof(why)), why);
	gid_index = argc > 2 ? atoi(argv[2]) : 0;
	open_adapter(argc > 1 ? argv[1] : NULL);
	bootstrap(ring);
	greet_all();
	/* A process that is done must not close queue pairs that others still use. */
	need(!pmi2x_ring_allgather(ring, NULL, 0, NULL), "the barrier");
	if (rank == 0)
		printf("%d ranks connected, bootstrapped over %s\n", size,
		       pmi2x_ring_transport(ring));
	for (int r = 0; r < size; r++)
		if (qps[r])
			ibv_destroy_qp(qps[r]);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	free(greetings);
	free(qps);
	pmi2x_ring_destroy(ring);
	return PMI2_Finalize() != 0;
}
