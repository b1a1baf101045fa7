/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's end of a step: a thread in which agents' links, spawned sruns and the
 * srun that spawned this one meet the launcher. The sruns are in srun_server_spawn.c.
 *
 * Life, as `phase`:
 *   RUNNING -> WAITING (srun_server_stop; for children) -> TERMINATING (they got
 *   SIGTERM) -> DRAINING (no children; for what agents have still sent) ->
 *   CLOSED. Each phase after RUNNING ends when what it waits for is gone, or
 *   by its deadline.
 */
#include "srun/srun_server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <utlist.h>

#include "libio/protocol.h"
#include "srun/srun_server_internal.h"

/* ---- agents ---- */

static void drop_stranger(void *owner)
{
	struct agent_link *a = owner;

	strangers_leave(&a->server->strangers, &a->stranger);
	link_close(a->link);
	free(a);
}

static void drop_agent(struct srun_server *h, struct agent_link *a)
{
	step_services_link_lost(h->launcher, &a->asker);
	DL_DELETE(h->agents, a);
	link_close(a->link);
	free(a);
}

static void name_of(const struct srun_server *h, const struct link *l,
		    char out[80])
{
	uint32_t position = link_peer(l)->position;

	if (h->host.nodes)
		snprintf(out, 80, "node %.64s",
			 h->host.node_name(h->host.arg, position));
	else
		snprintf(out, 80, "the node of index %u", position);
}

static void met_build(struct srun_server *h, const struct link *l)
{
	char them[80];

	if (h->met_other_build ||
	    !handshake_other_build(link_peer(l), &h->self))
		return;
	h->met_other_build = true;
	name_of(h, l, them);
	log_debug(h->log, "%s runs build %s, srun build %s; both speak protocol %u",
		  them, link_peer(l)->build, h->self.build, h->self.protocol);
}

static void met_protocol(struct srun_server *h, const struct link *l)
{
	char them[80], why[512];

	if (h->met_other_protocol)
		return;
	h->met_other_protocol = true;
	name_of(h, l, them);
	handshake_explain(why, sizeof(why), them, link_peer(l), "srun",
			  &h->self);
	log_error(h->log, "%s", why);
}

static void on_proved(void *arg, struct link *l)
{
	struct agent_link *a = arg;
	struct srun_server *h = a->server;

	met_build(h, l);
	strangers_leave(&h->strangers, &a->stranger);
	DL_APPEND(h->agents, a);
	srun_server_status_joined(a);
}

static void expire(struct srun_server *h);

static void on_names_due(uv_timer_t *timer)
{
	expire(timer->data);
}

static void expire(struct srun_server *h)
{
	uint64_t now = uv_now(loop_uv(h->loop));
	uint64_t due = step_services_expire(h->launcher, now);

	if (due == UINT64_MAX)
		uv_timer_stop(&h->names_due);
	else
		uv_timer_start(&h->names_due, on_names_due, due - now, 0);
}

int srun_server_receive(struct srun_server *h, struct asker *from, const void *data,
			size_t len)
{
	int rc = step_services_receive(h->launcher, from, data, len);

	expire(h);
	return rc;
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct agent_link *a = arg;

	if (type == FRAME_GOODBYE) {
		a->left = true; /* its end follows */
		return 0;
	}
	if (type != FRAME_CONTROL_UP)
		return -EPROTO;
	a->heard = true;
	return srun_server_receive(a->server, &a->asker, body->data, body->len);
}

static void on_deadline(uv_timer_t *timer);

/*
 * An agent that goes without a goodbye has been killed. Its neighbours say so as well,
 * and what has failed; but it may have none any more, and srun would wait for its ranks
 * forever, which it does when its user wants that.
 */
static void agent_lost(struct agent_link *a, int error)
{
	struct srun_server *h = a->server;
	uint32_t position = link_peer(a->link)->position;

	if (h->no_kill || a->left || h->phase != RUNNING || h->lost[0] ||
	    !h->host.nodes || !h->host.abort)
		return;
	snprintf(h->lost, sizeof(h->lost),
		 "lost the connection to node %.64s: %s",
		 h->host.node_name(h->host.arg, position),
		 link_strerror(error));
	uv_timer_start(&h->deadline, on_deadline, SRUN_SERVER_LOST_MS, 0);
}

static void on_link_end(void *arg, struct link *l, int error)
{
	struct agent_link *a = arg;
	struct srun_server *h = a->server;

	if (error == -EPROTONOSUPPORT)
		met_protocol(h, l);
	else if (error && link_is_proved(l))
		log_debug(h->log, "the link to the node of index %u ended: "
			  "%s", link_peer(l)->position, link_strerror(error));
	if (link_is_proved(l)) {
		agent_lost(a, error);
		drop_agent(h, a);
	} else {
		strangers_ended(&h->strangers, &a->stranger, error);
		drop_stranger(a);
	}
	srun_server_advance(h);
}

