/* SPDX-License-Identifier: BSD-3-Clause */
/* Talking to the head of a DVM, or to those of several. */
#include "dvm/cli/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/find.h"
#include "dvm/cli/group.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/last_client.h"
#include "dvm/cli/remote.h"
#include "dvm/core/dvm_msg.h"
#include "libio/clock.h"
#include "libutil/buf.h"

#define READ_BYTES 65536
#define STARTING_MS 50 /* between two requests to a DVM that is starting */

/* ---- connection ---- */

/* A head: one of several, or the only one. */
struct member {
	int fd;         /* -1: it has gone */
	bool there;     /* on another node: what is sent and comes is in frames */
	struct buf out; /* goes with the first request */
	size_t left;    /* bytes of a frame that are to come */
	struct buf in;  /* bytes received, */
	size_t begin;   /* from here on a line that has not been read */
	size_t due;     /* results that are to come */
};

struct conn {
	char *name;
	struct member *members;
	size_t last;        /* the head whose event conn_next returned */
	uint32_t *numbers;  /* of group */
	struct group group; /* of one: its name and count */
	struct pollfd *fds; /* the same as members, and that of interrupt.h */
	int limit_ms, tick_ms;
	void (*on_event)(void *arg, json_t *event);
	void *arg;
	bool interrupted; /* the line about it was printed */
	bool looks;       /* conn_look */
	char *closed;     /* why a head has closed the connection; NULL: it has not */
	json_t *hello;    /* the first answer to it, or NULL */
};

static bool is_group(const struct conn *c)
{
	return c->group.members > 1;
}

void conn_on_event(struct conn *c, void (*fn)(void *arg, json_t *event), void *arg)
{
	c->on_event = fn;
	c->arg = arg;
}

void conn_limit(struct conn *c, unsigned seconds)
{
	c->limit_ms = seconds ? (int)seconds * 1000 : -1;
}

void conn_tick(struct conn *c, int ms)
{
	c->tick_ms = ms;
}

void conn_say_logs(const struct conn *c)
{
	char name[DVM_PATH_MAX / 2], dir[DVM_PATH_MAX];

	for (size_t i = 0; i < c->group.count; i++) {
		if (c->members[i].there)
			continue;
		snprintf(name, sizeof(name), c->numbers[i] ? "%s.%u" : "%s", c->name,
			 c->numbers[i]);
		dvm_dir(dir, name);
		dvm_say_log(dir);
	}
}

/* ---- sending ---- */

static void leave(struct conn *c, struct member *m)
{
	close(m->fd);
	m->fd = -1;
	json_array_set_new(c->group.status, (size_t)(m - c->members), json_null());
}

static int add_bytes(const char *data, size_t len, void *out)
{
	return buf_append(out, data, len);
}

static void add_request(struct member *m, json_t *request)
{
	if (json_dump_callback(request, add_bytes, &m->out, JSON_COMPACT) ||
	    buf_puts(&m->out, "\n"))
		die("out of memory, or an argument or variable is not UTF-8 text");
}

static void send_to(struct conn *c, struct member *m, json_t *request)
{
	int rc;

	add_request(m, request);
	rc = m->there ? remote_send(m->fd, m->out.data, m->out.len) :
			remote_send_all(m->fd, m->out.data, m->out.len);
	/* After a failed send, read on: a head that closed may have sent its reason. */
	if (rc && !is_group(c) && rc != -EPIPE && rc != -ECONNRESET)
		die("lost the DVM %s: %s", c->name, strerror(-rc));
	buf_free(&m->out);
	/* If one of several heads has closed, conn_next takes its end. */
}

/* ---- events ---- */

/* The next whole line; NULL: none has come. */
static json_t *take_line(struct conn *c, struct member *m)
{
	const char *at = m->in.data + m->begin;
	size_t len = m->in.len - m->begin;
	const char *end = len ? memchr(at, '\n', len) : NULL;
	json_t *event;

	if (!end)
		return NULL;
	event = json_loadb(at, (size_t)(end - at), JSON_ALLOW_NUL, NULL);
	if (!event)
		die("the DVM %s sent an invalid message", c->name);
	m->begin += (size_t)(end - at) + 1;
	return event;
}

