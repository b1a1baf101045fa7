/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of PMI-2 and of its pmi2x extension. */
#include <errno.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/extension.h"

static void handle_fullinit(struct rank_session *ss,
			    const struct rank_request *rq,
			    const struct pmi_message *m)
{
	const struct pmi_step *step = ss->server->step;
	struct pmi_writer *w;
	struct passed_fds fds = { 0 };
	bool first = ss->state == RANK_HANDSHAKE;

	/* Which rank it is, says its slot; what the client sends may be unset. */
	ss->state = RANK_ACTIVE;
	w = answer_begin(ss, rq, PMI_RC_OK);
	pmi_write_int(w, "pmi-version", 2);
	pmi_write_int(w, "pmi-subversion", 0);
	pmi_write_int(w, "rank", ss->rank);
	pmi_write_int(w, "size", layout_ranks(step->layout));
	pmi_write_int(w, "appnum", engine_appnum(ss->server, ss->rank));
	pmi_write_bool(w, "debugged", step->debugged);
	pmi_write_bool(w, "pmiverbose", false);
	if (step->spawned)
		pmi_write_str(w, "spawner-jobid",
			      step->spawner_jobid ? step->spawner_jobid : "");
	if (first)
		ext_negotiate(ss, m, w, &fds);
	answer_end_fds(ss, rq, &fds);
}

static void handle_job_getid(struct rank_session *ss,
			     const struct rank_request *rq,
			     const struct pmi_message *m)
{
	pmi_write_str(answer_begin(ss, rq, PMI_RC_OK), "jobid",
		      ss->server->step->jobid);
	answer_end(ss, rq);
}

static void handle_job_connect(struct rank_session *ss,
			       const struct rank_request *rq,
			       const struct pmi_message *m)
{
	answer_error(ss, rq, PMI_RC_FAIL,
		     "%s is not supported: exchange addresses through "
		     "name-publish and name-lookup", rq->command->name);
}

static void handle_getnodeattr(struct rank_session *ss,
			       const struct rank_request *rq,
			       const struct pmi_message *m)
{
	const struct pmi_field *key;
	bool wait = false;

	key = rank_key(ss, rq, m, "key", PMI_KEYLEN_MAX - 1);
	if (!key)
		return;
	if (pmi_message_bool(m, "wait", &wait) == -EINVAL)
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "wait is neither TRUE nor FALSE");
	else
		attrs_get(ss, rq, key, wait);
}

static void handle_putnodeattr(struct rank_session *ss,
			       const struct rank_request *rq,
			       const struct pmi_message *m)
{
	const struct pmi_field *key, *value;

	key = rank_key(ss, rq, m, "key", PMI_KEYLEN_MAX - 1);
	if (!key)
		return;
	value = rank_value(ss, rq, m, "value", PMI_VALLEN_MAX - 1);
	if (value)
		attrs_put(ss, rq, key, value);
}

static void handle_getjobattr(struct rank_session *ss,
			      const struct rank_request *rq,
			      const struct pmi_message *m)
{
	const struct pmi_field *key;
	struct buf value;

	key = rank_key(ss, rq, m, "key", PMI_KEYLEN_MAX - 1);
	if (!key || topology_get(ss, rq, key))
		return;
	buf_init(&value, PMI2_BODY_MAX);
	if (attrs_job(ss, key->value, &value))
		answer_found(ss, rq, value.data ? value.data : "", value.len);
	else
		answer_found(ss, rq, NULL, 0);
	buf_free(&value);
}

static void handle_spawn(struct rank_session *ss, const struct rank_request *rq,
			 const struct pmi_message *m)
{
	struct spawn_request *spawn = NULL;
	const char *what = NULL;
	int rc = spawn_from_pmi2(m, &spawn, &what);

	if (rc == -ENOMEM)
		answer_error(ss, rq, PMI_RC_NOMEM, "%s", answer_text(rc));
	else if (rc)
		answer_error(ss, rq, PMI_RC_INVALID_ARGS,
			     "malformed spawn request: %s", what ? what : "?");
	else
		requests_spawn(ss, rq, spawn);
	spawn_free(spawn);
}

static void handle_ring(struct rank_session *ss, const struct rank_request *rq,
			const struct pmi_message *m)
{
	struct budget *budget = ss->server->step->budget;
	const struct pmi_field *left, *right;
	int count;

	if (pmi_message_int(m, "ring-count", &count) || count < 0) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "ring-count is missing or is not a number");
		return;
	}
	left = rank_value(ss, rq, m, "ring-left", RING_VALUE_MAX);
	if (!left)
		return;
	right = rank_value(ss, rq, m, "ring-right", RING_VALUE_MAX);
	if (right)
		collective_ring(ss, rq, count,
				payload_copy_in(budget, left->value,
						left->value_len),
				payload_copy_in(budget, right->value,
						right->value_len));
}

#define ACTIVE IN(RANK_ACTIVE)
#define PMI2_COMMAND(name, states, ...) \
	COMMAND(name, name "-response", states, __VA_ARGS__)

static const struct command COMMANDS[] = {
	PMI2_COMMAND("fullinit", IN(RANK_HANDSHAKE) | ACTIVE, handle_fullinit),
	PMI2_COMMAND("finalize", ACTIVE, rank_handle_finalize),
	PMI2_COMMAND("abort", IN_LIVE, rank_handle_abort),
	PMI2_COMMAND("job-getid", ACTIVE, handle_job_getid),
	PMI2_COMMAND("job-connect", ACTIVE, handle_job_connect),
	PMI2_COMMAND("job-disconnect", ACTIVE, handle_job_connect),
	PMI2_COMMAND("kvs-put", ACTIVE, rank_handle_put),
	PMI2_COMMAND("kvs-fence", ACTIVE, rank_handle_fence),
	PMI2_COMMAND("kvs-get", ACTIVE, rank_handle_get),
	PMI2_COMMAND("info-getnodeattr", ACTIVE, handle_getnodeattr),
	PMI2_COMMAND("info-putnodeattr", ACTIVE, handle_putnodeattr),
	PMI2_COMMAND("info-getjobattr", ACTIVE, handle_getjobattr),
	PMI2_COMMAND("name-publish", ACTIVE, requests_publish),
	PMI2_COMMAND("name-unpublish", ACTIVE, requests_unpublish),
	PMI2_COMMAND("name-lookup", ACTIVE, requests_lookup),
	PMI2_COMMAND("spawn", ACTIVE, handle_spawn),
	PMI2_COMMAND("ring", ACTIVE, handle_ring),
	PMI2_COMMAND(EXT_CMD_PUT, ACTIVE, ext_put, .extension = true),
	PMI2_COMMAND(EXT_CMD_FENCE, ACTIVE, ext_fence, .extension = true),
	PMI2_COMMAND(EXT_CMD_BARRIER, ACTIVE, group_handle_ext,
		     .extension = true),
	PMI2_COMMAND(EXT_CMD_ALLGATHER, ACTIVE, ext_allgather,
		     .extension = true),
	PMI2_COMMAND(EXT_CMD_READ, ACTIVE, ext_read, .extension = true),
	PMI2_COMMAND(EXT_CMD_FETCH, ACTIVE, fetch_handle, .extension = true),
	PMI2_COMMAND(EXT_CMD_FETCH_CANCEL, ACTIVE, fetch_handle_cancel,
		     .extension = true),
};

const struct command *pmi2_command(const char *name)
{
	for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
		if (strcmp(COMMANDS[i].name, name) == 0)
			return &COMMANDS[i];
	return NULL;
}
