/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of a node: its life cycle, the engine's operations, draining. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent_control.h"
#include "libio/protocol.h"

const char *agent_node_name(const struct agent *a, uint32_t position)
{
	return a->step->node_names[layout_node_id(a->step->layout, position)];
}

void agent_close_handle(void *handle)
{
	uv_handle_t *h = handle;

	if (h->type != UV_UNKNOWN_HANDLE && !uv_is_closing(h))
		uv_close(h, NULL);
}

/* ---- operations of the engine ---- */

static void op_client_send(void *arg, uint32_t slot, const void *data,
			   size_t len, const struct passed_fds *fds)
{
	agent_ranks_send(arg, slot, data, len, fds);
}

static void op_client_close(void *arg, uint32_t slot)
{
	agent_ranks_finish(arg, slot);
}

static void op_node_send(void *arg, uint32_t position,
			 const struct coll_msg *msg, const void *head,
			 size_t head_len, const struct payload_vec *body)
{
	struct agent *a = arg;
	struct neighbour *n = agent_neighbour(a, position);

	if (n && !agent_links_send_message(a, n, head, head_len, body))
		agent_trace_sent(a, msg, head_len + (body ? body->bytes : 0));
}

static void op_node_break(void *arg, uint32_t position)
{
	struct neighbour *n = agent_neighbour(arg, position);

	if (n && n->state != NEIGHBOUR_LEFT && n->state != NEIGHBOUR_LOST)
		agent_wireup_send_failed(n, -ENOMEM);
}

static void op_links_wanted(void *arg)
{
	agent_wireup_begin(arg);
}

static void op_control_send(void *arg, const void *data, size_t len)
{
	agent_control_send(arg, data, len);
}

static void op_slots_wake(void *arg)
{
	agent_slots_wake(arg);
}

static void op_slots_again(void *arg)
{
	agent_slots_again(arg);
}

static void on_tidy(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	if (pmi_server_tidy(a->server)) /* events have their turn in between */
		uv_timer_start(timer, on_tidy, 1, 0);
}

static void op_tidy_later(void *arg, bool soon)
{
	uint64_t ms = soon ? 1 : AGENT_QUIET_MS;
	struct agent *a = arg;

	/* Puts that follow one another do not put it off. */
	if (soon && uv_is_active((uv_handle_t *)&a->tidy) &&
	    uv_timer_get_due_in(&a->tidy) <= ms)
		return;
	uv_timer_start(&a->tidy, on_tidy, ms, 0);
}

static void on_held(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	log_error(a->log, "step %s was to be ended and has not been: its ranks hear now what has failed",
		  a->step->jobid);
	pmi_server_answer_failed(a->server);
}

static void op_end_step(void *arg, const char *why, int code)
{
	struct agent *a = arg;

	agent_control_end_step(a, why, code);
	uv_timer_start(&a->held, on_held, AGENT_HELD_MS, 0);
}

/* ---- end ---- */

static void close_all(struct agent *a)
{
	a->stage = AGENT_CLOSED;
	agent_tell_close(a);
	agent_slots_close(a);
	agent_status_close(a);
	agent_control_close(a);
	agent_links_close(a);
	agent_ranks_close(a);
	refusals_end(&a->refused);
	agent_close_handle(&a->tidy);
	agent_close_handle(&a->held);
	agent_close_handle(&a->drain_step);
	agent_close_handle(&a->drain_linger);
	agent_close_handle(&a->drain_limit);
	loop_end(a->loop);
}