/* The rest of its results will not come. */
static json_t *lost(struct conn *c, struct member *m)
{
	size_t i = (size_t)(m - c->members), due = m->due;

	m->due = 0;
	if (!is_group(c) || !due)
		return NULL;
	return json_pack("{s:s,s:I,s:o}", "ev", "lost", "tasks", (json_int_t)due, "dvm",
			 json_sprintf("%s.%u", c->name, c->numbers[i]));
}

/* Receives data; returns an event when that is the end, and somebody waits for more. */
static json_t *receive(struct conn *c, struct member *m)
{
	ssize_t n;

	buf_consume(&m->in, m->begin);
	m->begin = 0;
	if (buf_reserve(&m->in, READ_BYTES))
		die("out of memory");
	n = remote_receive(m->fd, m->there ? &m->left : NULL, m->in.data + m->in.len,
			   READ_BYTES);
	if (n > 0) {
		m->in.len += (size_t)n;
		return NULL;
	}
	leave(c, m);
	return lost(c, m);
}

static void note(struct conn *c, struct member *m, json_t *event)
{
	size_t n = json_array_size(json_object_get(event, "tasks"));

	if (!c->hello && !strcmp(event_name(event), "hello"))
		c->hello = json_incref(event);
	if (!strcmp(event_name(event), "ended"))
		m->due -= n < m->due ? n : m->due;
}

/* Report a DVM of several whose head closed: the others go on. */
static void note_closed(struct conn *c, json_t *event)
{
	if (is_group(c))
		fprintf(stderr, "pmi2x-dvm: DVM %s.%u: %s\n", c->name, c->numbers[c->last],
			get_text(event, "why"));
	free(c->closed);
	c->closed = strdup(get_text(event, "why"));
	json_decref(event);
}

/* The DVM answers when its journal is safe. */
static void note_unsafe(struct conn *c, json_t *event)
{
	fprintf(stderr, "pmi2x-dvm: waiting for the journal of DVM %s, which is not safe on its disk: %s\n",
		c->name, get_text(event, "why"));
	json_decref(event);
}

const char *conn_end(const struct conn *c)
{
	return c->closed && !is_group(c) ? c->closed : "the DVM has ended";
}

/* Takes an event of a member that has sent a whole line, each in its turn. */
static json_t *take_any(struct conn *c)
{
	for (size_t i = 0; i < c->group.count; i++) {
		struct member *m = &c->members[c->last = (c->last + 1) % c->group.count];
		json_t *event = take_line(c, m);

		if (!event)
			continue;
		if (!strcmp(event_name(event), "closed")) {
			note_closed(c, event);
			continue;
		}
		if (!strcmp(event_name(event), "unsafe")) {
			note_unsafe(c, event);
			continue;
		}
		note(c, m, event);
		return event;
	}
	return NULL;
}

/* 0: all have gone, or the time is over. Negative: it is time for a tick. */
static int wait_any(struct conn *c)
{
	struct pollfd *fds = c->fds;
	bool any = false, ticks = c->tick_ms && c->limit_ms < 0;
	int n;

	for (size_t i = 0; i < c->group.count; i++) {
		fds[i] = (struct pollfd){ .fd = c->members[i].fd, .events = POLLIN };
		any |= fds[i].fd >= 0;
	}
	fds[c->group.count] = (struct pollfd){
		.fd = c->interrupted ? -1 : interrupt_fd(), .events = POLLIN,
	};
	do {
		n = any ? poll(fds, c->group.count + 1, ticks ? c->tick_ms : c->limit_ms) : 0;
	} while (n < 0 && errno == EINTR);
	return !n && any && ticks ? -1 : n > 0;
}

json_t *conn_next(struct conn *c)
{
	json_t *event;
	int n;

	while (!(event = take_any(c))) {
		n = wait_any(c);
		if (n <= 0)
			return n ? json_pack("{s:s}", "ev", "tick") : NULL;
		if (c->fds[c->group.count].revents) {
			c->interrupted = true;
			return json_pack("{s:s}", "ev", "interrupted");
		}
		for (size_t i = 0; i < c->group.count && !event; i++)
			if (c->fds[i].revents)
				event = receive(c, &c->members[i]);
		if (event)
			return event;
	}
	return event;
}

const char *event_name(json_t *event)
{
	return get_text(event, "ev");
}

