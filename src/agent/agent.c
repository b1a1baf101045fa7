/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of a node: peers and one service, and how they leave together. */
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/node.h"
#include "agent/peers/peers.h"
#include "agent/step/control_path.h"
#include "agent/step/pmix_link.h"
#include "agent/step/ranks.h"
#include "agent/step/service.h"
#include "agent/step/srun_link.h"
#include "agent/step/trace.h"
#include "libio/fd.h"
#include "libio/protocol.h"

#define LINGER_MS 1000 /* for neighbours that are not connected */

/* Serving -> draining (three stages) -> closed. Forward only. */
enum agent_stage {
	AGENT_SERVING,
	AGENT_STAYING,        /* the same, until the children have left */
	AGENT_DRAIN_OWN,      /* ranks end, queues flush */
	AGENT_DRAIN_CHILDREN, /* goodbye to the children, until they close */
	AGENT_DRAIN_PARENT,   /* goodbye to the parent and srun */
	AGENT_CLOSED,
};

struct agent {
	struct node node;
	struct agent_host host;
	struct peers *peers;
	struct service *service;
	enum agent_stage stage;
	char lack[NODE_WHY_MAX]; /* why it gives the step up; empty */
	uv_timer_t given_up;
	uv_prepare_t drain_step;
	uv_timer_t drain_linger;
	uv_timer_t drain_limit;
};

/* ---- end ---- */

static void close_all(struct agent *a)
{
	a->stage = AGENT_CLOSED;
	service_stop(a->service);
	peers_stop(a->peers);
	node_close_handle(&a->given_up);
	node_close_handle(&a->drain_step);
	node_close_handle(&a->drain_linger);
	node_close_handle(&a->drain_limit);
	a->host.left(a->host.arg);
}