/* How people can raise the limit that was met, if it was one. */
static void hint(int error, char out[AGENT_WHY_MAX])
{
	struct rlimit limit;

	out[0] = '\0';
	if (error == -EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		snprintf(out, AGENT_WHY_MAX,
			 " (the limit of this agent is %llu): raise LimitNOFILE in the unit of slurmd there, or ulimit -n where it is started, or start fewer ranks a node",
			 (unsigned long long)limit.rlim_cur);
	else if (error == -ENOMEM && !getrlimit(RLIMIT_AS, &limit) &&
		 limit.rlim_cur != RLIM_INFINITY)
		snprintf(out, AGENT_WHY_MAX,
			 " (this agent may map %llu bytes): raise LimitAS in the unit of slurmd there, or ulimit -v where it is started, or lower Pmi2xRegionSize in mpi.conf",
			 (unsigned long long)limit.rlim_cur);
	else if (error == -EFBIG)
		snprintf(out, AGENT_WHY_MAX,
			 ": raise LimitFSIZE in the unit of slurmd there, or ulimit -f where it is started, or lower Pmi2xRegionSize in mpi.conf");
	else if (error == -ENFILE)
		snprintf(out, AGENT_WHY_MAX, ": raise fs.file-max there");
}

static void on_given_up(void *arg)
{
	struct agent *a = arg;

	if (a->stage == AGENT_CLOSED)
		return;
	log_error(a->log, "%s", a->lack);
	close_all(a); /* ending the step takes descriptors, too */
	agent_tell_kill(a, a->lack);
}

void agent_give_up(struct agent *a, const char *what, int error)
{
	char how[AGENT_WHY_MAX];

	if (a->lack[0] || a->stage != AGENT_SERVING)
		return;
	hint(error, how);
	snprintf(a->lack, sizeof(a->lack), "node %.64s %.64s: %s%.300s",
		 agent_node_name(a, a->step->position), what, strerror(-error),
		 how);
	if (loop_post(a->loop, on_given_up, a))
		a->lack[0] = '\0';
}

/* What is owed to others has gone out, or cannot any more. */
static bool own_done(const struct agent *a)
{
	return agent_ranks_ended(a) && !pmi_server_pending(a->server) &&
	       agent_links_flushed(a) && agent_control_flushed(a);
}

/*
 * Before each wait of the loop: the stages of leaving, see agent_internal.h.
 * The children's last requests still pass while they close; only then the
 * parent and srun are left.
 */
static void on_drain_step(uv_prepare_t *prepare)
{
	struct agent *a = prepare->data;

	if (a->stage == AGENT_DRAIN_OWN && own_done(a)) {
		a->stage = AGENT_DRAIN_CHILDREN;
		agent_trace_send(a);
		agent_links_leave(a, false);
	}
	if (a->stage == AGENT_DRAIN_CHILDREN && agent_links_gone(a, false) &&
	    agent_links_flushed(a) && agent_control_flushed(a)) {
		a->stage = AGENT_DRAIN_PARENT;
		agent_links_leave(a, true);
		agent_control_leave(a);
	}
	if (a->stage == AGENT_DRAIN_PARENT && agent_links_gone(a, true) &&
	    agent_control_gone(a))
		close_all(a);
}

static void on_drain_limit(uv_timer_t *timer)
{
	struct agent *a = timer->data;

	log_debug(a->log, "left the step after %u ms without having finished",
		  a->options.drain_ms);
	agent_links_abandon(a);
	agent_links_leave(a, false); /* not to be taken for dead */
	agent_links_leave(a, true);
	agent_control_leave(a);
	close_all(a);
}

/* Who has not connected by now is not waited for any longer. */
static void on_drain_linger(uv_timer_t *timer)
{
	agent_links_abandon(timer->data);
}

void agent_leave(struct agent *a)
{
	if (a->stage != AGENT_SERVING) /* it could not even start */
		return;
	a->stage = AGENT_DRAIN_OWN;
	agent_links_answer(a);
	agent_links_abandon_untried(a); /* a step without PMI costs no time */
	uv_prepare_start(&a->drain_step, on_drain_step);
	uv_timer_start(&a->drain_limit, on_drain_limit, a->options.drain_ms, 0);
	uv_timer_start(&a->drain_linger, on_drain_linger, AGENT_LINGER_MS, 0);
}

/* Until srun has been told. */
static void on_told_step(uv_prepare_t *prepare)
{
	struct agent *a = prepare->data;

	if (agent_control_flushed(a))
		close_all(a);
}

void agent_host_died(struct agent *a)
{
	char why[AGENT_WHY_MAX];

	if (a->stage == AGENT_CLOSED)
		return;
	if (a->options.no_kill || control_has_parent(a)) {
		close_all(a);
		return;
	}
	snprintf(why, sizeof(why), "lost the slurmstepd of node %.64s",
		 agent_node_name(a, a->step->position));
	a->stage = AGENT_DRAIN_PARENT;
	agent_control_end_step(a, why, 1);
	uv_prepare_start(&a->drain_step, on_told_step);
	uv_timer_start(&a->drain_limit, on_drain_limit, a->options.drain_ms, 0);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	agent_tell_free(a);
	agent_control_free(a);
	agent_links_free(a);
	agent_ranks_free(a);
	pmi_server_destroy(a->server);
	agent_slots_free(a);
	agent_trace_free(a);
	agent_status_free(a);
	region_writer_destroy(a->region);
	close_fd(a->fds.registration);
	close_fd(a->fds.listener);
	close_fd(a->fds.tell);
	close_fd(a->fds.region);
	secret_forget(&a->self.secret);
	free(a);
}

/* ---- beginning ---- */

static const struct pmi_host_ops engine_ops = {
	.client_send = op_client_send,
	.client_close = op_client_close,
	.node_send = op_node_send,
	.node_break = op_node_break,
	.links_wanted = op_links_wanted,
	.control_send = op_control_send,
	.slots_wake = op_slots_wake,
	.slots_again = op_slots_again,
	.tidy_later = op_tidy_later,
};

static int create_server(struct agent *a)
{
	int rc = 0;

	if (a->fds.region >= 0)
		rc = region_writer_create_in(&a->region, a->fds.region,
					     a->options.region_size);
	a->fds.region = -1;
	if (rc)
		log_error(a->log, "cannot make %zu bytes of shared memory: %s",
			  a->options.region_size, strerror(-rc));
	return rc ? rc : pmi_server_create(&a->server, a->step, a->region,
					   &a->ops, a, a->log);
}

static int open_timers(struct agent *a)
{
	int rc = uv_prepare_init(loop_uv(a->loop), &a->drain_step);

	rc = rc ? rc : uv_timer_init(loop_uv(a->loop), &a->tidy);
	rc = rc ? rc : uv_timer_init(loop_uv(a->loop), &a->held);
	a->tidy.data = a->held.data = a;
	rc = rc ? rc : uv_timer_init(loop_uv(a->loop), &a->drain_linger);
	rc = rc ? rc : uv_timer_init(loop_uv(a->loop), &a->drain_limit);
	a->drain_step.data = a->drain_linger.data = a->drain_limit.data = a;
	return rc;
}

static int open_all(struct agent *a)
{
	int rc = agent_trace_open(a, &a->ops);

	rc = rc ? rc : create_server(a);
	rc = rc ? rc : agent_slots_open(a);
	rc = rc ? rc : open_timers(a);
	rc = rc ? rc : agent_ranks_open(a);
	rc = rc ? rc : agent_control_open(a);
	rc = rc ? rc : agent_links_open(a);
	rc = rc ? rc : agent_status_open(a);
	return rc ? rc : agent_tell_open(a);
}

static struct agent *new_agent(struct loop *loop, const struct setup *setup,
			       const struct agent_fds *fds,
			       const struct agent_host *host,
			       const struct log_hook *log)
{
	const struct pmi_step *step = &setup->step;
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->loop = loop;
	a->step = step;
	a->options = setup->options;
	a->port = setup->port;
	a->fds = *fds;
	a->host = *host;
	a->log = log;
	secret_hide(&a->self.secret);
	a->self.secret = setup->options.secret;
	secret_forget(&a->options.secret); /* one copy is enough */
	a->self.jobid = step->jobid;
	a->self.build = step->build;
	a->self.position = step->position;
	a->self.protocol = a->options.protocol ? a->options.protocol :
						 PROTOCOL_VERSION;
	a->link_options.handshake_ms = a->options.handshake_ms;
	a->link_options.dead_peer_ms = a->options.dead_peer_ms;
	a->link_options.budget = step->budget;
	refusals_init(&a->refused, log);
	a->ops = engine_ops;
	if (a->options.end_on_failure)
		a->ops.end_step = op_end_step;
	return a;
}

/* It comes too late to fail the launch: the step is ended, for its other nodes would
   wait for this one. */
static void fail_to_open(struct agent *a, int rc)
{
	char why[AGENT_WHY_MAX], how[AGENT_WHY_MAX];

	hint(rc, how);
	snprintf(why, sizeof(why),
		 "cannot start the agent of node %.64s: %s%.300s",
		 agent_node_name(a, a->step->position), strerror(-rc), how);
	log_error(a->log, "%s", why);
	close_all(a);
	agent_tell_kill(a, why);
}

int agent_open(struct agent **out, struct loop *loop, const struct setup *setup,
	       const struct agent_fds *fds, const struct agent_host *host,
	       const struct log_hook *log)
{
	struct agent *a = new_agent(loop, setup, fds, host, log);
	int rc;

	*out = a;
	if (!a)
		return -ENOMEM;
	rc = open_all(a);
	if (rc)
		fail_to_open(a, rc);
	return rc;
}
