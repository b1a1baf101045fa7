/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of PMIx clients to publish, take back, look up and spawn: from pmi2x-pmixd
 * to srun, and the answer back. This file adds which process asks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/names.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"

static void send_answer(struct pmi_server *s, enum control_type type, uint64_t id,
			int status, const char *text, struct payload *data)
{
	const struct pmix_msg m = {
		.type = type == CONTROL_SPAWN ? PMIX_MSG_SPAWNED : PMIX_MSG_NAMED,
		.id = id, .rank = PMIX_NO_RANK, .status = status, .text = text,
		.text_len = pmix_text_len(text), .len = data ? data->len : 0,
	};

	pmix_send_message(s, &m, data);
}

/* ---- answers ---- */

static void named(struct pmi_server *s, uint64_t id, const struct control_msg *reply)
{
	struct payload *data = payload_copy(reply->body, reply->body_len);

	if (data)
		send_answer(s, CONTROL_NAMES, id, 0, NULL, data);
	else
		send_answer(s, CONTROL_NAMES, id, -ENOMEM, answer_text(-ENOMEM), NULL);
	payload_unref(data);
}

static void spawned(struct pmi_server *s, uint64_t id, const char *jobid)
{
	char nspace[PMIX_NSPACE_NAME_MAX + 1];

	pmix_nspace_name(nspace, jobid);
	send_answer(s, CONTROL_SPAWN, id, 0, nspace, NULL);
}

/* An answer of srun, or why there will be none. */
static void on_answer(struct pmi_server *s, enum control_type type, uint64_t id,
		      const struct control_msg *reply)
{
	if (reply->code || (type == CONTROL_NAMES && !reply->body_len))
		send_answer(s, type, id, -ENOTCONN, reply->text, NULL);
	else if (type == CONTROL_NAMES)
		named(s, id, reply);
	else
		spawned(s, id, reply->text);
}

/* ---- requests ---- */

/* srun is spared what is none. */
static int check_names(const struct pmix_msg *m)
{
	struct names_request r;
	int rc = names_unpack_request(&r, m->data, m->len);

	if (!rc)
		free(r.items);
	return rc;
}

static int check_spawn(const struct pmix_msg *m)
{
	struct spawn_request *r;
	struct cursor c;
	int rc;

	cursor_init(&c, m->data, m->len);
	rc = spawn_unpack(&c, &r);
	if (rc)
		return rc;
	spawn_free(r);
	return cursor_done(&c) ? 0 : -EPROTO;
}

static int on_request(struct pmi_server *s, const struct pmix_msg *m,
		      enum control_type type, int (*check)(const struct pmix_msg *m))
{
	struct rank_session *ss = pmix_rank_of(s, m);
	int rc = ss && !ss->ended ? check(m) : -EINVAL;

	rc = rc ? rc : requests_pmix(ss, type, m->id, m->data, m->len, on_answer);
	if (rc)
		send_answer(s, type, m->id, rc, strerror(-rc), NULL);
	return 0;
}

int pmix_on_names(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message)
{
	return on_request(s, m, CONTROL_NAMES, check_names);
}

int pmix_on_spawn(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message)
{
	return on_request(s, m, CONTROL_SPAWN, check_spawn);
}
