/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's connection: messages out of bytes, dispatch, and its end; put and fence. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libengine/server_private.h"
#include "libpmi/extension.h"
#include "libshm/records.h"

#define INPUT_KEEP 65536 /* bytes of an empty input buffer worth keeping */
#define TEXT_START_MAX 8 /* bytes of which a PMI-1 message's start needs fewer */
#define NAME_MAX_QUOTED 64 /* bytes of an unknown command's name in answers */
#define TOPOLOGY_KEY "PMI_hwloc_xmlfile" /* of MPICH; its value names a file */

bool rank_is_live(const struct rank_session *ss)
{
	return IN(ss->state) & IN_LIVE;
}

/* The state of a session; if that is over, its last state before. */
static enum rank_state last_state(const struct rank_session *ss)
{
	return ss->state == RANK_GONE ? ss->before : ss->state;
}

bool rank_is_unused(const struct rank_session *ss)
{
	enum rank_state state = last_state(ss);

	return state == RANK_ABSENT || state == RANK_FRESH;
}

bool rank_is_finalized(const struct rank_session *ss)
{
	bool left_pmix = ss->pmix == RANK_PMIX_FINALIZED;

	if (last_state(ss) == RANK_FINALIZED)
		return left_pmix || ss->pmix == RANK_PMIX_NONE;
	return left_pmix && rank_is_unused(ss);
}

void rank_open(struct rank_session *ss)
{
	struct pmi_server *s = ss->server;

	if (ss->state == RANK_ABSENT)
		ss->state = RANK_FRESH;
	else if (ss->state == RANK_GONE)
		s->ops->client_close(s->arg, ss->slot);
	else
		log_error(s->log, "rank %u (node %s) connected a second time; ignored",
			  ss->rank, server_node_name(s));
}

void rank_drop(struct rank_session *ss)
{
	collective_drop(ss);
	requests_drop(ss, false);
	fetch_drop(ss);
	attrs_drop(ss);
	topology_drop(ss);
	spawn_free(ss->spawn);
	ss->spawn = NULL;
	ss->skip_spawns = false;
	ss->put += ss->pending.len;
	buf_free(&ss->pending);
}

void rank_restart(struct rank_session *ss)
{
	rank_drop(ss);
	ss->extension = 0;
	ss->slotted = false;
	ss->shows = false;
	ss->finalized = false;
	payload_vec_clear(&ss->kept); /* what the program before has put */
	ss->kept_cut = false;
	ss->protocol = PMI_PROTOCOL_NONE;
}

/* Times of a library that records what it does: only wanted with a trace. */
static void take_rank_trace(struct rank_session *ss, const struct pmi_message *m)
{
	struct pmi_server *s = ss->server;
	const char *text = pmi_message_str(m, EXT_KEY_RANK_TRACE);

	if (text && s->ops->rank_trace)
		s->ops->rank_trace(s->arg, ss->slot, text);
}

/* No response is wanted. */
static bool is_silent(const struct rank_session *ss, const struct pmi_message *m)
{
	bool silent = false;

	return ss->extension &&
	       !pmi_message_bool(m, EXT_KEY_SILENT, &silent) && silent;
}

void rank_handle_finalize(struct rank_session *ss,
			  const struct rank_request *rq,
			  const struct pmi_message *m)
{
	collective_done_all(ss);
	server_event(ss->server, PMI_EVENT_FINALIZE, ss->slot, 0, 0);
	take_rank_trace(ss, m);
	ss->state = RANK_FINALIZED;
	ss->finalized = true;
	ss->server->leaving = true;
	if (!is_silent(ss, m))
		answer_ok(ss, rq);
}

void rank_fail(struct rank_session *ss, const char *why)
{
	struct pmi_server *s = ss->server;

	if (!rank_is_live(ss))
		return;
	snprintf(ss->pmi_why, sizeof(ss->pmi_why), "rank %u (node %s) %s", ss->rank,
		 server_node_name(s), why);
	log_error(s->log, "%s; its PMI connection is closed", ss->pmi_why);
	ss->state = RANK_CLOSING;
	s->settle = true;
	s->ops->client_close(s->arg, ss->slot);
}

/* Values that a rank has put before it finalized can still be fetched. */
static void keep_pending(struct rank_session *ss)
{
	struct payload *records;

	if (!ss->finalized || !ss->pending.len)
		return;
	ss->put += ss->pending.len;
	records = payload_take(&ss->pending);
	fetch_keep(ss, records);
	payload_unref(records);
}