static void on_connection(void *arg, int fd)
{
	static const struct link_ops ops = {
		.proved = on_proved,
		.frame = on_frame,
		.end = on_link_end,
	};
	struct srun_server *h = arg;
	const struct link_options options = {
		.handshake_ms = h->handshake_ms,
		.dead_peer_ms = SRUN_SERVER_DEAD_PEER_MS,
	};
	struct agent_link *a = calloc(1, sizeof(*a));

	if (!a) {
		close(fd);
		return;
	}
	a->asker.send = srun_server_send_to_agent;
	a->server = h;
	strangers_join(&h->strangers, &a->stranger, a, &a->link);
	if (link_accept(&a->link, loop_uv(h->loop), &h->self, fd, &options,
			&ops, a))
		drop_stranger(a);
}

/* ---- what the launcher wants done ---- */

static void do_reply(void *arg, void *link, const void *data, size_t len)
{
	struct asker *asker = link;

	asker->send(asker, data, len);
}

static void do_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct srun_server *h = arg;

	h->aborted = true;
	if (rank == CONTROL_KEY_WAITS) {
		srun_server_status_end_step(h, code, text);
		return;
	}
	h->host.abort(h->host.arg, rank, code, text);
}

static void do_report(void *arg, const char *text)
{
	struct srun_server *h = arg;

	h->host.report(h->host.arg, text);
}

/* A note is no reason for the end of the step. */
static void do_note(void *arg, const char *text)
{
	const struct srun_server *h = arg;

	log_error(h->log, "%s", text);
}

static void do_gave_up(void *arg)
{
	struct srun_server *h = arg;

	if (h->host.gave_up)
		h->host.gave_up(h->host.arg);
}

static void do_trace(void *arg, uint32_t position, const void *data, size_t len)
{
	struct srun_server *h = arg;

	h->host.trace(h->host.arg, position, data, len);
}

static bool do_started(void *arg, uint32_t position)
{
	struct srun_server *h = arg;

	return h->host.started && h->host.started(h->host.arg, position);
}

/* ---- the end ---- */

static void destroy(struct srun_server *h)
{
	loop_destroy(h->loop);
	step_services_destroy(h->launcher);
	secret_forget(&h->self.secret);
	free(h->jobid);
	free(h->build);
	free(h);
}

static void close_all(struct srun_server *h)
{
	struct agent_link *a, *next_agent;

	h->phase = CLOSED;
	DL_FOREACH_SAFE(h->agents, a, next_agent)
		drop_agent(h, a);
	srun_server_spawn_close(h);
	strangers_close(&h->strangers);
	srun_server_status_close(h);
	listener_close(h->listener);
	uv_close((uv_handle_t *)&h->deadline, NULL);
	uv_close((uv_handle_t *)&h->names_due, NULL);
	uv_close((uv_handle_t *)&h->stop, NULL);
	uv_close((uv_handle_t *)&h->settled, NULL);
}

static void enter(struct srun_server *h, enum phase phase, uint32_t ms)
{
	h->phase = phase;
	if (ms == UINT32_MAX)
		uv_timer_stop(&h->deadline);
	else
		uv_timer_start(&h->deadline, on_deadline, ms, 0);
}

static bool traces_missing(const struct srun_server *h)
{
	return h->host.traces_missing && h->host.traces_missing(h->host.arg);
}

/* A link over which nothing has come is open for our own questions only. */
static bool hears_agents(const struct srun_server *h)
{
	const struct agent_link *a;

	DL_FOREACH(h->agents, a)
		if (a->heard)
			return true;
	return h->strangers.count;
}

void srun_server_advance(struct srun_server *h)
{
	if ((h->phase == WAITING || h->phase == TERMINATING) && !h->children)
		enter(h, DRAINING,
		      traces_missing(h) ? SRUN_SERVER_TRACE_MS :
					  SRUN_SERVER_DRAIN_MS);
	if (h->phase == DRAINING && !hears_agents(h) && !traces_missing(h))
		close_all(h);
}

static void on_deadline(uv_timer_t *timer)
{
	struct srun_server *h = timer->data;

	if (h->phase == RUNNING) {
		do_abort(h, CONTROL_NO_RANK, 1, h->lost);
	} else if (h->phase == WAITING) {
		enter(h, TERMINATING, SRUN_SERVER_TERM_MS);
		srun_server_spawn_terminate(h);
	} else if (h->phase == TERMINATING) {
		enter(h, DRAINING, SRUN_SERVER_DRAIN_MS);
		srun_server_advance(h);
	} else {
		close_all(h);
	}
}

/* All that was ready together with the stop has been handled: see what is left. */
static void on_settled(uv_check_t *settled)
{
	struct srun_server *h = settled->data;

	uv_check_stop(settled);
	srun_server_status_flush(h);
	srun_server_step_ended(h, h->jobid);
	if (srun_server_spawn_end_unwanted(h))
		enter(h, WAITING, h->wait_ms);
	else
		enter(h, TERMINATING, SRUN_SERVER_TERM_MS);
	srun_server_advance(h);
}

