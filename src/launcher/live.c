/* SPDX-License-Identifier: BSD-3-Clause */
/* Surveys of a running step, for whom they are, and who has waited too long. */
#include "launcher/live.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

#include "libio/listener.h"
#include "libio/refusals.h"
#include "libio/stream.h"
#include "libpmi/survey.h"

#define MS_PER_S 1000
#define LIVE_BACKLOG 8

/* A report again when the wait has nearly doubled. */
#define GROWS(age, last) ((uint64_t)(age) * 10 >= (uint64_t)(last) * 18)

/* A pmi2x-trace that waits for the survey. */
struct client {
	struct live *live;
	struct stream *stream;
	bool answered;
	char input[64]; /* ignored */
	struct client *prev, *next;
};

struct reported {
	bool any;
	uint32_t seq;
	uint32_t age_ms;
};

/* Agents want a report of who waits long. */
struct stalls {
	bool any;
	uint32_t give_up_ms; /* what waits as long shall fail; 0: nothing */
};

struct live {
	struct live_ops ops;
	void *arg;
	const struct log_hook *log;
	uv_loop_t *loop;
	char *jobid;
	struct listener *listener; /* NULL: there is no socket */
	uv_timer_t deadline;
	struct survey *survey;     /* NULL: none is under way */
	uint32_t query;            /* its number */
	struct stalls stalls;      /* what it is to find */
	struct stalls later;       /* ... the next one: its answers are older */
	struct reported reported[COLL_KINDS];
	struct client *clients;
	unsigned nclients;
	struct refusals refused;
};

/* ---- what a survey is for ---- */

static void report(struct live *l, const struct stalled *what)
{
	struct reported *r = &l->reported[what->kind];
	char text[SURVEY_TEXT_MAX];

	if (r->any && r->seq == what->seq && !GROWS(what->age_ms, r->age_ms))
		return;
	*r = (struct reported){ true, what->seq, what->age_ms };
	l->ops.report(l->arg, survey_text(l->survey, what, text));
}

static void give_up(struct live *l, const struct stalled *what)
{
	char text[SURVEY_TEXT_MAX], why[COLL_REASON_MAX];
	const char *colon;

	survey_text(l->survey, what, text);
	colon = strchr(text, ':'); /* who fails it says its name */
	snprintf(why, sizeof(why), "Pmi2xCollectiveTimeout after%.400s",
		 colon ? colon + 1 : "");
	l->ops.expire(l->arg, what->kind, what->seq, why);
}

static void tell_stalls(struct live *l)
{
	struct stalled what;

	for (int kind = 0; l->stalls.any && kind < COLL_KINDS; kind++) {
		uint32_t limit = l->stalls.give_up_ms;

		if (!survey_stalled(l->survey, kind, &what))
			continue;
		if (limit && what.age_ms + MS_PER_S >= limit)
			give_up(l, &what);
		else if (!limit)
			report(l, &what);
	}
}

static void tell_clients(struct live *l)
{
	struct client *c;
	struct buf text;

	if (!l->clients)
		return;
	buf_init(&text, SURVEY_JSON_MAX);
	if (survey_json(l->survey, l->jobid, &text))
		buf_clear(&text); /* the tool says that nothing came */
	DL_FOREACH(l->clients, c) {
		if (c->answered)
			continue;
		c->answered = true;
		if (text.len)
			stream_write(c->stream, text.data, text.len, NULL);
		stream_finish(c->stream);
	}
	buf_free(&text);
}

/* ---- a survey ---- */

static int begin_survey(struct live *l);

static void end_survey(struct live *l)
{
	uv_timer_stop(&l->deadline);
	tell_stalls(l);
	tell_clients(l);
	survey_destroy(l->survey);
	l->survey = NULL;
	l->stalls = l->later;
	l->later = (struct stalls){ false };
	if (l->stalls.any)
		begin_survey(l);
}

static void on_deadline(uv_timer_t *timer)
{
	end_survey(timer->data);
}