/* How people can raise the limit that was met, if it was one. */
static void hint(int error, char out[NODE_WHY_MAX])
{
	struct rlimit limit;

	out[0] = '\0';
	if (error == -EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		snprintf(out, NODE_WHY_MAX,
			 " (the limit of this agent is %llu): raise LimitNOFILE in the unit of slurmd there, or ulimit -n where it is started, or start fewer ranks a node",
			 (unsigned long long)limit.rlim_cur);
	else if (error == -ENOMEM && !getrlimit(RLIMIT_AS, &limit) &&
		 limit.rlim_cur != RLIM_INFINITY)
		snprintf(out, NODE_WHY_MAX,
			 " (this agent may map %llu bytes): raise LimitAS in the unit of slurmd there, or ulimit -v where it is started, or lower Pmi2xRegionSize in mpi.conf",
			 (unsigned long long)limit.rlim_cur);
	else if (error == -EFBIG)
		snprintf(out, NODE_WHY_MAX,
			 ": raise LimitFSIZE in the unit of slurmd there, or ulimit -f where it is started, or lower Pmi2xRegionSize in mpi.conf");
	else if (error == -ENFILE)
		snprintf(out, NODE_WHY_MAX, ": raise fs.file-max there");
}

static void on_given_up(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	log_error(a->node.log, "%s", a->lack);
	close_all(a); /* ending the step takes descriptors, too */
	node_kill_step(&a->node, a->lack);
}

/* See node_give_up. */
static void give_up(void *arg, const char *what, int error)
{
	struct agent *a = arg;
	char how[NODE_WHY_MAX];

	if (a->lack[0] || a->stage > AGENT_STAYING)
		return;
	hint(error, how);
	snprintf(a->lack, sizeof(a->lack), "node %.64s %.64s: %s%.300s",
		 node_own_name(&a->node), what, strerror(-error), how);
	uv_timer_start(&a->given_up, on_given_up, 0, 0);
}

static bool is_flushed(const struct agent *a)
{
	return peers_flushed(a->peers) && control_path_is_flushed(a->service);
}

static void on_drain_limit(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	log_info(a->node.log, "node %s left the step after %u ms (Pmi2xDrainTimeout) without having finished",
		 node_own_name(&a->node), a->node.options->drain_ms);
	peers_abandon(a->peers);
	peers_leave(a->peers, false); /* not to be taken for dead */
	peers_leave(a->peers, true);
	srun_link_leave(a->service);
	close_all(a);
}

/* Stop waiting for nodes that have not connected by now. */
static void on_drain_linger(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	peers_abandon(a->peers);
}

static void drain(struct agent *a)
{
	a->stage = AGENT_DRAIN_OWN;
	service_prepare_leave(a->service);
	peers_prepare_leave(a->peers); /* a step without PMI costs no time */
	uv_timer_start(&a->drain_limit, on_drain_limit,
		       a->node.options->drain_ms, 0);
	uv_timer_start(&a->drain_linger, on_drain_linger, LINGER_MS, 0);
}

static bool is_needed(const struct agent *a)
{
	return a->node.options->stays && !peers_gone(a->peers, false);
}

/*
 * Before each wait of the loop: the stages of leaving, see enum agent_stage.
 * The children's last requests still pass while they close; only then the
 * parent and srun are left.
 */
static void on_drain_step(uv_prepare_t *prepare)
{
	struct agent *a = prepare->data;

	if (a->stage == AGENT_STAYING && !is_needed(a))
		drain(a);
	if (a->stage == AGENT_DRAIN_OWN && service_is_done(a->service) &&
	    is_flushed(a)) {
		a->stage = AGENT_DRAIN_CHILDREN;
		trace_send(a->service);
		peers_leave(a->peers, false);
	}
	if (a->stage == AGENT_DRAIN_CHILDREN && peers_gone(a->peers, false) &&
	    is_flushed(a)) {
		a->stage = AGENT_DRAIN_PARENT;
		peers_leave(a->peers, true);
		srun_link_leave(a->service);
	}
	if (a->stage == AGENT_DRAIN_PARENT && peers_gone(a->peers, true) &&
	    srun_link_is_gone(a->service))
		close_all(a);
}

static void on_still_there(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	if (a->host.stays)
		a->host.stays(a->host.arg);
	uv_timer_start(timer, on_still_there, a->node.options->drain_ms, 0);
}

void agent_leave(struct agent *a)
{
	if (a->stage != AGENT_SERVING) /* the agent could not even start */
		return;
	a->stage = AGENT_STAYING;
	uv_prepare_start(&a->drain_step, on_drain_step);
	uv_timer_start(&a->drain_limit, on_still_there, a->node.options->drain_ms,
		       0);
}

/* Until srun has been told. */
static void on_told_step(uv_prepare_t *prepare)
{
	struct agent *a = prepare->data;

	if (control_path_is_flushed(a->service))
		close_all(a);
}

void agent_host_died(struct agent *a)
{
	char why[NODE_WHY_MAX];

	if (a->stage == AGENT_CLOSED)
		return;
	if (a->node.options->no_kill || peers_has_parent(a->peers)) {
		close_all(a);
		return;
	}
	snprintf(why, sizeof(why), "lost the slurmstepd of node %.64s",
		 node_own_name(&a->node));
	a->stage = AGENT_DRAIN_PARENT;
	service_prepare_leave(a->service);
	control_path_end_step(a->service, why, 1);
	uv_prepare_stop(&a->drain_step);
	uv_prepare_start(&a->drain_step, on_told_step);
	uv_timer_start(&a->drain_limit, on_drain_limit,
		       a->node.options->drain_ms, 0);
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	service_destroy(a->service);
	peers_destroy(a->peers);
	secret_forget(&a->node.self.secret);
	free(a);
}

/* ---- answers of the host ---- */

void agent_node_found(struct agent *a, uint32_t node_id, int rc,
		      const struct sockaddr_storage *addr)
{
	if (a->stage != AGENT_CLOSED)
		peers_node_found(a->peers, node_id, rc, addr);
}

void agent_connect_back_sent(struct agent *a, uint32_t node_id, int rc)
{
	if (a->stage != AGENT_CLOSED)
		peers_connect_back_sent(a->peers, node_id, rc);
}

void agent_rank_ended(struct agent *a, uint32_t slot,
		      const struct pmi_exit *end)
{
	if (a->stage != AGENT_CLOSED)
		ranks_ended(a->service, slot, end);
}

void agent_rank_registered(struct agent *a, struct registration *reg)
{
	if (a->stage != AGENT_CLOSED)
		ranks_register(a->service, reg);
	fd_close(&reg->fd);
	fd_close(&reg->pidfd);
}

void agent_frame(struct agent *a, uint32_t position, enum frame_type type,
		 const void *head, size_t head_len, struct payload *body)
{
	if (a->stage != AGENT_CLOSED)
		peers_frame(a->peers, position, type, head, head_len, body);
}

void agent_neighbour_lost(struct agent *a, uint32_t position, const char *why)
{
	if (a->stage != AGENT_CLOSED)
		peers_lost(a->peers, position, why);
}

int agent_pmix_message(struct agent *a, struct payload *message)
{
	return a->stage == AGENT_CLOSED ? 0 : pmix_link_message(a->service, message);
}

void agent_pmix_lost(struct agent *a, const char *why)
{
	if (a->stage != AGENT_CLOSED)
		pmix_link_lost(a->service, why);
}

void agent_control(struct agent *a, struct payload *frame)
{
	if (a->stage != AGENT_CLOSED)
		service_control(a->service, frame);
}

int agent_status(struct agent *a, struct buf *out)
{
	return a->stage == AGENT_CLOSED ? -ENOTCONN :
					  service_status_pack(a->service, out);
}

void agent_topology_known(struct agent *a, const char *path)
{
	if (a->stage != AGENT_CLOSED)
		service_topology_known(a->service, path);
}

void agent_holder_found(struct agent *a, int found)
{
	if (a->stage != AGENT_CLOSED)
		service_holder_found(a->service, found);
}

/* ---- beginning ---- */

static void open_handles(struct agent *a)
{
	uv_loop_t *loop = loop_uv(a->node.loop);

	uv_timer_init(loop, &a->given_up);
	uv_prepare_init(loop, &a->drain_step);
	uv_timer_init(loop, &a->drain_linger);
	uv_timer_init(loop, &a->drain_limit);
	a->given_up.data = a->drain_step.data = a;
	a->drain_linger.data = a->drain_limit.data = a;
}

static int open_all(struct agent *a, const struct pmi_step *step,
		    struct agent_fds fds)
{
	int rc = service_create(&a->service, &a->node, step, &fds);

	if (rc) {
		fd_close(&fds.listener);
		fd_close(&fds.connect_back);
		return rc;
	}
	rc = peers_create(&a->peers, &a->node, service_place(a->service),
			  fds.listener, fds.connect_back, &service_peers_ops,
			  a->service);
	return rc ? rc : service_begin(a->service, a->peers);
}

static struct agent *new_agent(struct loop *loop, const struct setup *setup,
			       const struct agent_host *host,
			       const struct log_hook *log)
{
	const struct agent_options *o = &setup->options;
	const struct pmi_step *step = &setup->step;
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->host = *host;
	a->node = (struct node){
		.loop = loop,
		.log = log,
		.options = o,
		.host = &a->host,
		.layout = step->layout,
		.names = step->node_names,
		.self.jobid = step->jobid,
		.self.build = step->build,
		.self.position = step->position,
		.self.protocol = o->protocol ? o->protocol : PROTOCOL_VERSION,
		.link_options.handshake_ms = o->handshake_ms,
		.link_options.dead_peer_ms = o->dead_peer_ms,
		.link_options.budget = step->budget,
		.known = setup->known,
		.nknown = o->knows_nodes ? setup->nknown : 0,
		.port = setup->port,
		.give_up = give_up,
		.give_up_arg = a,
	};
	secret_hide(&a->node.self.secret);
	a->node.self.secret = o->secret;
	return a;
}

/*
 * The error comes too late to fail the launch. End the step: the agents of its other nodes
 * would wait for this agent.
 */
static void fail_to_open(struct agent *a, int rc)
{
	char why[NODE_WHY_MAX], how[NODE_WHY_MAX];

	hint(rc, how);
	snprintf(why, sizeof(why),
		 "cannot start the agent of node %.64s: %s%.300s",
		 node_own_name(&a->node), strerror(-rc), how);
	log_error(a->node.log, "%s", why);
	close_all(a);
	node_kill_step(&a->node, why);
}

int agent_open(struct agent **out, struct loop *loop, const struct setup *setup,
	       const struct agent_fds *fds, const struct agent_host *host,
	       const struct log_hook *log)
{
	struct agent *a = new_agent(loop, setup, host, log);
	int rc;

	*out = a;
	if (!a)
		return -ENOMEM;
	open_handles(a);
	rc = open_all(a, &setup->step, *fds);
	if (rc)
		fail_to_open(a, rc);
	return rc;
}
