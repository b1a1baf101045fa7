/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses of the server: which call each belongs to, and what it says. */
#include "conn_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "entry.h"
#include "pmi_fd.h"
#include "print_error.h"

#define INIT_RESPONSE "response_to_init"

void conn_finish(struct conn *c, struct call *call, int error)
{
	DL_DELETE(c->calls, call);
	call->state = CALL_DONE;
	call->error = error;
}

bool conn_is_init(const struct call *call)
{
	return call && !strcmp(call->response, INIT_RESPONSE);
}

static struct call *find_by_id(struct conn *c, int id)
{
	for (struct call *call = c->calls; call; call = call->next)
		if (call->state == CALL_SENT && call->id == (uint32_t)id)
			return call;
	return NULL;
}

static struct call *find_by_name(struct conn *c, const char *name, int tag)
{
	for (struct call *call = c->calls; call; call = call->next)
		if (call->state == CALL_SENT && call->tag == tag &&
		    !strcmp(call->response, name))
			return call;
	return NULL;
}

static struct call *only_call(struct conn *c)
{
	struct call *found = NULL;

	for (struct call *call = c->calls; call; call = call->next) {
		if (call->state != CALL_SENT)
			continue;
		if (found)
			return NULL;
		found = call;
	}
	return found;
}

int conn_reply_error(int code)
{
	return code < 0 ? -EREMOTEIO : code;
}

static int reply_code(const struct pmi_message *m)
{
	const char *info = pmi_message_str(m, "info");
	int code;

	switch (pmi_message_int(m, "rc", &code)) {
	case 0:
		return conn_reply_error(code);
	case -ENOENT:
		return info && !strcmp(info, "fail") ? -EREMOTEIO : 0;
	default:
		return -EPROTO;
	}
}

/* A server that does not know a command may refuse it under another name. */
static struct call *match(struct conn *c, const struct pmi_message *m)
{
	const char *cmd = pmi_message_cmd(m);
	struct call *call = NULL;
	int id, tag = 0;

	if (c->thrid && !pmi_message_int(m, "thrid", &id))
		return find_by_id(c, id);
	if (c->tagged)
		(void)pmi_message_int(m, "tag", &tag);
	if (cmd)
		call = find_by_name(c, cmd, tag);
	if (!call && cmd && reply_code(m))
		call = only_call(c);
	return call;
}

static void note_refusal(struct conn *c, const char *request, int error,
			 const char *why)
{
	snprintf(c->refusal, sizeof(c->refusal), "%s", why);
	if (c->debug)
		print_error("pmi2x: rank %d: %s: error %d: %s\n", c->rank,
			 request, error, why);
}

void conn_note_refusal(struct conn *c, const char *request, int error,
		       const char *why)
{
	pthread_mutex_lock(&c->lock);
	note_refusal(c, request, error, why);
	pthread_mutex_unlock(&c->lock);
}

void conn_refusal(struct conn *c, char *out, size_t size)
{
	pthread_mutex_lock(&c->lock);
	snprintf(out, size, "%s", c->refusal);
	pthread_mutex_unlock(&c->lock);
}

static void refused(struct conn *c, const struct call *call)
{
	const char *why = pmi_message_str(&call->reply, "errmsg");

	if (!why)
		why = pmi_message_str(&call->reply, "msg");
	note_refusal(c, call->response, call->error,
		     why ? why : "no reason given");
}

static int decode(enum pmi_protocol protocol, char *data, size_t len,
		  struct pmi_message *m)
{
	if (protocol == PMI_PROTOCOL_2)
		return pmi2_decode(data, len, m);
	return pmi1_decode(data, len, m);
}

/*
 * A program that this one has started, and that has PMI_FD, too, sent init. The server
 * refused that on the connection that both have.
 */
static bool is_of_another(const struct conn *c, const struct pmi_message *m)
{
	const char *cmd = pmi_message_cmd(m);

	return cmd && !strcmp(cmd, INIT_RESPONSE) && !conn_is_init(c->calls);
}

/* Takes `data`. */
static int deliver(struct conn *c, char *data, size_t len)
{
	struct pmi_message m;
	struct call *call = NULL;
	bool another;
	int rc;

	pmi_message_init(&m);
	rc = decode(pmi_fd_form(c->protocol, data), data, len, &m);
	another = !rc && is_of_another(c, &m);
	if (!rc && !another)
		call = match(c, &m);
	if (!call) {
		pmi_message_free(&m);
		free(data);
		return rc || another ? rc : -EPROTO;
	}
	call->data = data;
	call->reply = m;
	conn_finish(c, call, reply_code(&m));
	if (!call->error && call->form)
		call->error = call->form->read(&m, &call->outcome);
	else if (call->error)
		refused(c, call);
	return 0;
}

static int deliver_copy(struct conn *c, const char *frame, size_t len)
{
	char *data = malloc(len + 1);

	if (!data)
		return -ENOMEM;
	memcpy(data, frame, len);
	data[len] = '\0';
	return deliver(c, data, len);
}

int conn_deliver_all(struct conn *c)
{
	char *frame;
	long len;
	int rc = 0;

	while (!rc && !c->broken) {
		len = pmi_fd_frame(c->socket, c->protocol, &frame);
		if (len <= 0)
			return len;
		rc = deliver_copy(c, frame, len);
		pmi_fd_consume(c->socket, len);
	}
	return rc;
}