/* ---- requests ---- */

/* The number of results that are to come after this answer to the request. */
static size_t count_due(json_t *request, json_t *answer)
{
	if (!strcmp(get_text(request, "op"), "wait"))
		return (size_t)get_number(answer, "tasks");
	if (json_is_false(json_object_get(request, "watch")))
		return 0;
	return json_array_size(json_object_get(answer, "ids")) -
	       json_array_size(json_object_get(answer, "refused"));
}

static bool all_answered(struct conn *c, json_t *parts, json_t *answers)
{
	for (size_t i = 0; i < c->group.count; i++)
		if (c->members[i].fd >= 0 && !json_is_null(json_array_get(parts, i)) &&
		    json_is_null(json_array_get(answers, i)))
			return false;
	return true;
}

/* True: the error is about this client as such, and has no tag. */
static bool is_refusal(json_t *event)
{
	return !strcmp(event_name(event), "error") && !json_object_get(event, "tag");
}

static json_t *collect(struct conn *c, json_t *parts, json_int_t tag)
{
	json_t *answers = make_nulls(c->group.count), *event;

	while (!all_answered(c, parts, answers) && (event = conn_next(c))) {
		if (get_number(event, "tag") == tag) {
			c->members[c->last].due +=
				count_due(json_array_get(parts, c->last), event);
			json_array_set(answers, c->last, event);
		} else if (is_refusal(event)) {
			die("%s", get_text(event, "why"));
		} else if (c->on_event) {
			c->on_event(c->arg, event);
		}
		json_decref(event);
	}
	return answers;
}

static json_t *ask_once(struct conn *c, json_t *parts)
{
	static json_int_t tag;
	json_t *request;
	size_t i;

	tag++;
	json_array_foreach(parts, i, request)
		if (json_is_object(request) && c->members[i].fd >= 0) {
			json_object_set_new(request, "tag", json_integer(tag));
			send_to(c, &c->members[i], request);
		}
	return collect(c, parts, tag);
}

/* Leave those of `parts` whose DVM is still starting. False: there are none. */
static bool are_starting(json_t *parts, json_t *answers)
{
	bool any = false;
	json_t *answer;
	size_t i;

	json_array_foreach(answers, i, answer) {
		bool starting = !strcmp(event_name(answer), "starting");

		any |= starting;
		if (!starting)
			json_array_set_new(parts, i, json_null());
	}
	return any;
}

/* By index: what each that is asked has answered; null: it has gone. */
static json_t *ask_parts(struct conn *c, json_t *parts)
{
	json_t *answers = ask_once(c, parts), *more, *answer;
	size_t i;

	while (are_starting(parts, answers)) {
		sleep_ms(STARTING_MS);
		more = ask_once(c, parts);
		json_array_foreach(more, i, answer)
			if (!json_is_null(json_array_get(parts, i)))
				json_array_set(answers, i, answer);
		json_decref(more);
	}
	return answers;
}

/* Every member is asked the same. */
static json_t *ask_all(struct conn *c, json_t *request)
{
	json_t *parts = json_array(), *answers;

	for (size_t i = 0; i < c->group.count; i++)
		json_array_append_new(parts, json_copy(request));
	answers = ask_parts(c, parts);
	json_decref(parts);
	json_decref(request);
	return answers;
}

static json_t *ask_group(struct conn *c, json_t *request)
{
	json_t *parts, *answers, *answer;

	if (group_needs_status(request)) {
		json_decref(c->group.status);
		c->group.status = ask_all(c, json_pack("{s:s}", "op", "status"));
	}
	parts = group_split(&c->group, request);
	answers = ask_parts(c, parts);
	answer = group_join(&c->group, request, answers);
	json_decref(parts);
	json_decref(answers);
	json_decref(request);
	return answer;
}

static json_t *ask_one(struct conn *c, json_t *request)
{
	json_t *answers = ask_all(c, request);
	json_t *answer = json_incref(json_array_get(answers, 0));

	json_decref(answers);
	return answer;
}

json_t *conn_try(struct conn *c, json_t *request)
{
	json_t *answer = is_group(c) ? ask_group(c, request) : ask_one(c, request);

	if (!json_is_null(answer) && json_object_size(answer))
		return answer;
	json_decref(answer);
	return NULL;
}

