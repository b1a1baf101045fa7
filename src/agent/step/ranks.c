/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a node, once one of them uses PMI: their requests, their ends, and late
 * registrations.
 */
#include "agent/step/ranks.h"
#include "agent/step/srun_link.h"
#include "agent/step/store_link.h"
#include "agent/step/torch_door.h"
#include "agent/step/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/environ.h"
#include "agent/stopped.h"
#include "agent/unspoken.h"
#include "libcoll/layout.h"
#include "libio/peer.h"
#include "libio/registration.h"
#include "libio/stream.h"

#define RANK_READ_BYTES 65536 /* read from a rank at once */
#define RANK_QUEUE_MAX ((size_t)64 << 20) /* bytes of answers it has not read */
#define RANK_PAUSE_BYTES ((size_t)1 << 20) /* of responses: with more, the rank's requests wait */
#define RANK_LAST_INPUT (2 * PMI_INPUT_MAX) /* bytes read after its end */
/* Milliseconds on a machine that is overloaded: */
#define RANK_CLOSED_MS 1000 /* from the end of a connection to its process's */
#define RANK_EXIT_MS 3000  /* from that until the parent can say how */
#define RANK_ANOTHER_MS 10 /* from the end of a connection to that of a next program */
#define RANK_REFUSED_MS 1000 /* until a refused process is answered, or exits after an abort */
#define RANK_LOOK_MS 50    /* between two looks whether that is over */

struct rank {
	struct service *service;
	uint32_t slot;
	bool registered;
	bool spoken;           /* has sent something */
	struct stream *stream; /* NULL: none yet, or closed */
	uv_poll_t exit;        /* of the pidfd */
	int pidfd;             /* -1: not watched */
	bool exited;           /* the process has */
	bool leaving;          /* the engine has not been told of an end */
	bool gone;             /* the engine knows that the process has ended */
	uint64_t since;        /* leaving: loop time, ms */
	uint64_t closed;       /* loop time, ms, of the connection's end; 0: it is open */
	char closed_by[PMI_PROCESS_NAME_MAX]; /* the process, which lived on; or "" */
	pid_t process;         /* of the rank, when its connection ended; 0: unknown */
	uint64_t refused;      /* a second process was refused or aborted then; 0: none */
};

struct ranks {
	struct rank *slots;
	uint32_t count;
	bool told_unspoken;
	struct epoll_set *epoll; /* of all ranks' connections */
	uv_poll_t registration;
	uv_timer_t limit; /* of waiting to hear how those have ended that leave */
	char input[RANK_READ_BYTES]; /* used during one callback only */
};

/* ---- who leaves ---- */

/* The process has done more since its connection ended than exit, or runs programs. */
static bool runs_another(const struct rank *r)
{
	const struct service *s = r->service;

	return r->closed && (node_now(s->node) - r->closed >= RANK_ANOTHER_MS ||
			     pmi_server_client_is_outlived(s->server, r->slot,
						  (uint32_t)r->process));
}

/* The engine, or the TCPStore, needs to know how the process has ended, and somebody knows. */
static bool is_asked_for(const struct rank *r)
{
	const struct service *s = r->service;

	return s->node->host->ask_rank_end &&
	       (pmi_server_client_end_matters(s->server, r->slot) || runs_another(r) ||
		s->node->options->torch ||
		(!r->spoken && s->node->options->wrapper != WRAPPER_NONE));
}

/* Nobody will ever say that the process has ended: the connection's end has to do. */
static bool is_unwatched(const struct rank *r)
{
	return r->pidfd < 0 && !r->service->node->host->ask_rank_end;
}

/*
 * How long the engine can wait to hear more. Most connections end with their process:
 * what is told then travels to all nodes once, and not twice.
 */
static uint64_t patience(const struct rank *r)
{
	if (r->exited)
		return is_asked_for(r) ? RANK_EXIT_MS : 0;
	return is_unwatched(r) ? 0 : RANK_CLOSED_MS;
}

/* All ranks of the node have come, and have gone without a word. */
static bool all_unspoken(const struct ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct rank *r = &ranks->slots[i];

		if (!r->registered || r->spoken || r->stream)
			return false;
	}
	return true;
}

/*
 * At once: slurmstepd shows the user no more lines once it has waited for the last of
 * them. Another node's ranks may have spoken: it has connected then.
 */
