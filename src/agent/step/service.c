/* SPDX-License-Identifier: BSD-3-Clause */
/* One PMI step on a node: its life, the engine's operations, and reports of neighbours. */
#include "agent/step/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/step/control_path.h"
#include "agent/step/pmix_link.h"
#include "agent/step/ranks.h"
#include "agent/step/root_services.h"
#include "agent/step/service_status.h"
#include "agent/step/slot_wakes.h"
#include "agent/step/srun_link.h"
#include "agent/step/store_link.h"
#include "agent/step/sync_door.h"
#include "agent/step/torch_door.h"
#include "agent/step/torch_tree.h"
#include "agent/step/trace.h"
#include "libcoll/layout.h"
#include "libio/fd.h"
#include "libutil/rankset.h"

#define TIDY_QUIET_MS 100     /* without an event, then work that can wait */
#define TOPOLOGY_MS 2000      /* then ranks that wait for the topology read it themselves */
#define HELD_MS 30000         /* for the step to end when a collective failed */
#define MISSING_RANKS_MAX 200 /* bytes of their list */

/* ---- operations of the engine ---- */

static void op_node_send(void *arg, uint32_t position,
			 const struct coll_msg *msg, const void *head,
			 size_t head_len, const struct payload_vec *body)
{
	struct service *s = arg;

	if (peers_send_message(s->peers, position, head, head_len, body))
		trace_sent(s, msg, head_len + (body ? body->bytes : 0));
}

static void op_node_break(void *arg, uint32_t position)
{
	struct service *s = arg;

	peers_break(s->peers, position);
}

static void op_links_wanted(void *arg)
{
	struct service *s = arg;

	peers_begin(s->peers);
}

static void on_tidy(uv_timer_t *timer)
{
	struct service *s = timer->data;

	if (pmi_server_tidy(s->server)) /* events have their turn in between */
		uv_timer_start(timer, on_tidy, 1, 0);
}

static void op_tidy_later(void *arg, bool soon)
{
	uint64_t ms = soon ? 1 : TIDY_QUIET_MS;
	struct service *s = arg;

	/* Puts that follow one another do not put it off. */
	if (soon && uv_is_active((uv_handle_t *)&s->tidy) &&
	    uv_timer_get_due_in(&s->tidy) <= ms)
		return;
	uv_timer_start(&s->tidy, on_tidy, ms, 0);
}

static uint64_t op_now(void *arg)
{
	const struct service *s = arg;

	return node_now(s->node);
}

static void on_fetch(uv_timer_t *timer)
{
	const struct service *s = timer->data;

	pmi_server_fetch_due(s->server);
}

static void op_fetch_timer(void *arg, uint64_t ms)
{
	struct service *s = arg;

	uv_timer_start(&s->fetch, on_fetch, ms, 0);
}

static void on_held(uv_timer_t *timer)
{
	struct service *s = timer->data;

	log_error(s->node->log, "Slurm has not ended step %s yet: its ranks now get the error of the failed collective",
		  s->step->jobid);
	pmi_server_answer_failed(s->server);
}

static void op_end_step(void *arg, const char *why, int code)
{
	struct service *s = arg;

	control_path_end_step(s, why, code);
	uv_timer_start(&s->held, on_held, HELD_MS, 0);
}

/* ---- what the host finds out ---- */

static void on_topology_limit(uv_timer_t *timer)
{
	struct service *s = timer->data;

	log_info(s->node->log, "the topology file of node %s is not ready after %d ms: each rank there reads the topology itself",
		 node_name(s->node, s->step->position), TOPOLOGY_MS);
	pmi_server_topology(s->server, NULL);
}

static void op_topology_wanted(void *arg)
{
	struct service *s = arg;

	uv_timer_start(&s->topology, on_topology_limit, TOPOLOGY_MS, 0);
	s->node->host->want_topology(s->node->host->arg);
}

void service_topology_known(struct service *s, const char *path)
{
	uv_timer_stop(&s->topology);
	pmi_server_topology(s->server, path);
}

/* The engine is not called from within its own call. */
static void on_holder(uv_timer_t *timer)
{
	struct service *s = timer->data;

	pmi_server_holder_found(s->server, holder_find(&s->holder_question));
}

static void op_find_holder(void *arg, const unsigned char *socket, uint32_t near,
			   bool all)
{
	struct service *s = arg;
	struct holder_question *q = &s->holder_question;
	const struct agent_host *host = s->node->host;

	*q = (struct holder_question){ .uid = getuid(), .near = (pid_t)near, .all = all };
	owner_unpack(socket, &q->peer);
	if (!host->find_holder || host->find_holder(host->arg, q))
		uv_timer_start(&s->holder, on_holder, 0, 0);
}

