/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that are libengine's server, and through it libcoll: the object code of
 * slurmstepd's agent without its descriptors. The simulator is its host as the
 * agent is: what ranks and neighbours send goes in by pmi_server.h, what it wants
 * done comes by struct pmi_host_ops. There is no shared memory: results lie in
 * the server's heap, and ranks get them by messages. libpmi's step_services takes the messages
 * to srun, in no time.
 */
#include "pmi_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contents.h"
#include "libpmi/step_services.h"

#define NAME_BYTES 12 /* of a node: n and a number, NUL */

/* The state that all nodes share. */
struct servers {
	struct step_services *srun;
	const char **names; /* of nodes, by id */
	char *text;         /* of these names */
};

/* ---- what a result costs ---- */

static enum coll_kind kind_of(const struct sim *s, uint32_t op)
{
	return s->scenario->ops[op].kind == OP_FENCE ? COLL_FENCE : COLL_GATHER;
}

void pmi_node_publishes(struct sim_node *n, uint32_t op)
{
	uint32_t *published =
		&pmi_node_of(n)->published[kind_of(n->sim, op)];

	if (*published > n->sim->seq_of[op])
		return;
	*published = n->sim->seq_of[op] + 1;
	node_spend(n, contents_result_len(n->sim, op) *
			      (double)n->sim->scenario->node.publish);
}

/* ---- operations of the server ---- */

static void host_client_send(void *arg, uint32_t slot, const void *data,
			     size_t len, const struct passed_fds *fds)
{
	struct sim_node *n = arg;

	if (fds && fds->count)
		sim_fail(n->sim, "the server of node %u passed a descriptor, though there is no shared memory",
			 n->id);
	client_receive(n, slot, data, len);
}

static void host_client_close(void *arg, uint32_t slot)
{
	struct sim_node *n = arg;

	if (!n->sim->ranks[n->first + slot].gone)
		sim_fail(n->sim, "the server closed the connection of rank %u",
			 rank_number(n->sim, n->first + slot));
}

static void host_node_send(void *arg, uint32_t position,
			   const struct coll_msg *msg, const void *head,
			   size_t head_len, const struct payload_vec *body)
{
	struct sim_node *n = arg;
	uint64_t len = body ? body->bytes : 0;
	struct payload *kept = len ? payload_vec_join(body) : NULL;

	if (len && !kept)
		sim_fail(n->sim, "not enough memory");
	else
		message_send(n, position, phase_of(n->sim, msg), head,
			     head_len, len, kept);
	payload_unref(kept);
}

static void host_node_break(void *arg, uint32_t position)
{
	struct sim_node *n = arg;

	sim_fail(n->sim, "the server of node %u has no memory for a message",
		 n->id);
}

/* All links are there. */
static void host_links_wanted(void *arg)
{
}

static void host_control_send(void *arg, const void *data, size_t len)
{
	struct sim_node *n = arg;

	if (step_services_receive(n->sim->servers->srun, n, data, len))
		sim_fail(n->sim, "srun refused a message of node %u", n->id);
}

/* A result has come, or has been made here from what ranks contributed. */
static void host_event(void *arg, enum pmi_event event, uint32_t slot,
		       enum coll_kind kind, uint32_t seq)
{
	struct sim_node *n = arg;
	struct sim *s = n->sim;
	struct pmi_node *p = pmi_node_of(n);

	if (event != PMI_EVENT_DOWN)
		return;
	if (!p->result_comes)
		node_spend(n, contents_result_len(s, s->op_of[kind][seq]) *
				      (double)s->scenario->node.combine);
	p->result_comes = false;
}

static const struct pmi_host_ops host_ops = {
	.client_send = host_client_send,
	.client_close = host_client_close,
	.node_send = host_node_send,
	.node_break = host_node_break,
	.links_wanted = host_links_wanted,
	.control_send = host_control_send,
	.event = host_event,
};

/* ---- srun ---- */

static void srun_replies(void *arg, void *link, const void *data, size_t len)
{
	sim_fail(arg, "srun answers what no rank has asked");
}

static int srun_spawns(void *arg, uint32_t token,
		       const struct spawn_request *request)
{
	return -ENOTSUP;
}

static void srun_is_told(void *arg, const char *text)
{
	struct sim *s = arg;

	if (s->reports++ == 0)
		snprintf(s->report, sizeof(s->report), "%s", text);
}

static void srun_aborts(void *arg, uint32_t rank, int code, const char *text)
{
	sim_fail(arg, "a node aborted the step: %s", text);
}

static void srun_is_ready(void *arg)
{
}

static const struct step_services_ops srun_ops = {
	.reply = srun_replies,
	.spawn = srun_spawns,
	.abort = srun_aborts,
	.report = srun_is_told,
	.ready = srun_is_ready,
};

/* ---- a step ---- */

/* A server holds every result as long as the step lives. */
static int check_memory(struct sim *s)
{
	uint64_t each = 0;

	for (uint32_t op = 0; op < s->scenario->nops; op++)
		each += contents_result_len(s, op);
	return contents_check_memory(s, each, "clients", "clients = none");
}