static void on_stop(uv_async_t *stop)
{
	struct srun_server *h = stop->data;

	uv_check_start(&h->settled, on_settled);
}

void srun_server_stop(struct srun_server *h, uint32_t wait_ms)
{
	if (!h)
		return;
	h->wait_ms = wait_ms;
	uv_async_send(&h->stop);
	loop_join(h->loop);
	destroy(h);
}

/* ---- the beginning ---- */

static int listen_in_range(struct srun_server *h,
			   const struct srun_server_options *o)
{
	static const struct sockaddr_storage everywhere;
	uint32_t count = o->port_first ? o->port_last - o->port_first + 1 : 1;
	int fd = -EADDRINUSE;

	for (uint32_t i = 0; i < count && fd == -EADDRINUSE; i++) {
		uint16_t port = 0;

		if (o->port_first)
			port = seeded_port(o->port_seed, i, o->port_first,
					   o->port_last);
		fd = listener_socket(&everywhere, port, &h->port);
	}
	if (fd < 0)
		log_error(h->log, "cannot listen on a port of %u-%u: %s; are "
			  "more ports needed in SrunPortRange of slurm.conf?",
			  o->port_first, o->port_last, strerror(-fd));
	return fd;
}

/* 0 where the system has no random bytes yet does no harm but to protection. */
static uint64_t hash_seed(void)
{
	uint64_t seed = 0;

	(void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
	return seed;
}

static int create_launcher(struct srun_server *h, bool has_parent)
{
	bool has_trace = h->host.trace != NULL;
	const struct step_services_ops ops = {
		.reply = do_reply,
		.spawn = srun_server_spawn,
		.abort = do_abort,
		.report = do_report,
		.note = do_note,
		.gave_up = do_gave_up,
		.trace = has_trace ? do_trace : NULL,
		.stall = srun_server_stall,
		.status = srun_server_status,
		.started = do_started,
		.ready = srun_server_ready,
		.not_ready = srun_server_not_ready,
		.forward = has_parent ? srun_server_forward : NULL,
	};

	return step_services_create(&h->launcher, &ops, h, hash_seed(), h->log);
}

static int create(struct srun_server **out, const struct srun_server_options *o,
		  const struct srun_server_host *host,
		  const struct log_hook *log)
{
	struct srun_server *h = calloc(1, sizeof(*h));
	int rc = -ENOMEM;

	if (!h)
		return rc;
	h->jobid = strdup(o->jobid);
	h->build = strdup(o->build);
	h->self.jobid = h->jobid;
	h->self.build = h->build;
	secret_hide(&h->self.secret);
	h->self.secret = o->secret;
	h->self.position = HANDSHAKE_SRUN;
	h->self.protocol = PROTOCOL_VERSION;
	h->host = *host;
	h->log = log;
	strangers_init(&h->strangers, SRUN_SERVER_STRANGERS_MAX, drop_stranger, log);
	h->handshake_ms = o->handshake_ms;
	h->no_kill = o->no_kill;
	if (h->jobid && h->build)
		rc = create_launcher(h, o->parent_fd >= 0);
	rc = rc ? rc : loop_create(&h->loop);
	if (rc) {
		destroy(h);
		return rc;
	}
	uv_timer_init(loop_uv(h->loop), &h->deadline);
	uv_timer_init(loop_uv(h->loop), &h->names_due);
	uv_async_init(loop_uv(h->loop), &h->stop, on_stop);
	uv_check_init(loop_uv(h->loop), &h->settled);
	uv_timer_init(loop_uv(h->loop), &h->status.deadline);
	h->deadline.data = h->names_due.data = h->stop.data = h->settled.data = h;
	h->status.deadline.data = h;
	*out = h;
	return 0;
}

int srun_server_start(struct srun_server **out,
		      const struct srun_server_options *o,
		      const struct srun_server_host *host,
		      const struct log_hook *log)
{
	struct srun_server *h;
	int fd, rc = create(&h, o, host, log);

	if (rc) {
		if (o->parent_fd >= 0)
			close(o->parent_fd);
		log_error(log, "srun cannot start its PMI service: %s",
			  strerror(-rc));
		return rc;
	}
	rc = srun_server_spawn_open(h, o->parent_fd);
	if (rc)
		goto fail;
	srun_server_status_open(h);
	rc = fd = listen_in_range(h, o);
	if (fd < 0)
		goto fail;
	rc = listener_open(&h->listener, loop_uv(h->loop), fd, on_connection,
			   h);
	if (!rc)
		rc = loop_start(h->loop);
	if (rc)
		goto fail;
	*out = h;
	return 0;

fail:
	close_all(h);
	destroy(h);
	return rc;
}

uint16_t srun_server_port(const struct srun_server *h)
{
	return h->port;
}