/*
 * A finalized session is told to libcoll only when its connection ends and not when it
 * finalizes: another program of the rank may still send init on the same connection and
 * take part in later collectives, and for libcoll a rank that is gone stays
 * gone. So who fences while another rank has finalized, but lives on and never
 * comes back, waits until that rank's connection or process ends.
 */
static void close_pmi(struct rank_session *ss)
{
	ss->before = ss->state;
	ss->state = RANK_GONE;
	ss->server->leaving = true;
	keep_pending(ss);
	rank_drop(ss);
	buf_free(&ss->input);
	buf_free(&ss->aside);
}

/* How the rank left what it used last; nothing when that is known better. */
static void describe_end(const struct rank_session *ss, const char *how,
			 char why[WHY_MAX])
{
	bool unused = rank_is_unused(ss);
	bool unstarted = unused && ss->pmix == RANK_PMIX_NONE;
	bool pmix = unused || ss->pmix == RANK_PMIX_ACTIVE ||
		    ss->pmix == RANK_PMIX_LOST;

	if (why[0])
		return;
	snprintf(why, WHY_MAX, "rank %u (node %s) %s %s %s", ss->rank,
		 server_node_name(ss->server), how,
		 unstarted ? "without starting" :
		 rank_is_finalized(ss) ? "after finalizing" : "without finalizing",
		 pmix && !unstarted ? "PMIx" : "PMI");
}

/* PMIx, which the rank may still use, is none of its business. */
void rank_leave_pmi(struct rank_session *ss, const char *how)
{
	struct pmi_server *s = ss->server;
	bool finalized = ss->state == RANK_FINALIZED;

	if (ss->state == RANK_GONE)
		return;
	if (!ss->pmi_why[0] && ss->why[0])
		snprintf(ss->pmi_why, sizeof(ss->pmi_why), "%s", ss->why);
	else if (!ss->pmi_why[0])
		snprintf(ss->pmi_why, sizeof(ss->pmi_why), "rank %u (node %s) %s %s PMI",
			 ss->rank, server_node_name(s), how,
			 rank_is_unused(ss) ? "without starting" :
			 finalized ? "after finalizing" : "without finalizing");
	close_pmi(ss);
	coll_rank_gone(s->coll, ss->slot, COLL_OF_PMI, ss->pmi_why);
	fetch_rank_gone(ss);
	attrs_fail_hopeless(s);
}

/* If PMI has ended before, that end's reason is the one for PMI's collectives. */
void rank_end(struct rank_session *ss, const char *how)
{
	struct pmi_server *s = ss->server;

	if (ss->ended)
		return;
	ss->ended = true;
	ss->unstarted = rank_is_unused(ss) && ss->pmix == RANK_PMIX_NONE;
	s->unstarted += ss->unstarted;
	describe_end(ss, how, ss->why);
	if (ss->state == RANK_CLOSING)
		rank_leave_pmi(ss, how);
	if (ss->state != RANK_GONE) {
		snprintf(ss->pmi_why, sizeof(ss->pmi_why), "%s", ss->why);
		close_pmi(ss);
	}
	requests_drop(ss, true);
	pmix_rank_gone(ss);
	coll_rank_gone(s->coll, ss->slot, COLL_OF_ALL, ss->why);
	fetch_rank_gone(ss);
	attrs_fail_hopeless(s);
}

/* Fenced values and the process mapping. */
static bool rank_find(const struct rank_session *ss, const struct pmi_field *key,
	       const char **value, size_t *len)
{
	const char *mapping = ss->server->step->mapping;

	if (mapping && strcmp(key->value, MAPPING_KEY) == 0) {
		*value = mapping;
		*len = strlen(mapping);
		return true;
	}
	if (early_find(&ss->server->early, key->value, key->value_len, value, len))
		return true;
	return results_find(&ss->server->results, key->value, key->value_len, value,
			    len);
}

size_t rank_room(const struct rank_session *ss)
{
	size_t used = ss->pending.len + ss->in_flight;

	return used < PMI_PENDING_MAX ? PMI_PENDING_MAX - used : 0;
}

bool rank_may_wait(struct rank_session *ss, const struct rank_request *rq)
{
	if (ss->waits < RANK_WAITS_MAX)
		return true;
	answer_error(ss, rq, PMI_RC_OTHER, "too many unanswered requests");
	return false;
}

