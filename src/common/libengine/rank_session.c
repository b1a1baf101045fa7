/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's connection: messages out of bytes, dispatch, and its end; put and fence. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libshm/records.h"

#define INPUT_KEEP 65536 /* bytes of an empty input buffer worth keeping */
#define TEXT_START_MAX 8 /* bytes of which a PMI-1 message's start needs fewer */
#define NAME_MAX_QUOTED 64 /* bytes of an unknown command's name in answers */

void rank_open(struct rank_session *ss)
{
	struct pmi_server *s = ss->server;

	if (ss->state == RANK_ABSENT)
		ss->state = RANK_FRESH;
	else if (ss->state == RANK_GONE)
		s->ops->client_close(s->arg, ss->slot);
	else
		log_error(s->log, "rank %u (node %s) connected a second time; ignored",
			  ss->rank, engine_node_name(s));
}

/* ---- dispatch ---- */

static const char *state_text(const struct rank_session *ss)
{
	switch (ss->state) {
	case RANK_FRESH:
		return "before init";
	case RANK_HANDSHAKE:
		return "before fullinit";
	case RANK_ACTIVE:
		return "while PMI-2 is in use";
	default:
		return "after finalize";
	}
}

/* The first odd request of a rank is worth a line; a flood of them is not. */
static void log_odd_request(struct rank_session *ss, const char *what, const char *name)
{
	char text[NAME_MAX_QUOTED + 1];

	if (ss->odd_logged)
		return;
	ss->odd_logged = true;
	snprintf(text, sizeof(text), "%s", name);
	control_printable(text);
	log_info(ss->server->log, "rank %u (node %s) sent %s: %s", ss->rank,
		 engine_node_name(ss->server), what, text);
}

/* Answer a message that no row of a table is for. */
static void answer_odd(struct rank_session *ss, struct rank_request *rq,
		       const char *name, const char *what)
{
	char response[NAME_MAX_QUOTED + 16];
	const struct command odd = {.response = response};

	snprintf(response, sizeof(response), "%.*s%s", NAME_MAX_QUOTED, name,
		 rq->protocol == PMI_PROTOCOL_2 ? "-response" : "_result");
	rq->command = &odd;
	log_odd_request(ss, what, name);
	answer_error(ss, rq, PMI_RC_INVALID_ARG, "%s", what);
}

static const struct command *find_command(const struct rank_session *ss,
					  enum pmi_protocol protocol,
					  const char *name)
{
	const struct command *c;

	if (protocol != PMI_PROTOCOL_2)
		return pmi1_command(name);
	c = pmi2_command(name);
	return c && c->extension && ss->extension == 0 ? NULL : c;
}

static int read_thrid(const struct pmi_message *m, struct rank_request *rq)
{
	const char *thrid = pmi_message_str(m, "thrid");

	if (rq->protocol != PMI_PROTOCOL_2 || !thrid)
		return 0;
	if (strlen(thrid) >= sizeof(rq->thrid))
		return -EMSGSIZE;
	strcpy(rq->thrid, thrid);
	return 0;
}

/* A text line on a PMI-2 connection can only be an init. */
static bool is_allowed(const struct rank_session *ss, const struct rank_request *rq)
{
	return (IN(ss->state) & rq->command->states) != 0 &&
	       (ss->protocol != PMI_PROTOCOL_2 ||
		rq->protocol == PMI_PROTOCOL_2 ||
		ss->state == RANK_FINALIZED || rq->command->starts);
}

static const char *decode_text(int error)
{
	switch (error) {
	case -ENOMEM:
		return "a message for which there is no memory";
	case -EMSGSIZE:
		return "a message with too many fields or too long a thrid";
	default:
		return "a malformed message";
	}
}

/* For traces: loading the topology follows the answer. */
static void note_request(struct rank_session *ss, const struct pmi_message *m)
{
	const char *key;

	if (!ss->server->ops->event)
		return;
	key = pmi_message_str(m, "key");
	engine_event(ss->server,
		     key && strcmp(key, TOPOLOGY_KEY) == 0 ?
			     PMI_EVENT_TOPOLOGY : PMI_EVENT_REQUEST,
		     ss->slot, 0, 0);
}

