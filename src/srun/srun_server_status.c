/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status of the running step: srun's questions to its nodes, for the stall
 * report, what has waited too long, and pmi2x trace --live. That comes over an abstract
 * unix socket of srun's host, "pmi2x-status/<jobid>/<pid>": whoever connects and has
 * srun's uid, or is root, is sent the numbers (step_status_pack) and the end of file.
 * A client that asks while a query is under way gets its result.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

#include "libio/stream.h"
#include "srun/srun_server_internal.h"

#define MS_PER_S 1000
#define TOOLS_MAX 8
#define ENDING_MS 1000 /* for the nodes to say who waits, before the step is ended */

/* A report again when the wait has nearly doubled. */
#define GROWS(age, last) ((uint64_t)(age) * 10 >= (uint64_t)(last) * 18)

/* A pmi2x trace that waits for the answer, or reads it. */
struct tool {
	struct srun_server *server;
	struct stream *stream;
	bool answered;
	char input[64]; /* ignored */
	struct tool *prev, *next;
};

/* ---- to the agents ---- */

void srun_server_send_to_agent(struct asker *to, const void *data, size_t len)
{
	struct agent_link *a = (struct agent_link *)to;

	/* Without memory for it the link ends: the agent then answers who waits. */
	if (link_send_bytes(a->link, FRAME_CONTROL_DOWN, data, len) == -ENOMEM) {
		a->left = true; /* not a death: no report */
		link_shutdown(a->link);
	}
}

/* To one agent; NULL: to all that are connected. */
static void send_control(struct srun_server *h, struct agent_link *to,
			 const struct control_msg *msg)
{
	struct agent_link *a;
	struct buf frame;

	buf_init(&frame, CONTROL_FRAME_MAX);
	if (!control_pack(&frame, msg)) {
		DL_FOREACH(h->agents, a)
			if (!to || a == to)
				srun_server_send_to_agent(&a->asker, frame.data,
							  frame.len);
	}
	buf_free(&frame);
}

static void send_query(struct srun_server *h, struct agent_link *to)
{
	send_control(h, to, &(struct control_msg){ .type = CONTROL_QUERY,
						   .id = h->status.query });
}

void srun_server_status_joined(struct agent_link *a)
{
	if (a->server->status.asked)
		send_query(a->server, a);
}

/* ---- who is told ---- */

/*
 * Nothing has failed: no error. A query that waits for a silent node may be over
 * only when the step is being ended, and why is said: its news are old then.
 */
static void report(struct srun_server *h, const struct stalled *what)
{
	struct reported *r = &h->status.reported[what->kind];
	char text[STATUS_TEXT_MAX];

	if (r->seq == what->seq && !GROWS(what->age_ms, r->age_ms))
		return;
	*r = (struct reported){ what->seq, what->age_ms };
	if (!h->aborted)
		log_info(h->log, "%s",
			 step_status_text(h->status.asked, what, text));
}

/* An age that is less than that of the last report is one of another wait. */
static void report_key(struct srun_server *h)
{
	char text[STATUS_TEXT_MAX];
	uint32_t age_s, last = h->status.key_age_s;

	if (!step_status_key(h->status.asked, 1, text, &age_s) ||
	    (age_s >= last && last && !GROWS(age_s, last)))
		return;
	h->status.key_age_s = age_s;
	if (!h->aborted)
		log_info(h->log, "%s", text);
}

/* Make a collective fail; `reason` comes first in the text for the user. */
static void give_up(struct srun_server *h, const struct stalled *what, const char *reason)
{
	char text[STATUS_TEXT_MAX], why[COLL_REASON_MAX];
	const char *colon;

	step_status_text(h->status.asked, what, text);
	colon = strchr(text, ':'); /* before it: name of the node that fails the step */
	snprintf(why, sizeof(why), "%s after%.400s", reason, colon ? colon + 1 : "");
	send_control(h, NULL, &(struct control_msg){ .type = CONTROL_EXPIRE,
						     .id = what->seq,
						     .rank = what->kind,
						     .text = why });
}

static void tell_stalls(struct srun_server *h)
{
	uint32_t limit = h->status.stalls.give_up_ms;
	struct stalled what;

	for (int kind = 0; h->status.stalls.any && kind < COLL_KINDS; kind++) {
		if (!step_status_stalled(h->status.asked, kind, &what))
			continue;
		if (limit && what.age_ms + MS_PER_S >= limit)
			give_up(h, &what, "Pmi2xCollectiveTimeout");
		else if (!limit)
			report(h, &what);
	}
	if (h->status.stalls.any)
		report_key(h);
	if (h->status.stalls.any && step_status_crossed(h->status.asked, &what))
		give_up(h, &what, "ranks in PMI and ranks in PMIx wait for each other,");
}

static void tell_tools(struct srun_server *h)
{
	struct tool *t;
	struct buf b;
	int rc;

	if (!h->status.tools)
		return;
	buf_init(&b, STATUS_ANSWER_MAX);
	rc = step_status_pack(h->status.asked, h->jobid, &b);
	DL_FOREACH(h->status.tools, t) {
		if (t->answered)
			continue;
		t->answered = true;
		if (!rc) /* else the tool reports that nothing came */
			stream_write(t->stream, b.data, b.len, NULL);
		stream_finish(t->stream);
	}
	buf_free(&b);
}

/* ---- a query ---- */

