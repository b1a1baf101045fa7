/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Models of other designs, over the same network: each node waits for its ranks
 * and children, sends all it has to its parent in one message, and passes the
 * result on when all of it has come. They differ in the shape of the tree, in
 * where its root is, and in whether each message is a connection of its own.
 *
 * mpi/pmi2 gathers up a tree of slurmstepds whose root is srun: each message goes to
 * the slurmd of the parent (a connection, an authentication, a fork, and a connection to
 * slurmstepd), those of the first level straight to srun's port. srun sends the
 * result through slurmd's own tree, where each slurmd passes it on before it gives it to
 * its slurmstepd. Both have Slurm's TreeWidth, and here one shape: from TreeWidth
 * squared nodes on slurmd divides its own more evenly. A ring goes another way,
 * without srun.
 */
#include <stdlib.h>

#include "sim.h"

#define HEAD_BYTES 24 /* of a message: command, ids, lengths */

enum direction { UP, DOWN };

/* A node in one operation. */
struct gathering {
	uint32_t missing; /* ranks and children */
	uint64_t bytes;
};

static struct gathering *gathering_of(const struct sim_node *n, uint32_t op)
{
	return (struct gathering *)n->state + op;
}

/* Takes over the reference to the body. */
static void send(struct sim_node *n, uint32_t to, uint32_t op,
		 enum direction direction, struct payload *body)
{
	const unsigned char head[HEAD_BYTES] = { direction };

	if (body)
		message_send(n, to, op, head, sizeof(head), body->len, body);
	else
		sim_fail(n->sim, "not enough memory");
	payload_unref(body);
}

static void hold(struct sim_node *n, uint64_t bytes)
{
	n->held += bytes;
	stats_memory(n);
}

/* To the children, then to the ranks. */
static void pass_on(struct sim_node *n, uint32_t op, uint64_t bytes)
{
	struct sim *s = n->sim;
	struct payload *result = payload_held(n, bytes, NULL);

	for (uint32_t i = 0; i < n->children; i++)
		send(n, shape_child(n, i), op, DOWN, payload_ref(result));
	if (n->nranks)
		node_spend(n, bytes * (double)s->scenario->node.publish);
	for (uint32_t i = 0; i < n->nranks; i++)
		rank_exits(n, i, NULL);
	n->held -= gathering_of(n, op)->bytes;
	payload_unref(result);
}

/* Something is in: go on when nothing is missing. */
static void add(struct sim_node *n, uint32_t op, uint64_t bytes)
{
	struct gathering *g = gathering_of(n, op);
	const struct sim *s = n->sim;
	bool ring = s->scenario->ops[op].kind == OP_RING;

	hold(n, bytes);
	g->bytes += bytes;
	if (--g->missing)
		return;
	bytes = ring ? s->unit_len[op] : g->bytes; /* of a ring, the edges */
	if (n->parent != TREE_NONE) {
		send(n, n->parent, op, UP, payload_held(n, bytes, NULL));
		return;
	}
	node_spend(n, bytes * (double)s->scenario->node.combine);
	pass_on(n, op, bytes);
}

static void enter(struct sim_node *n, uint32_t slot, uint32_t op)
{
	add(n, op, n->sim->unit_len[op] * n->sim->scenario->ops[op].keys);
}

static void receive(struct sim_node *n, struct sim_message *m)
{
	if (m->head[0] == UP)
		add(n, m->phase, m->body_len);
	else
		pass_on(n, m->phase, m->body_len);
}

static int create(struct sim *s, struct sim_node *n)
{
	struct gathering *g = calloc(s->scenario->nops, sizeof(*g));

	if (!g)
		return -1;
	for (uint32_t op = 0; op < s->scenario->nops; op++)
		g[op].missing = n->nranks + n->children;
	n->state = g;
	return 0;
}

static void destroy(struct sim_node *n)
{
	free(n->state);
}

#define STOCK_OPERATIONS \
	.create = create, .destroy = destroy, .enter = enter, .receive = receive

const struct sim_protocol *protocol_stock(enum sim_protocol_id id)
{
	static const struct sim_protocol designs[PROTOCOLS] = {
		[PROTOCOL_MPI_PMI2] = {
			.host = true, .filled = true, .connects = true,
			STOCK_OPERATIONS,
		},
		[PROTOCOL_HYDRA_STAR] = {
			.host = true, .star = true, STOCK_OPERATIONS,
		},
		[PROTOCOL_BINARY_TREE] = { .width = 2, STOCK_OPERATIONS },
		[PROTOCOL_RADIX64] = { .width = 64, STOCK_OPERATIONS },
	};

	return &designs[id];
}