static void tell_unspoken(const struct service *s)
{
	struct ranks *ranks = s->ranks;

	if (!s->node->options->tell_unspoken || ranks->told_unspoken ||
	    pmi_server_used(s->server) || !all_unspoken(ranks) || !peers_untouched(s->peers))
		return;
	ranks->told_unspoken = true;
	unspoken_say(s->node->log, layout_ranks(s->node->layout));
}

static uint32_t rank_number(const struct rank *r)
{
	const struct pmi_step *step = r->service->step;
	uint32_t count;

	return layout_ranks_at(step->layout, step->position, &count)[r->slot];
}

/*
 * Tell the engine; `end` is NULL when it is not known how. A process that lives on has
 * closed its connection only.
 */
static void tell_leaving(struct rank *r, const struct pmi_exit *end)
{
	struct pmi_server *server = r->service->server;
	struct pmi_exit known = end ? *end : (struct pmi_exit){ 0 };

	known.lived_on = runs_another(r);
	known.closed_by = r->closed_by[0] ? r->closed_by : NULL;
	known.process = (uint32_t)r->process;
	known.lacked_fd = end && cause_may_lack_fd(end, r->service->node->options->wrapper);
	r->leaving = false;
	r->gone = end || r->exited || is_unwatched(r);
	if (r->gone) {
		store_link_rank_gone(r->service, rank_number(r), end);
		torch_door_rank_ended(r->service, rank_number(r), end);
	}
	if (r->gone)
		pmi_server_client_exit(server, r->slot, end ? &known : NULL);
	else
		pmi_server_client_eof(server, r->slot);
}

static bool is_due(const struct rank *r)
{
	return node_now(r->service->node) - r->since >= patience(r);
}

static void answer_refused(struct rank *r)
{
	struct pmi_server *server = r->service->server;
	uint64_t now = node_now(r->service->node);

	if (!r->refused || now - r->refused < RANK_REFUSED_MS)
		return;
	pmi_server_client_answer_refused(server, r->slot);
	r->refused = pmi_server_client_refused(server, r->slot) ? now : 0;
}

static void on_limit(uv_timer_t *timer)
{
	struct ranks *ranks = timer->data;
	bool any = false;

	for (uint32_t i = 0; i < ranks->count; i++) {
		struct rank *r = &ranks->slots[i];

		if (r->leaving && is_due(r))
			tell_leaving(r, NULL);
		answer_refused(r);
		any |= r->leaving || r->refused;
	}
	if (any)
		uv_timer_start(timer, on_limit, RANK_LOOK_MS, 0);
}

/*
 * The connection ends, then the process, and last its parent learns how. The engine
 * is told once, with all of it, for the reason travels to every node at once; but of a
 * process that lives on, first of the one and later of the other.
 */
static void rank_leaves(struct rank *r)
{
	struct service *s = r->service;
	const struct agent_host *host = s->node->host;

	tell_unspoken(s);
	if (r->gone) /* the host has said so meanwhile */
		return;
	r->leaving = true;
	r->since = node_now(s->node);
	if (is_asked_for(r) || (host->ask_rank_end && !r->exited && r->pidfd < 0))
		host->ask_rank_end(host->arg, r->slot);
	if (r->leaving && !patience(r))
		tell_leaving(r, NULL);
	if (!r->leaving)
		return;
	pmi_server_client_hung_up(s->server, r->slot);
	uv_timer_start(&s->ranks->limit, on_limit, RANK_LOOK_MS, 0);
}

/* ---- a rank's connection ---- */

static size_t on_room(void *arg, void **at)
{
	struct rank *r = arg;

	*at = r->service->ranks->input;
	return sizeof(r->service->ranks->input);
}

static void on_input(void *arg, size_t n)
{
	struct rank *r = arg;
	struct service *s = r->service;

	r->spoken = true;
	pmi_server_client_writes(s->server, r->slot, stream_sender(r->stream));
	pmi_server_client_input(s->server, r->slot, s->ranks->input, n);
	if (!r->refused && pmi_server_client_refused(s->server, r->slot)) {
		r->refused = node_now(s->node);
		uv_timer_start(&s->ranks->limit, on_limit, RANK_LOOK_MS, 0);
	}
	if (r->stream && pmi_server_client_is_midway(s->server, r->slot))
		stream_release(r->stream);
}

static void close_stream(struct rank *r)
{
	stream_close(r->stream);
	r->stream = NULL;
}