static int name_nodes(struct servers *v, uint32_t nodes)
{
	v->names = calloc(nodes, sizeof(*v->names));
	v->text = calloc(nodes, NAME_BYTES);
	if (!v->names || !v->text)
		return -1;
	for (uint32_t i = 0; i < nodes; i++) {
		char *name = v->text + (size_t)i * NAME_BYTES;

		snprintf(name, NAME_BYTES, "n%u", i);
		v->names[i] = name;
	}
	return 0;
}

static int open_step(struct sim *s)
{
	if (check_memory(s))
		return -1;
	s->servers = calloc(1, sizeof(*s->servers));
	if (!s->servers || name_nodes(s->servers, s->nnodes))
		return -1;
	return step_services_create(&s->servers->srun, &srun_ops, s, 0, NULL);
}

static void close_step(struct sim *s)
{
	if (!s->servers)
		return;
	if (s->servers->srun)
		step_services_destroy(s->servers->srun);
	free(s->servers->names);
	free(s->servers->text);
	free(s->servers);
}

/* ---- a node ---- */

/* Ranks of a mixed step take turns. */
static enum scenario_clients speaks(const struct scenario *sc, uint32_t rank)
{
	enum scenario_clients able[3];
	const char *allowed;
	uint32_t n = 0;

	if (sc->clients != CLIENTS_MIXED)
		return sc->clients;
	for (int c = CLIENTS_PMI1; c <= CLIENTS_PMI2X; c++)
		if (!scenario_unable(sc, c, &allowed))
			able[n++] = c;
	return able[rank % n];
}

static int create_clients(struct sim_node *n)
{
	struct pmi_node *p = pmi_node_of(n);

	p->clients = calloc(n->nranks, sizeof(*p->clients));
	if (!p->clients)
		return -1;
	for (uint32_t i = 0; i < n->nranks; i++) {
		client_init(&p->clients[i],
			    speaks(n->sim->scenario,
				   rank_number(n->sim, n->first + i)));
		pmi_server_client_open(p->server, i);
	}
	return 0;
}

static int create(struct sim *s, struct sim_node *n)
{
	struct pmi_node *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	n->state = p;
	p->step = (struct pmi_step){
		.jobid = PMI_NODE_JOBID,
		.layout = s->layout,
		.position = n->position,
		.tree_width = s->width,
		.piece = s->scenario->piece,
		.universe_size = s->nranks,
		.build = "simulated",
		.node_names = s->servers->names,
	};
	if (pmi_server_create(&p->server, &p->step, NULL, &host_ops, n, NULL))
		return -1;
	return create_clients(n);
}

static void destroy(struct sim_node *n)
{
	struct pmi_node *p = pmi_node_of(n);

	pmi_server_destroy(p->server);
	for (uint32_t i = 0; p->clients && i < n->nranks; i++)
		client_free(&p->clients[i]);
	free(p->clients);
	free(p);
}

/* As the agent's reader: to where it stays, or anywhere. */
static struct payload *body_of(struct sim_node *n, const struct sim_message *m,
			       const struct coll_msg *msg)
{
	struct payload *room;

	room = pmi_server_node_room(pmi_node_of(n)->server, m->from, msg,
				    m->body_len);
	if (!room)
		room = payload_new(m->body_len);
	if (room)
		memcpy(room->data, m->body->data, m->body_len);
	return room;
}

static void receive(struct sim_node *n, struct sim_message *m)
{
	struct pmi_node *p = pmi_node_of(n);
	struct payload *body;
	struct coll_msg msg;

	if (coll_msg_read(m->head, m->head_len, &msg)) {
		sim_fail(n->sim, "a message cannot be unpacked");
		return;
	}
	body = m->body_len ? body_of(n, m, &msg) : NULL;
	p->result_comes = msg.type == COLL_MSG_DOWN;
	if (m->body_len && !body)
		sim_fail(n->sim, "not enough memory");
	else if (pmi_server_node_input(p->server, m->from, &msg, body))
		sim_fail(n->sim, "node %u refused a message of node %u in operation %u",
			 n->id, n->sim->nodes[m->from].id, m->phase + 1u);
	p->result_comes = false;
	payload_unref(body);
}

/* The rank's process has ended, with or without finalize. */
static void rank_gone(struct sim_node *n, uint32_t slot, const char *why)
{
	struct pmi_server *server = pmi_node_of(n)->server;

	if (n->sim->ranks[n->first + slot].finished)
		client_finalize(n, slot);
	pmi_server_client_exit(server, slot, NULL);
}

static void link_lost(struct sim_node *n, uint32_t peer, const char *why)
{
	pmi_server_link_lost(pmi_node_of(n)->server, peer, false, why);
}

static void describe(const struct sim_node *n, char *out, size_t len)
{
	snprintf(out, len, "%zu collectives have not ended at its server",
		 pmi_server_pending(pmi_node_of(n)->server));
}

const struct sim_protocol protocol_pmi = {
	.faults = true,
	.open = open_step,
	.close = close_step,
	.create = create,
	.destroy = destroy,
	.enter = client_enter,
	.look = client_look,
	.receive = receive,
	.rank_gone = rank_gone,
	.link_lost = link_lost,
	.describe = describe,
};