static void end_step(struct srun_server *h)
{
	char why[2 * STATUS_TEXT_MAX], key[STATUS_TEXT_MAX];
	uint32_t age_s;

	if (!h->status.ending)
		return;
	if (h->status.asked && step_status_key(h->status.asked, 0, key, &age_s))
		snprintf(why, sizeof(why), "%.900s; %s", h->status.ending, key);
	else
		snprintf(why, sizeof(why), "%s", h->status.ending);
	free(h->status.ending);
	h->status.ending = NULL;
	h->host.abort(h->host.arg, CONTROL_NO_RANK, h->status.ending_code, why);
}

static void forget_answers(struct srun_server *h)
{
	step_status_destroy(h->status.asked);
	h->status.asked = NULL;
}

static int begin_query(struct srun_server *h);

static void end_query(struct srun_server *h)
{
	uv_timer_stop(&h->status.deadline);
	tell_stalls(h);
	tell_tools(h);
	end_step(h);
	forget_answers(h);
	h->status.stalls = h->status.later;
	h->status.later = (struct stalls){ false };
	if (h->status.stalls.any)
		begin_query(h);
}

static void on_deadline(uv_timer_t *timer)
{
	end_query(timer->data);
}

static int begin_query(struct srun_server *h)
{
	int rc;

	if (h->status.asked)
		return 0;
	rc = step_status_create(&h->status.asked, h->host.nodes(h->host.arg),
				h->host.node_name, h->host.arg);
	if (rc)
		return rc;
	uv_timer_start(&h->status.deadline, on_deadline, STATUS_WAIT_MS, 0);
	h->status.query++;
	send_query(h, NULL);
	return 0;
}

void srun_server_status_end_step(struct srun_server *h, int code, const char *why)
{
	h->status.ending = strdup(why);
	h->status.ending_code = code;
	if (!h->status.ending)
		h->host.abort(h->host.arg, CONTROL_NO_RANK, code, why);
	else if (!h->host.nodes || begin_query(h))
		end_step(h);
	else
		uv_timer_start(&h->status.deadline, on_deadline, ENDING_MS, 0);
}

void srun_server_status_flush(struct srun_server *h)
{
	end_step(h);
}

void srun_server_status(void *arg, uint32_t query, uint32_t position,
			const void *data, size_t len)
{
	struct srun_server *h = arg;
	int rc;

	if (!h->status.asked || query != h->status.query)
		return;
	rc = step_status_add(h->status.asked, position, data, len);
	if (rc)
		log_debug(h->log, "the status of the node of index %u is "
			  "left out: %s", position, strerror(-rc));
	if (step_status_complete(h->status.asked))
		end_query(h);
}

/* While a query is under way another one follows it, for newer answers. */
void srun_server_stall(void *arg, uint32_t age_s, bool too_long,
		       const char *text)
{
	struct srun_server *h = arg;
	struct stalls *stalls = h->status.asked ? &h->status.later :
						  &h->status.stalls;

	if (text[0] && !h->aborted)
		log_info(h->log, "%s", text);
	if (!h->host.nodes)
		return;
	stalls->any = true;
	if (too_long && age_s)
		stalls->give_up_ms = age_s * MS_PER_S;
	begin_query(h);
}

/* ---- tools ---- */

static void drop_tool(struct tool *t)
{
	DL_DELETE(t->server->status.tools, t);
	t->server->status.ntools--;
	stream_close(t->stream);
	free(t);
}

static size_t on_room(void *arg, void **at)
{
	struct tool *t = arg;

	*at = t->input;
	return sizeof(t->input);
}

static void on_input(void *arg, size_t len)
{
}

static void on_end(void *arg, int error)
{
	drop_tool(arg);
}

static void on_accept(void *arg, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = { .queue = STATUS_ANSWER_MAX };
	struct srun_server *h = arg;
	struct tool *t = NULL;

	if (refusals_let_in(&h->strangers.refused, fd, geteuid(), "this step") &&
	    h->status.ntools < TOOLS_MAX)
		t = calloc(1, sizeof(*t));
	if (!t) {
		close(fd);
		return;
	}
	t->server = h;
	if (stream_open(&t->stream, loop_uv(h->loop), fd, &limits, &ops, t)) {
		free(t);
		return;
	}
	DL_APPEND(h->status.tools, t);
	h->status.ntools++;
	if (begin_query(h))
		drop_tool(t);
}

/* ---- life ---- */

/* The name tells the step and is ours alone: the pid is in it. */
static int open_socket(const char *jobid)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd, n, rc = 0;

	n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
		     STATUS_SOCKET "/%s/%d", jobid, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(at.sun_path) - 1)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at,
		 offsetof(struct sockaddr_un, sun_path) + 1 + n) < 0 ||
	    listen(fd, TOOLS_MAX) < 0) {
		rc = -errno;
		close(fd);
	}
	return rc ? rc : fd;
}

void srun_server_status_open(struct srun_server *h)
{
	int rc;

	if (!h->host.nodes)
		return;
	rc = open_socket(h->jobid);
	if (rc >= 0)
		rc = listener_open(&h->status.listener, loop_uv(h->loop), rc,
				   on_accept, h);
	if (rc < 0)
		log_debug(h->log, "pmi2x trace --live cannot ask: %s",
			  strerror(-rc));
}

void srun_server_status_close(struct srun_server *h)
{
	listener_close(h->status.listener);
	while (h->status.tools)
		drop_tool(h->status.tools);
	forget_answers(h);
	free(h->status.ending);
	uv_close((uv_handle_t *)&h->status.deadline, NULL);
}