void service_holder_found(struct service *s, int found)
{
	pmi_server_holder_found(s->server, found);
}

static const struct pmi_host_ops engine_ops = {
	.client_send = ranks_send,
	.client_close = ranks_finish,
	.node_send = op_node_send,
	.node_break = op_node_break,
	.links_wanted = op_links_wanted,
	.control_send = control_path_send,
	.slots_wake = slot_wakes_wake,
	.slots_again = slot_wakes_again,
	.tidy_later = op_tidy_later,
	.pmix_send = pmix_link_send,
	.process = ranks_process,
	.pmi_rank = ranks_pmi_rank,
	.find_holder = op_find_holder,
	.now = op_now,
	.fetch_timer = op_fetch_timer,
};

/* ---- what neighbours and srun report ---- */

static void on_up(void *arg, uint32_t position)
{
	struct service *s = arg;

	trace_link(s);
	control_path_unneeded(s);
	pmi_server_link_up(s->server, position);
}

static bool ranks_wait(const struct service *s)
{
	return !s->leaving && (pmi_server_pending(s->server) || store_waiting(s->store));
}

static bool waits(void *arg)
{
	const struct service *s = arg;

	return ranks_wait(s) || (!s->leaving && torch_tree_waits(s));
}

/*
 * A node that goes without goodbye was killed, or its host is down: nobody else tells
 * srun, which would wait for that node's ranks forever. A node that never was there
 * may have ranks that use no PMI: its absence matters only to ranks that wait for it.
 * Ranks that wait for ports begin without these.
 * With --no-kill only collectives that need the node fail.
 */
static bool ends_step(struct service *s, const struct peer_gone *gone)
{
	if (s->node->options->no_kill)
		return false;
	switch (gone->end) {
	case PEER_BROKEN: return true;
	case PEER_UNREACHED: return ranks_wait(s);
	case PEER_SILENT: return !gone->is_parent;
	default: return false;
	}
}

static void on_gone(void *arg, const struct peer_gone *gone)
{
	struct service *s = arg;
	bool ends = ends_step(s, gone);

	if (gone->is_parent) {
		control_path_parent_gone(s, gone);
		service_status_no_parent(s);
	}
	control_path_unneeded(s);
	/* Collectives that fail by it are reported with this reason, once for all nodes. */
	pmi_server_link_lost(s->server, gone->position,
			     gone->end == PEER_LEFT || gone->end == PEER_SILENT,
			     gone->why);
	store_link_gone(s, gone);
	if (ends)
		control_path_end_step(s, gone->why, 1);
}

static int on_message(void *arg, uint32_t from, const struct coll_msg *msg,
		      struct payload *body)
{
	struct service *s = arg;

	return pmi_server_node_input(s->server, from, msg, body);
}

static struct payload *on_room(void *arg, uint32_t from,
			       const struct coll_msg *msg, size_t len)
{
	struct service *s = arg;

	return pmi_server_node_room(s->server, from, msg, len);
}

/* From the parent, or from srun. */
static int on_control_down(void *arg, struct payload *frame)
{
	struct service *s = arg;
	struct control_msg msg;
	int rc = control_unpack(frame->data, frame->len, &msg);

	if (rc)
		return rc;
	switch (msg.type) {
	case CONTROL_QUERY:
		service_status_query(s, msg.id, frame);
		break;
	case CONTROL_EXPIRE:
		rc = service_status_expire(s, &msg);
		break;
	case CONTROL_STARTED:
		rc = peers_started(s->peers, msg.id);
		break;
	case CONTROL_REPLY:
		control_path_reply(s, msg.origin, msg.id, frame);
		break;
	default:
		rc = -EPROTO;
	}
	control_free(&msg);
	return rc;
}

static void describe_missing(void *arg, uint32_t position, bool killed,
			     char *why, size_t size)
{
	const struct service *s = arg;
	char list[MISSING_RANKS_MAX];
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(s->step->layout, position,
						&count);

	rankset_format(ranks, count, list, sizeof(list));
	if (killed)
		snprintf(why, size,
			 "lost the slurmstepd of node %s (rank%s %s) before the node was connected",
			 node_name(s->node, position), count > 1 ? "s" : "",
			 list);
	else
		snprintf(why, size,
			 "rank%s %s (node %s) exited before the node was connected",
			 count > 1 ? "s" : "", list,
			 node_name(s->node, position));
}

const struct peers_ops service_peers_ops = {
	.up = on_up,
	.unsent = control_path_unsent,
	.gone = on_gone,
	.message = on_message,
	.room = on_room,
	.control_up = control_path_from_child,
	.control_down = on_control_down,
	.store = store_link_message,
	.waits = waits,
	.will_connect = srun_link_will_connect,
	.ask_started = control_path_ask_started,
	.describe_missing = describe_missing,
};