static int begin_survey(struct live *l)
{
	int rc;

	if (l->survey)
		return 0;
	rc = survey_create(&l->survey, l->ops.nodes(l->arg), l->ops.node_name,
			   l->arg);
	if (rc)
		return rc;
	uv_timer_start(&l->deadline, on_deadline, SURVEY_MS, 0);
	l->ops.ask(l->arg, ++l->query);
	return 0;
}

bool live_asks(const struct live *l, uint32_t *query)
{
	*query = l ? l->query : 0;
	return l && l->survey;
}

void live_state(struct live *l, uint32_t query, uint32_t position,
		const void *data, size_t len)
{
	int rc;

	if (!l->survey || query != l->query)
		return;
	rc = survey_add(l->survey, position, data, len);
	if (rc)
		log_debug(l->log, "the state of the node at position %u is "
			  "left out: %s", position, strerror(-rc));
	if (survey_complete(l->survey))
		end_survey(l);
}

void live_stall(struct live *l, uint32_t age_s, bool give_up)
{
	struct stalls *stalls = l->survey ? &l->later : &l->stalls;

	stalls->any = true;
	if (give_up && age_s)
		stalls->give_up_ms = age_s * MS_PER_S;
	begin_survey(l);
}

/* ---- clients ---- */

static void drop_client(struct client *c)
{
	DL_DELETE(c->live->clients, c);
	c->live->nclients--;
	stream_close(c->stream);
	free(c);
}

static size_t on_room(void *arg, void **at)
{
	struct client *c = arg;

	*at = c->input;
	return sizeof(c->input);
}

static void on_input(void *arg, size_t len)
{
}

static void on_end(void *arg, int error)
{
	drop_client(arg);
}

static void on_accept(void *arg, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = { .queue = SURVEY_JSON_MAX };
	struct live *l = arg;
	struct client *c = NULL;

	if (refusals_let_in(&l->refused, fd, geteuid(), "this step") &&
	    l->nclients < LIVE_CLIENTS_MAX)
		c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->live = l;
	if (stream_open(&c->stream, l->loop, fd, &limits, &ops, c)) {
		free(c);
		return;
	}
	DL_APPEND(l->clients, c);
	l->nclients++;
	if (begin_survey(l))
		drop_client(c);
}

/* ---- life ---- */

/* The name tells the step and is ours alone: the pid is in it. */
static int open_socket(const char *jobid)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd, n, rc = 0;

	n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
		     LIVE_NAME "/%s/%d", jobid, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(at.sun_path) - 1)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at,
		 offsetof(struct sockaddr_un, sun_path) + 1 + n) < 0 ||
	    listen(fd, LIVE_BACKLOG) < 0) {
		rc = -errno;
		close(fd);
	}
	return rc ? rc : fd;
}

static void open_listener(struct live *l)
{
	int rc = open_socket(l->jobid);

	if (rc >= 0)
		rc = listener_open(&l->listener, l->loop, rc, on_accept, l);
	if (rc < 0)
		log_debug(l->log, "pmi2x-trace --live cannot ask: %s",
			  strerror(-rc));
}

int live_open(struct live **out, uv_loop_t *loop, const char *jobid,
	      const struct live_ops *ops, void *arg,
	      const struct log_hook *log)
{
	struct live *l = calloc(1, sizeof(*l));
	char *copy = strdup(jobid);

	if (!l || !copy) {
		free(l);
		free(copy);
		return -ENOMEM;
	}
	l->ops = *ops;
	l->arg = arg;
	l->log = log;
	l->loop = loop;
	refusals_init(&l->refused, log);
	l->jobid = copy;
	uv_timer_init(loop, &l->deadline);
	l->deadline.data = l;
	open_listener(l);
	*out = l;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct live *l = handle->data;

	free(l->jobid);
	free(l);
}

void live_close(struct live *l)
{
	if (!l)
		return;
	listener_close(l->listener);
	refusals_end(&l->refused);
	while (l->clients)
		drop_client(l->clients);
	survey_destroy(l->survey);
	l->survey = NULL;
	uv_close((uv_handle_t *)&l->deadline, on_closed);
}