json_t *conn_ask(struct conn *c, json_t *request)
{
	json_t *answer = conn_try(c, request);

	if (!answer && c->closed)
		die("%s", conn_end(c));
	if (!answer)
		die("lost the DVM %s", c->name);
	if (!strcmp(event_name(answer), "error"))
		die("%s", get_text(answer, "why"));
	return answer;
}

/* ---- beginning and end ---- */

static void __attribute__((noreturn)) die_not_up(const char *name, int error)
{
	char file[DVM_PATH_MAX];

	if (strchr(name, '/'))
		die("%s: %s", name, remote_strerror(error));
	if (error == -ENOENT || !dvm_address(file, name))
		die("no DVM named %s is up on this machine, and no file tells of one on another machine",
		    name);
	die("no DVM named %s is up on this machine, nor on the machine that %s names: %s",
	    name, file, remote_strerror(error));
}

static void take_sockets(struct conn *c, struct dvm_socket *all)
{
	size_t n = c->group.count;

	c->members = calloc(n, sizeof(*c->members));
	c->fds = calloc(n + 1, sizeof(*c->fds));
	c->numbers = calloc(n, sizeof(*c->numbers));
	c->group.told = calloc(n, sizeof(*c->group.told));
	c->group.status = json_array();
	if (!c->members || !c->fds || !c->numbers || !c->group.told)
		die("out of memory");
	for (size_t i = 0; i < n; i++) {
		c->members[i] = (struct member){ .fd = all[i].fd, .there = all[i].there };
		buf_init(&c->members[i].in, SIZE_MAX / 2);
		buf_init(&c->members[i].out, SIZE_MAX / 2);
		c->numbers[i] = all[i].number;
		json_array_append_new(c->group.status, json_object());
	}
	c->group.members = n > 1 || c->numbers[0] ? DVM_MEMBERS_MAX : 1;
	c->group.numbers = c->numbers;
	c->group.name = c->name;
	free(all);
}

/* How many there are is what one that answers says. */
static void meet_all(struct conn *c, json_t *hello)
{
	json_t *answers = ask_all(c, hello), *answer, *one = NULL;
	size_t i;

	json_array_foreach(answers, i, answer) {
		if (!strcmp(event_name(answer), "error"))
			die("%s", get_text(answer, "why"));
		one = json_is_object(answer) ? answer : one;
	}
	if (!one)
		die("lost the DVM %s", c->name);
	c->group.members = (uint32_t)get_number(one, "members");
	json_decref(answers);
}

/*
 * Send the client's version together with its first request: the head may reject the
 * client.
 */
static void say_hello(struct conn *c)
{
	json_t *hello = json_pack("{s:s,s:i,s:b}", "op", "hello", "version", DVM_VERSION,
				  "looks", c->looks);

	if (is_group(c)) {
		meet_all(c, hello);
		return;
	}
	add_request(&c->members[0], hello);
	json_decref(hello);
}

static struct conn *open_conn(const char *given, bool looks)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct dvm_socket *all;
	int rc;

	if (!c || !(c->name = dvm_reach(given, &all, &c->group.count, &rc)))
		die("out of memory");
	if (rc)
		die_not_up(c->name, rc);
	c->limit_ms = -1;
	c->looks = looks;
	take_sockets(c, all);
	say_hello(c);
	return c;
}

struct conn *conn_open(const char *given)
{
	return open_conn(given, false);
}

struct conn *conn_look(const char *given)
{
	return open_conn(given, true);
}

const char *conn_name(const struct conn *c)
{
	return c->name;
}

json_t *conn_hello(const struct conn *c)
{
	return c->hello;
}

void conn_close(struct conn *c)
{
	if (!c->looks)
		(void)last_client_leaves(c, "stop", NULL, NULL);
	for (size_t i = 0; i < c->group.count; i++) {
		if (c->members[i].fd >= 0)
			close(c->members[i].fd);
		buf_free(&c->members[i].in);
		buf_free(&c->members[i].out);
	}
	json_decref(c->hello);
	json_decref(c->group.status);
	json_decref(c->group.profile);
	json_decref(c->group.indexes);
	free(c->group.told);
	free(c->members);
	free(c->fds);
	free(c->numbers);
	free(c->name);
	free(c->closed);
	free(c);
}