static const struct srun_link_ops srun_ops = {
	.up = control_path_srun_up,
	.frame = on_control_down,
	.failed = control_path_srun_failed,
};

void service_control(struct service *s, struct payload *frame)
{
	(void)on_control_down(s, frame);
}

/* ---- leaving ---- */

void service_prepare_leave(struct service *s)
{
	s->leaving = true;
}

bool service_is_done(const struct service *s)
{
	return ranks_have_ended(s) && !pmi_server_pending(s->server);
}

/* ---- life ---- */

/* `region` is taken over. */
static int create_server(struct service *s, int region)
{
	uint64_t size = s->node->options->region_size;
	int rc = 0;

	if (region >= 0)
		rc = region_writer_create_in(&s->region, region, size);
	if (rc)
		log_error(s->node->log,
			  "cannot create %llu bytes of shared memory: %s",
			  (unsigned long long)size, strerror(-rc));
	rc = rc ? rc : pmi_server_create(&s->server, s->step, s->region,
					 &s->ops, s, s->node->log);
	return rc ? rc : store_link_open(s);
}

static void close_fds(struct agent_fds fds)
{
	fd_close(&fds.registration);
	fd_close(&fds.region);
	fd_close(&fds.pmix);
	fd_close(&fds.sync);
	fd_close(&fds.sync_client);
	fd_close(&fds.torch);
}

int service_create(struct service **out, struct node *node,
		   const struct pmi_step *step, const struct agent_fds *fds)
{
	struct service *s = calloc(1, sizeof(*s));
	int rc, region = fds->region;

	*out = s;
	if (!s) {
		close_fds(*fds);
		return -ENOMEM;
	}
	s->node = node;
	s->step = step;
	s->registration = fds->registration;
	s->pmix_fd = fds->pmix;
	s->sync_fds[0] = fds->sync;
	s->sync_fds[1] = fds->sync_client;
	s->torch_fd = fds->torch;
	s->srun_ops = &srun_ops;
	s->ops = engine_ops;
	if (node->options->end_on_failure)
		s->ops.end_step = op_end_step;
	if (node->host->want_topology)
		s->ops.topology_wanted = op_topology_wanted;
	rc = trace_open(s);
	if (!rc)
		return create_server(s, region);
	fd_close(&region);
	return rc;
}

const struct tree_place *service_place(const struct service *s)
{
	return pmi_server_place(s->server);
}

static int open_timers(struct service *s)
{
	int rc = uv_timer_init(loop_uv(s->node->loop), &s->tidy);

	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &s->held);
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &s->topology);
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &s->holder);
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &s->fetch);
	s->tidy.data = s->held.data = s->topology.data = s->fetch.data = s;
	s->holder.data = s;
	return rc;
}

int service_begin(struct service *s, struct peers *peers)
{
	int rc = slot_wakes_open(s);

	s->peers = peers;
	rc = rc ? rc : open_timers(s);
	rc = rc ? rc : ranks_open(s);
	rc = rc ? rc : srun_link_open(s);
	rc = rc ? rc : root_services_open(s);
	rc = rc ? rc : control_path_open(s);
	rc = rc ? rc : pmix_link_open(s);
	rc = rc ? rc : sync_door_open(s);
	rc = rc ? rc : torch_door_open(s);
	rc = rc ? rc : torch_tree_open(s, torch_door_rank_failed, torch_door_used);
	return rc ? rc : service_status_open(s);
}

void service_stop(struct service *s)
{
	if (!s)
		return;
	s->leaving = true;
	slot_wakes_close(s);
	service_status_close(s);
	control_path_close(s);
	srun_link_close(s);
	root_services_close(s);
	pmix_link_close(s);
	sync_door_close(s);
	torch_door_close(s);
	torch_tree_close(s);
	ranks_close(s);
	node_close_handle(&s->tidy);
	node_close_handle(&s->held);
	node_close_handle(&s->topology);
	node_close_handle(&s->holder);
	node_close_handle(&s->fetch);
}

void service_destroy(struct service *s)
{
	if (!s)
		return;
	control_path_free(s);
	srun_link_free(s);
	root_services_free(s);
	pmix_link_free(s);
	sync_door_free(s);
	torch_door_free(s);
	torch_tree_free(s);
	store_link_free(s);
	ranks_free(s);
	pmi_server_destroy(s->server);
	slot_wakes_free(s);
	trace_free(s);
	service_status_free(s);
	region_writer_destroy(s->region);
	fd_close(&s->registration);
	fd_close(&s->pmix_fd);
	fd_close(&s->sync_fds[0]);
	fd_close(&s->sync_fds[1]);
	fd_close(&s->torch_fd);
	free(s);
}