/* The closer may exit soon, and srun with it: connect to srun before that. */
static void expect_closer(struct rank *r, const char *name)
{
	snprintf(r->closed_by, sizeof(r->closed_by), "%s", name);
	srun_link_connect(r->service);
}

/*
 * A process that is ending closes all that it has, and is not noted. Nor is one of
 * another node than the first, which reports for all.
 */
static void note_closer(struct rank *r)
{
	const struct service *s = r->service;
	char name[PMI_PROCESS_NAME_MAX];
	pid_t pid = r->spoken || s->step->position ? 0 : ranks_pid(s, r->slot);

	if (pid && process_lives(pid, name, sizeof(name)))
		expect_closer(r, name);
}

/* The process that started the agent may have seen what cannot be seen any more. */
static void take_closer(struct rank *r)
{
	const struct agent_options *o = r->service->node->options;

	if (o->closed_by && o->closed_slot == r->slot)
		expect_closer(r, o->closed_by);
}

static void on_end(void *arg, int error)
{
	struct rank *r = arg;

	if (error == -ENOBUFS)
		log_error(r->service->node->log,
			  "closed the connection of rank %u: the rank sends requests and does not read the answers",
			  rank_number(r));
	note_closer(r);
	r->process = ranks_pid(r->service, r->slot);
	close_stream(r);
	r->closed = node_now(r->service->node);
	rank_leaves(r);
}

static int open_stream(struct rank *r, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = {
		.queue = RANK_QUEUE_MAX,
		.pause = RANK_PAUSE_BYTES,
	};

	return stream_open_held(&r->stream, loop_uv(r->service->node->loop),
				r->service->ranks->epoll, fd, &limits, &ops, r);
}

/* ---- a rank's end ---- */

static void stop_watching(struct rank *r)
{
	if (r->pidfd < 0)
		return;
	node_close_handle(&r->exit);
	close(r->pidfd);
	r->pidfd = -1;
}

/* Read what the process wrote last, but wait for no grandchild that may still write. */
static void finish_process(struct rank *r)
{
	stop_watching(r);
	r->exited = true;
	if (r->stream)
		stream_read_now(r->stream, RANK_LAST_INPUT);
	if (r->stream)
		close_stream(r);
}

static void rank_exited(struct rank *r)
{
	finish_process(r);
	rank_leaves(r);
}

/* The host reports how a process ended, so it has ended. */
void ranks_ended(struct service *s, uint32_t slot, const struct pmi_exit *end)
{
	struct rank *r = &s->ranks->slots[slot];

	if (slot >= s->ranks->count || !r->registered || r->gone)
		return;
	if (!r->exited)
		finish_process(r);
	tell_leaving(r, end);
}

static void on_exit_poll(uv_poll_t *poll, int status, int events)
{
	rank_exited(poll->data);
}

/*
 * There is no pidfd: ask the host now to report the process's end. Its children may keep
 * the connection open.
 */
static void watch_by_host(const struct rank *r)
{
	const struct agent_host *host = r->service->node->host;

	if (host->ask_rank_end)
		host->ask_rank_end(host->arg, r->slot);
}

/* Takes over the pidfd, or the reason why there is none. */
static void watch(struct rank *r, int pidfd)
{
	if (pidfd == -ESRCH) {
		rank_exited(r);
		return;
	}
	if (pidfd >= 0 &&
	    uv_poll_init(loop_uv(r->service->node->loop), &r->exit, pidfd)) {
		close(pidfd);
		pidfd = -1;
	}
	if (pidfd < 0) {
		watch_by_host(r);
		return;
	}
	r->pidfd = pidfd;
	r->exit.data = r;
	uv_poll_start(&r->exit, UV_READABLE, on_exit_poll);
}

/* ---- registration ---- */

/* 0, or a negative errno after a line in the log. Takes over fd and pidfd. */
static int serve(struct rank *r, int fd, int pidfd)
{
	int rc = open_stream(r, fd);

	if (rc) {
		log_error(r->service->node->log, "cannot serve rank %u: %s",
			  rank_number(r), strerror(-rc));
		node_give_up(r->service->node, "cannot serve a rank", rc);
		if (pidfd >= 0)
			close(pidfd);
		return rc;
	}
	r->registered = true;
	take_closer(r);
	pmi_server_client_open(r->service->server, r->slot);
	watch(r, pidfd);
	return 0;
}

