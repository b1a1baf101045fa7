/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls over the connection; the waiting threads take turns at sending and reading. */
#include "conn_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "entry.h"
#include "pmi_fd.h"
#include "print_error.h"

void conn_close(struct conn *c)
{
	if (!c)
		return;
	pmi_fd_close(c->socket);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void conn_set_wire(struct conn *c, enum pmi_protocol protocol, bool thrid)
{
	c->protocol = protocol;
	c->thrid = thrid;
}

void conn_set_tagged(struct conn *c, bool tagged)
{
	c->tagged = tagged;
}

enum pmi_protocol conn_protocol(const struct conn *c)
{
	return c->protocol;
}

void conn_set_rank(struct conn *c, int rank)
{
	c->rank = rank;
}

void conn_set_debug(struct conn *c, bool debug)
{
	c->debug = debug;
}

void conn_keep(struct conn *c)
{
	pmi_fd_keep(c->socket);
}

int conn_take_fd(struct conn *c)
{
	return pmi_fd_take_fd(c->socket);
}

/* ---- the list of calls; under the lock ---- */

/* Must `call` wait until `other`, which was posted before it, is answered? */
static bool in_the_way(const struct conn *c, const struct call *other,
		       const struct call *call)
{
	if (c->thrid || other->tag != call->tag)
		return false;
	return (c->protocol != PMI_PROTOCOL_2 && !c->tagged) ||
	       !strcmp(other->response, call->response);
}

static bool must_queue(const struct conn *c, const struct call *call)
{
	for (struct call *i = c->calls; i && i != call; i = i->next)
		if (in_the_way(c, i, call))
			return true;
	return false;
}

static const char *breakage(int error)
{
	if (error == -ECONNRESET || error == -EPIPE)
		return "the PMI server has closed the connection";
	if (error == -EPROTO || error == -EMSGSIZE)
		return "the PMI server sent something that is not PMI";
	return strerror(-error);
}

static void report_breakage(const struct conn *c, int error)
{
	const char *during = c->calls ? c->calls->response : NULL;
	char who[32] = "";

	if (c->rank >= 0)
		snprintf(who, sizeof(who), "rank %d: ", c->rank);
	print_error("pmi2x: %s%s%s%s; all further PMI calls fail\n", who,
		 breakage(error), during ? " before its " : "",
		 during ? during : "");
}

static void break_locked(struct conn *c, int error)
{
	if (c->broken)
		return;
	if (error != -ESHUTDOWN && !conn_is_init(c->calls))
		report_breakage(c, error);
	c->broken = error == -EPIPE ? -ECONNRESET : error;
	c->refusal[0] = '\0';
	c->sending = NULL;
	while (c->calls)
		conn_finish(c, c->calls, c->broken);
	pthread_cond_broadcast(&c->changed);
}

void conn_break(struct conn *c, int error)
{
	pthread_mutex_lock(&c->lock);
	break_locked(c, error);
	if (c->reading)
		pmi_fd_shutdown(c->socket);
	pthread_mutex_unlock(&c->lock);
}

int conn_error(struct conn *c)
{
	int error;

	pthread_mutex_lock(&c->lock);
	error = c->broken;
	pthread_mutex_unlock(&c->lock);
	return error;
}

void conn_check(struct conn *c)
{
	if (!pmi_fd_hung_up(c->socket))
		return;
	pthread_mutex_lock(&c->lock);
	if (!c->reading) /* the thread that reads may still find answers */
		break_locked(c, -ECONNRESET);
	pthread_mutex_unlock(&c->lock);
}

/* ---- sending: never blocks, for who reads needs the lock ---- */

static bool may_be_sent(const struct conn *c, const struct call *call)
{
	return call->state == CALL_QUEUED &&
	       (call->no_response || !must_queue(c, call));
}

/* The call whose bytes are next: one that is sent in part goes before all. */
static struct call *next_to_send(const struct conn *c)
{
	struct call *call = c->calls;

	if (c->sending)
		return c->sending;
	while (call && !may_be_sent(c, call))
		call = call->next;
	return call;
}

static void sent(struct conn *c, struct call *call)
{
	c->sending = NULL;
	buf_free(&call->request);
	if (call->no_response)
		conn_finish(c, call, 0);
	else
		call->state = CALL_SENT;
}

/* Send what may be sent, as far as the socket takes it. */
static void send_queued(struct conn *c)
{
	struct call *call;

	while (!c->broken && (call = next_to_send(c))) {
		long n = pmi_fd_send(c->socket,
				     call->request.data + call->sent,
				     call->request.len - call->sent);

		c->sending = call;
		if (n < 0)
			break_locked(c, (int)n);
		if (n <= 0)
			return;
		call->sent += n;
		if (call->sent == call->request.len)
			sent(c, call);
	}
}

/* ---- receiving ---- */

/*
 * Take the reader's role, read once without the lock, hand out what came. To
 * block is to wait for room for output, too, when there is some.
 */
static void lead(struct conn *c, bool block)
{
	bool output = c->sending != NULL;
	long n = 0;
	int rc;

	c->reading = true;
	pthread_mutex_unlock(&c->lock);
	if (block && output)
		n = pmi_fd_await(c->socket, true);
	if (n == 0)
		n = pmi_fd_fill(c->socket, block && !output);
	pthread_mutex_lock(&c->lock);
	c->reading = false;
	rc = n < 0 ? (int)n : n > 0 ? conn_deliver_all(c) : 0;
	if (rc)
		break_locked(c, rc);
	else
		send_queued(c);
	pthread_cond_broadcast(&c->changed);
}

/* ---- calls ---- */

void call_begin_raw(struct call *call, struct conn *c, const char *response)
{
	call_init(call, &c->transport, response);
	buf_init(&call->request, REQUEST_MAX);
	pthread_mutex_lock(&c->lock);
	call->id = c->next_id++ & INT32_MAX;
	pthread_mutex_unlock(&c->lock);
}

void call_begin(struct call *call, struct conn *c, const char *cmd,
		const char *response)
{
	call_begin_raw(call, c, response);
	pmi_write_begin(&call->writer, &call->request, c->protocol, cmd);
	if (c->thrid)
		pmi_write_int(&call->writer, "thrid", call->id);
}

int call_close(struct call *call)
{
	int rc = call->writer.out ? pmi_write_end(&call->writer) : 0;

	call->writer.out = NULL;
	return rc;
}

/*
 * Wait, without the lock, and go on with sending. A server may read nothing before
 * somebody reads its answers: if no other thread does, this one does it.
 */
static void await_room(struct conn *c)
{
	int rc;

	pthread_mutex_unlock(&c->lock);
	rc = pmi_fd_await(c->socket, true);
	pthread_mutex_lock(&c->lock);
	if (rc)
		break_locked(c, rc);
	else if (c->reading)
		send_queued(c);
	else
		lead(c, false);
}

/* Under the lock. A request that is not kept back has gone afterwards. */
static int post(struct conn *c, struct call *call)
{
	int rc = c->broken;

	if (rc) {
		call->state = CALL_DONE;
		call->error = rc;
		return rc;
	}
	DL_APPEND(c->calls, call);
	call->state = CALL_QUEUED;
	send_queued(c);
	while (may_be_sent(c, call))
		await_room(c);
	return call->state == CALL_DONE ? call->error : 0;
}

static struct conn *conn_of(const struct call *call)
{
	return (struct conn *)call->transport;
}

int call_post(struct call *call)
{
	struct conn *c = conn_of(call);
	int rc = call_close(call);

	if (rc) {
		call->state = CALL_DONE;
		call->error = rc;
		return rc;
	}
	pthread_mutex_lock(&c->lock);
	rc = post(c, call);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

int call_run(struct call *call)
{
	int rc = call_post(call);

	return rc ? rc : call_wait(call);
}

int call_send_only(struct call *call)
{
	int rc;

	call->no_response = true;
	rc = call_post(call);
	call_end(call);
	return rc;
}

/* ---- the transport ---- */

static int socket_enter(struct transport *t, const struct entry *e,
			struct call *call)
{
	const struct entry_form *form = entry_form(e->kind);
	int rc;

	call_begin(call, (struct conn *)t, form->command, form->response);
	call->form = form;
	form->write(e, &call->writer);
	rc = call_post(call);
	if (rc)
		call_end(call);
	return rc;
}

static int socket_wait(struct call *call)
{
	struct conn *c = conn_of(call);

	pthread_mutex_lock(&c->lock);
	while (call->state != CALL_DONE) {
		if (c->reading)
			pthread_cond_wait(&c->changed, &c->lock);
		else
			lead(c, true);
	}
	pthread_mutex_unlock(&c->lock);
	return call->error;
}

static bool socket_test(struct call *call)
{
	struct conn *c = conn_of(call);
	bool done;

	pthread_mutex_lock(&c->lock);
	if (call->state != CALL_DONE && !c->reading)
		lead(c, false);
	done = call->state == CALL_DONE;
	pthread_mutex_unlock(&c->lock);
	return done;
}

static const struct transport_ops socket_ops = {
	.enter = socket_enter,
	.wait = socket_wait,
	.test = socket_test,
};

struct transport *conn_transport(struct conn *c)
{
	return &c->transport;
}

/* ---- life ---- */

int conn_open(struct conn **out, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	rc = pmi_fd_open(&c->socket, fd);
	if (rc) {
		free(c);
		return rc;
	}
	c->transport.ops = &socket_ops;
	c->protocol = PMI_PROTOCOL_1;
	c->rank = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	*out = c;
	return 0;
}