static void dispatch(struct rank_session *ss, enum pmi_protocol protocol,
		     int decoded)
{
	const struct pmi_message *m = &ss->server->message;
	const char *name = pmi_message_cmd(m);
	struct rank_request rq = {.protocol = protocol};

	note_request(ss, m);
	if (!name)
		name = "";
	if (read_thrid(m, &rq))
		decoded = -EMSGSIZE;
	rq.command = find_command(ss, protocol, name);
	if (decoded)
		answer_odd(ss, &rq, name, decode_text(decoded));
	else if (!rq.command)
		answer_odd(ss, &rq, name, "an unknown command");
	else if (rank_is_shared(ss) || (rq.command->starts && rank_is_taken(ss, ss->writer)) ||
		 rank_is_refused(ss, &rq))
		return;
	else if (!is_allowed(ss, &rq))
		answer_error(ss, &rq, PMI_RC_INIT, "%s is not allowed %s", name,
			     state_text(ss));
	else
		rq.command->handle(ss, &rq, m);
}

/* ---- framing ---- */

/*
 * A PMI-2 message starts with a digit or a space; the text line with which every
 * program begins starts with "cmd=".
 */
static enum pmi_protocol wire_form(const struct rank_session *ss, const char *data)
{
	if (ss->protocol != PMI_PROTOCOL_2 || data[0] == 'c')
		return PMI_PROTOCOL_1;
	return PMI_PROTOCOL_2;
}

static void handle_message(struct rank_session *ss, enum pmi_protocol protocol,
			   char *data, size_t len)
{
	struct pmi_message *m = &ss->server->message;
	int rc;

	if (protocol == PMI_PROTOCOL_2)
		rc = pmi2_decode(data, len, m);
	else
		rc = pmi1_decode(data, len, m);
	dispatch(ss, protocol, rc);
}

/* The bytes are no message, or longer than any: there is no way to go on. */
static void refuse(struct rank_session *ss, enum pmi_protocol protocol, long error)
{
	const struct command c = {
		.response = protocol == PMI_PROTOCOL_2 ? "error-response" :
							 "error",
	};
	const struct rank_request rq = {.command = &c, .protocol = protocol};
	const char *what = error == -EPROTO ?
				   "sent bytes that are not a PMI message" :
				   "sent an over-long PMI message";

	answer_error(ss, &rq, PMI_RC_INVALID_ARG, "%s", what);
	rank_fail(ss, what);
}

/* Handle the message at `at` of the input; its length, 0: none is complete. */
static size_t handle_next(struct rank_session *ss, size_t at)
{
	char *data = ss->input.data + at;
	size_t len = ss->input.len - at;
	enum pmi_protocol protocol;
	long n;

	if (len == 0)
		return 0;
	protocol = wire_form(ss, data);
	if (protocol == PMI_PROTOCOL_2)
		n = pmi2_frame(data, len);
	else
		n = pmi1_frame(data, len);
	if (n < 0 && rank_is_of_refused(ss))
		return len; /* the process goes on without the answer */
	if (n < 0)
		refuse(ss, protocol, n);
	else if (n > 0)
		handle_message(ss, protocol, data, n);
	return n > 0 ? n : 0;
}

static void handle_input(struct rank_session *ss)
{
	size_t at = 0, n;

	do {
		n = handle_next(ss, at);
		at += n;
	} while (n > 0 && rank_is_live(ss));
	buf_consume(&ss->input, at);
	if (ss->input.len == 0 && ss->input.cap > INPUT_KEEP)
		buf_free(&ss->input);
}

/*
 * Can the last `n` bytes have ended a message, or be no part of one? Text ends with a
 * newline, and a long line that comes in small pieces is not looked through for each.
 */
static bool is_news(const struct rank_session *ss, const char *last, size_t n)
{
	const struct buf *b = &ss->input;

	return wire_form(ss, b->data) == PMI_PROTOCOL_2 ||
	       b->len - n < TEXT_START_MAX || b->len > PMI1_LINE_MAX ||
	       memchr(last, '\n', n);
}

void rank_input(struct rank_session *ss, const char *data, size_t len)
{
	while (len > 0 && rank_is_live(ss)) {
		/*
		 * There is room: the rest in the buffer is shorter than the longest
		 * message.
		 */
		size_t n = PMI_INPUT_MAX - ss->input.len;

		if (n > len)
			n = len;
		if (buf_append(&ss->input, data, n)) {
			rank_fail(ss, "sent more than there is memory for");
			return;
		}
		if (is_news(ss, data, n))
			handle_input(ss);
		data += n;
		len -= n;
	}
}