/* A field of min..max bytes; else these are the answers. */
static const struct pmi_field *
field_of(struct rank_session *ss, const struct rank_request *rq,
	 const struct pmi_message *m, const char *name, size_t min, size_t max,
	 enum pmi_rc is_missing, enum pmi_rc is_long)
{
	const struct pmi_field *f = pmi_message_field(m, name);

	if (!f || f->value_len < min)
		answer_error(ss, rq, is_missing, "%s is missing", name);
	else if (f->value_len > max)
		answer_error(ss, rq, is_long,
			     "%s has %u bytes, the limit is %zu", name,
			     f->value_len, max);
	else
		return f;
	return NULL;
}

const struct pmi_field *rank_value(struct rank_session *ss,
				   const struct rank_request *rq,
				   const struct pmi_message *m,
				   const char *name, size_t max)
{
	return field_of(ss, rq, m, name, 0, max, PMI_RC_INVALID_ARG,
			PMI_RC_INVALID_VAL_LENGTH);
}

const struct pmi_field *rank_key(struct rank_session *ss,
				 const struct rank_request *rq,
				 const struct pmi_message *m,
				 const char *name, size_t max)
{
	return field_of(ss, rq, m, name, 1, max, PMI_RC_INVALID_KEY,
			PMI_RC_INVALID_KEY_LENGTH);
}

/* ---- commands that PMI-1 and PMI-2 have alike ---- */

/* Add a record to what the next fence carries. 0 or a negative errno. */
static int add_record(struct rank_session *ss, const struct pmi_field *key,
		      const struct pmi_field *value)
{
	server_event(ss->server, PMI_EVENT_PUT, ss->slot, 0, 0);
	ss->server->fence_near = true;
	ss->pending.limit = ss->pending.len + rank_room(ss);
	return record_append(&ss->pending, key->value, key->value_len,
			     value->value, value->value_len);
}

void rank_handle_put(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m)
{
	const struct pmi_field *key, *value;
	int rc;

	key = rank_key(ss, rq, m, "key", PMI_KEYLEN_MAX - 1);
	if (!key)
		return;
	value = rank_value(ss, rq, m, "value", PMI_VALLEN_MAX - 1);
	if (!value)
		return;
	rc = add_record(ss, key, value);
	if (rc)
		answer_error(ss, rq, answer_rc(rc), "%s", answer_text(rc));
	else
		answer_ok(ss, rq);
}

void rank_handle_fence(struct rank_session *ss, const struct rank_request *rq,
		       const struct pmi_message *m)
{
	collective_fence(ss, rq);
}

/* The step has one KVS: jobid and srcid of a PMI-2 request change nothing. */
void rank_handle_get(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m)
{
	bool pmi1 = rq->protocol != PMI_PROTOCOL_2;
	const struct pmi_field *key;
	const char *value = NULL;
	size_t len = 0;

	key = rank_key(ss, rq, m, "key",
		       pmi1 ? PMI_KEYLEN_MAX - 1 : RECORD_KEY_MAX);
	if (!key || topology_get(ss, rq, key))
		return;
	if (!rank_find(ss, key, &value, &len))
		value = NULL;
	if (pmi1 && !value)
		answer_error(ss, rq, PMI_RC_FAIL, "key %s not found",
			     key->value);
	else if (pmi1 && len >= PMI_VALLEN_MAX)
		answer_error(ss, rq, PMI_RC_INVALID_VAL_LENGTH,
			     "the value of %s has %zu bytes, too long for PMI-1",
			     key->value, len);
	else
		answer_found(ss, rq, value, len);
}

/* Plain PMI-2 has no exit code; libpmi2x sends one. */
void rank_handle_abort(struct rank_session *ss, const struct rank_request *rq,
		       const struct pmi_message *m)
{
	bool pmi1 = rq->protocol != PMI_PROTOCOL_2, world = true;
	const char *text = pmi_message_str(m, pmi1 ? "error_msg" : "msg");
	int code = 1;

	if (!pmi1)
		(void)pmi_message_bool(m, "isworld", &world);
	(void)pmi_message_int(m, "exitcode", &code);
	requests_abort(ss, world, code, text ? text : "");
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
		 server_node_name(ss->server), what, text);
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
	server_event(ss->server,
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
	else if (rq.command->starts && rank_is_taken(ss, ss->writer))
		answer_error(ss, &rq, PMI_RC_INIT, "%s", RANK_TAKEN);
	else if (rank_is_refused(ss, &rq))
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
		return len; /* it goes on without what it has asked for */
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
		/* There is room: a rest is shorter than the longest message. */
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
