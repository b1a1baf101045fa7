/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of the commands that PMI-1 and PMI-2 have alike. */
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libengine/results.h"
#include "libpmi/extension.h"
#include "libshm/records.h"

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
	engine_event(ss->server, PMI_EVENT_FINALIZE, ss->slot, 0, 0);
	take_rank_trace(ss, m);
	ss->state = RANK_FINALIZED;
	ss->finalized = true;
	ss->server->leaving = true;
	if (!is_silent(ss, m))
		answer_ok(ss, rq);
}

/* Fenced values and the process mapping. */
static bool find_value(const struct rank_session *ss, const struct pmi_field *key,
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
	rc = rank_put_record(ss, key, value);
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
	if (!find_value(ss, key, &value, &len))
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