void ranks_register(struct service *s, struct registration *reg)
{
	struct ranks *ranks = s->ranks;

	trace_registered(s, reg);
	if (reg->lost)
		node_give_up(s->node, "cannot accept the connection of a rank",
			      -EMFILE);
	if (reg->fd < 0)
		return;
	if (reg->slot >= ranks->count || ranks->slots[reg->slot].registered)
		registration_refuse(reg, reg->slot < ranks->count, s->node->log);
	else
		serve(&ranks->slots[reg->slot], reg->fd,
		      registration_process(reg));
	reg->fd = reg->pidfd = -1;
}

static void on_registration(uv_poll_t *poll, int status, int events)
{
	struct service *s = poll->data;
	struct registration reg[REGISTRATIONS_AT_ONCE];
	int n = registration_receive(s->registration, reg);

	if (n < 0) /* the process that started the agent has died */
		uv_poll_stop(poll);
	for (int i = 0; i < n; i++)
		ranks_register(s, &reg[i]);
}

/* ---- life ---- */

int ranks_open(struct service *s)
{
	struct ranks *ranks = calloc(1, sizeof(*ranks));
	int rc;

	if (!ranks)
		return -ENOMEM;
	s->ranks = ranks;
	layout_ranks_at(s->step->layout, s->step->position, &ranks->count);
	ranks->slots = calloc(ranks->count, sizeof(*ranks->slots));
	if (!ranks->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranks->count; i++) {
		ranks->slots[i].service = s;
		ranks->slots[i].slot = i;
		ranks->slots[i].pidfd = -1;
	}
	rc = epoll_set_open(&ranks->epoll, loop_uv(s->node->loop));
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &ranks->limit);
	ranks->limit.data = ranks;
	rc = rc ? rc : uv_poll_init(loop_uv(s->node->loop), &ranks->registration,
				    s->registration);
	if (rc)
		return rc;
	ranks->registration.data = s;
	return uv_poll_start(&ranks->registration, UV_READABLE,
			     on_registration);
}

void ranks_close(struct service *s)
{
	struct ranks *ranks = s->ranks;

	if (!ranks)
		return;
	for (uint32_t i = 0; ranks->slots && i < ranks->count; i++) {
		close_stream(&ranks->slots[i]);
		stop_watching(&ranks->slots[i]);
	}
	node_close_handle(&ranks->registration);
	node_close_handle(&ranks->limit);
	epoll_set_close(ranks->epoll);
	ranks->epoll = NULL;
}

void ranks_free(struct service *s)
{
	if (!s->ranks)
		return;
	free(s->ranks->slots);
	free(s->ranks);
}

void ranks_send(void *service, uint32_t slot, const void *data, size_t len,
		const struct passed_fds *fds)
{
	struct service *s = service;

	/* A message that cannot be sent ends the stream; the loop tells the engine. */
	if (s->ranks->slots[slot].stream)
		stream_write(s->ranks->slots[slot].stream, data, len, fds);
}

void ranks_finish(void *service, uint32_t slot)
{
	struct service *s = service;

	if (s->ranks->slots[slot].stream)
		stream_finish(s->ranks->slots[slot].stream);
}

bool ranks_process(void *service, uint32_t pid, char name[PMI_PROCESS_NAME_MAX])
{
	return process_lives((pid_t)pid, name, PMI_PROCESS_NAME_MAX);
}

bool ranks_pmi_rank(void *service, uint32_t pid, uint32_t *number)
{
	return environ_number((pid_t)pid, "PMI_RANK", number);
}

/* The host tells of the end later than that it leaves. */
static bool is_awaited(const struct rank *r)
{
	return r->registered && !r->gone && r->pidfd < 0 && !is_unwatched(r);
}

bool ranks_have_ended(const struct service *s)
{
	for (uint32_t i = 0; i < s->ranks->count; i++) {
		const struct rank *r = &s->ranks->slots[i];

		if (r->stream || r->leaving || is_awaited(r))
			return false;
	}
	return true;
}

uint32_t ranks_count(const struct service *s)
{
	return s->ranks->count;
}

pid_t ranks_pid(const struct service *s, uint32_t slot)
{
	const struct rank *r = &s->ranks->slots[slot];
	struct ucred peer;

	if (!r->stream || peer_credentials(stream_fd(r->stream), &peer))
		return 0;
	return peer.pid;
}
