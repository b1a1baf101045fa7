/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's half of the engine: the name service (port_names.h, name_store.h), and the
 * bookkeeping of requests whose answer comes later (spawns, and name requests that the parent's srun
 * answers).
 */
#include "libpmi/step_services.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libpmi/name_store.h"
#include "libpmi/port_names.h"
#include "libpmi/rc.h"

/* A request that waits for its answer. */
struct waiting {
	uint32_t token;
	enum control_type type;
	void *link; /* NULL: gone, nobody is told */
	uint32_t origin;
	uint32_t id;
	UT_hash_handle hh;
};

struct step_services {
	struct step_services_ops ops;
	void *arg;
	const struct log_hook *log;
	struct port_names names;
	struct name_store *pmix_names;
	struct waiting *waiting;
	uint32_t spawns; /* how many of the waiting are spawns */
	uint32_t next_token;
	bool aborted;
	bool ready;
	char *reports[STEP_SERVICES_REPORTS_MAX]; /* reasons that the user has read */
	unsigned nreports;
	unsigned nnotes;
};

/* ---- replies ---- */

/* Needs no memory: who gets no reply waits forever. */
static void reply(struct step_services *l, void *link, uint32_t origin, uint32_t id,
		  int code, const char *text)
{
	struct control_msg msg = {
		.type = CONTROL_REPLY,
		.origin = origin,
		.id = id,
		.code = code,
		.text = (char *)text,
	};
	char bytes[CONTROL_REPLY_MAX];
	struct buf frame = {
		.data = bytes, .cap = sizeof(bytes), .limit = sizeof(bytes),
	};

	if (!link)
		return;
	if (control_pack(&frame, &msg)) {
		msg.code = PMI_RC_FAIL;
		msg.text = "srun's answer is too long";
		control_pack(&frame, &msg);
	}
	l->ops.reply(l->arg, link, frame.data, frame.len);
}

/* Replies with a body. */
static void reply_bytes(struct step_services *l, void *link, uint32_t origin,
			uint32_t id,
			const void *body, size_t len)
{
	const struct control_msg msg = {
		.type = CONTROL_REPLY,
		.origin = origin,
		.id = id,
		.body = body,
		.body_len = len,
	};
	struct buf frame;

	if (!link)
		return;
	buf_init(&frame, CONTROL_FRAME_MAX);
	if (control_pack(&frame, &msg))
		reply(l, link, origin, id, PMI_RC_NOMEM, "no memory for an answer");
	else
		l->ops.reply(l->arg, link, frame.data, frame.len);
	buf_free(&frame);
}

/* The user reads each once, and few. The text is the caller's. */
static void report(struct step_services *l, const char *text)
{
	if (l->aborted || l->nreports == STEP_SERVICES_REPORTS_MAX)
		return;
	for (unsigned i = 0; i < l->nreports; i++)
		if (strcmp(l->reports[i], text) == 0)
			return;
	l->ops.report(l->arg, text);
	l->reports[l->nreports] = strdup(text);
	l->nreports += l->reports[l->nreports] != NULL;
}

/* The processes of the two were to connect. */
static void report_ended(struct step_services *l, const char *waiting,
			 const struct names_proc *ended)
{
	char text[CONTROL_TEXT_MAX], rank[128] = "";

	if (ended->rank != NAMES_ALL_RANKS)
		snprintf(rank, sizeof(rank), "rank %u (node %.64s) of ", ended->rank,
			 ended->node);
	snprintf(text, sizeof(text),
		 "%s cannot connect with %s%s, which ended before the connection was made", waiting,
		 rank, ended->nspace);
	control_printable(text);
	report(l, text);
}

/* See name_answer_fn. */
static int answer_names(void *arg, const struct name_asker *to,
			const struct names_answer *a)
{
	struct buf body;
	int rc;

	if (a->error == -ECONNRESET && a->count)
		report_ended(arg, to->proc.nspace, &a->items[0].from);
	buf_init(&body, NAMES_BYTES_MAX);
	rc = names_pack_answer(&body, a);
	if (rc) {
		const struct names_answer failed = { .error = rc };

		(void)names_pack_answer(&body, &failed);
	}
	reply_bytes(arg, to->link, to->origin, to->id, body.data, body.len);
	buf_free(&body);
	return rc;
}

/* ---- life ---- */

int step_services_create(struct step_services **out,
			 const struct step_services_ops *ops,
		    void *arg, uint64_t hash_seed, const struct log_hook *log)
{
	struct step_services *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->ops = *ops;
	l->arg = arg;
	l->log = log;
	l->names.hash_seed = hash_seed;
	if (name_store_create(&l->pmix_names, hash_seed, answer_names, l)) {
		free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

static void free_waiting(struct step_services *l, struct waiting *w)
{
	if (w->type == CONTROL_SPAWN)
		l->spawns--;
	HASH_DEL(l->waiting, w);
	free(w);
}

void step_services_destroy(struct step_services *l)
{
	struct waiting *w, *next_waiting;

	if (!l)
		return;
	port_names_free(&l->names);
	HASH_ITER(hh, l->waiting, w, next_waiting)
		free_waiting(l, w);
	name_store_destroy(l->pmix_names);
	for (unsigned i = 0; i < l->nreports; i++)
		free(l->reports[i]);
	free(l);
}

/* ---- requests that wait ---- */

static struct waiting *find_waiting(struct step_services *l, uint32_t token)
{
	struct waiting *w;

	HASH_FIND(hh, l->waiting, &token, sizeof(token), w);
	return w;
}

static bool room_to_wait(const struct step_services *l, enum control_type type)
{
	uint32_t others = HASH_COUNT(l->waiting) - l->spawns;

	if (type == CONTROL_SPAWN)
		return l->spawns < STEP_SERVICES_SPAWNS_MAX;
	return others < STEP_SERVICES_FORWARDS_MAX;
}

static uint32_t unused_token(struct step_services *l)
{
	do {
		l->next_token++;
	} while (find_waiting(l, l->next_token));
	return l->next_token;
}

static struct waiting *wait_for(struct step_services *l, void *link,
				const struct control_msg *msg)
{
	struct waiting *w;

	if (!room_to_wait(l, msg->type))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->token = unused_token(l);
	w->type = msg->type;
	w->link = link;
	w->origin = msg->origin;
	w->id = msg->id;
	HASH_ADD(hh, l->waiting, token, sizeof(w->token), w);
	if (!find_waiting(l, w->token)) {
		free(w); /* the table could not grow */
		return NULL;
	}
	if (w->type == CONTROL_SPAWN)
		l->spawns++;
	return w;
}

static void answer(struct step_services *l, uint32_t token, int code,
		   const char *text)
{
	struct waiting *w = find_waiting(l, token);

	if (!w)
		return;
	reply(l, w->link, w->origin, w->id, code, text);
	free_waiting(l, w);
}

static void answer_bytes(struct step_services *l, uint32_t token, const void *body,
			 size_t len)
{
	struct waiting *w = find_waiting(l, token);

	if (!w)
		return;
	reply_bytes(l, w->link, w->origin, w->id, body, len);
	free_waiting(l, w);
}

/* ---- spawn ---- */

static int on_spawn(struct step_services *l, void *link, struct control_msg *msg)
{
	struct spawn_request *request;
	struct waiting *w;
	struct cursor body;
	uint32_t token;
	int rc, error;

	cursor_init(&body, msg->body, msg->body_len);
	rc = spawn_unpack(&body, &request);
	if (rc)
		return rc;
	if (!cursor_done(&body)) {
		rc = -EPROTO;
		goto out;
	}
	w = wait_for(l, link, msg);
	if (!w) {
		reply(l, link, msg->origin, msg->id, PMI_RC_NOMEM,
		      "too many spawns are in progress");
		goto out;
	}
	token = w->token;
	error = l->ops.spawn(l->arg, token, request);
	if (error)
		step_services_spawned(l, token, PMI_RC_FAIL, strerror(-error));
out:
	spawn_free(request);
	return rc;
}

void step_services_spawned(struct step_services *l, uint32_t token, int code,
		      const char *text)
{
	answer(l, token, code, text);
}

/* ---- names ---- */

static const char parent_gone[] =
	"the srun that spawned this step cannot be reached";

/* The parent's srun keeps the names: ask it, under our token. */
static void forward(struct step_services *l, void *link, struct control_msg *msg)
{
	struct waiting *w = wait_for(l, link, msg);
	uint32_t token;
	struct buf frame;
	int rc;

	if (!w) {
		reply(l, link, msg->origin, msg->id, PMI_RC_NOMEM,
		      "too many name requests are in progress");
		return;
	}
	token = w->token;
	msg->id = token;
	buf_init(&frame, CONTROL_FRAME_MAX);
	rc = control_pack(&frame, msg);
	if (!rc)
		rc = l->ops.forward(l->arg, token, frame.data, frame.len);
	buf_free(&frame);
	if (rc)
		answer(l, token, PMI_RC_FAIL, parent_gone);
}

void step_services_forwarded(struct step_services *l, uint32_t token,
			     const void *data,
			size_t len)
{
	struct control_msg msg;

	if (control_unpack(data, len, &msg)) {
		answer(l, token, PMI_RC_FAIL, parent_gone);
		return;
	}
	if (msg.body_len)
		answer_bytes(l, token, msg.body, msg.body_len);
	else
		answer(l, token, msg.code, msg.text);
	control_free(&msg);
}

static void fail_waiting(struct step_services *l, bool spawns, const char *why)
{
	struct waiting *w, *next;

	HASH_ITER(hh, l->waiting, w, next) {
		if (spawns || w->type != CONTROL_SPAWN)
			answer(l, w->token, PMI_RC_FAIL, why);
	}
}

void step_services_parent_lost(struct step_services *l)
{
	fail_waiting(l, false, parent_gone);
}

void step_services_fail_all(struct step_services *l, const char *why)
{
	fail_waiting(l, true, why);
}

static int on_name(struct step_services *l, void *link, struct control_msg *msg,
		   enum pmi_rc (*serve)(struct port_names *names, void *link,
					struct control_msg *msg,
					const char **text))
{
	const char *text = "";
	enum pmi_rc code;

	if (l->ops.forward) {
		forward(l, link, msg);
		return 0;
	}
	code = serve(&l->names, link, msg, &text);
	reply(l, link, msg->origin, msg->id, code, text);
	return 0;
}

static int on_publish(struct step_services *l, void *link, struct control_msg *msg)
{
	return on_name(l, link, msg, port_names_publish);
}

static int on_unpublish(struct step_services *l, void *link,
			struct control_msg *msg)
{
	return on_name(l, link, msg, port_names_unpublish);
}

static int on_lookup(struct step_services *l, void *link, struct control_msg *msg)
{
	return on_name(l, link, msg, port_names_lookup);
}

/* Requests of PMIx clients about names: they meet in the same srun. */
static int on_names(struct step_services *l, void *link, struct control_msg *msg)
{
	const struct name_asker who = {
		.link = link,
		.origin = msg->origin,
		.id = msg->id,
		.proc = { .nspace = msg->name, .node = msg->text, .rank = msg->rank },
	};

	if (!l->ops.forward)
		return name_store_ask(l->pmix_names, &who, msg->body, msg->body_len);
	forward(l, link, msg);
	return 0;
}

void step_services_namespace_ended(struct step_services *l, const char *nspace)
{
	const struct names_request r = { .op = NAMES_ENDED, .range = NAMES_OF_SESSION };
	struct control_msg msg = {
		.type = CONTROL_NAMES, .rank = NAMES_ALL_RANKS,
		.name = (char *)nspace, .text = (char *)"",
	};
	struct buf body;

	buf_init(&body, NAMES_BYTES_MAX);
	if (!names_pack_request(&body, &r)) {
		msg.body = body.data;
		msg.body_len = body.len;
		(void)on_names(l, NULL, &msg);
	}
	buf_free(&body);
}

uint64_t step_services_expire(struct step_services *l, uint64_t now)
{
	return name_store_expire(l->pmix_names, now);
}

/* ---- what needs no answer ---- */

static int on_abort(struct step_services *l, void *link, struct control_msg *msg)
{
	control_printable(msg->text);
	if (!l->aborted)
		l->ops.abort(l->arg, msg->rank, msg->code, msg->text);
	l->aborted = true;
	return 0;
}

static int on_report(struct step_services *l, void *link, struct control_msg *msg)
{
	if (msg->code && l->ops.gave_up)
		l->ops.gave_up(l->arg);
	if (msg->code)
		return 0;
	control_printable(msg->text);
	report(l, msg->text);
	return 0;
}

static int on_note(struct step_services *l, void *link, struct control_msg *msg)
{
	if (l->aborted || l->nnotes == STEP_SERVICES_NOTES_MAX)
		return 0;
	l->nnotes++;
	control_printable(msg->text);
	(l->ops.note ? l->ops.note : l->ops.report)(l->arg, msg->text);
	return 0;
}

static int on_ready(struct step_services *l, void *link, struct control_msg *msg)
{
	if (l->ready)
		return 0;
	l->ready = true;
	if (!msg->code)
		l->ops.ready(l->arg);
	else if (l->ops.not_ready)
		l->ops.not_ready(l->arg, msg->text);
	return 0;
}

static int on_trace(struct step_services *l, void *link, struct control_msg *msg)
{
	if (l->ops.trace)
		l->ops.trace(l->arg, msg->origin, msg->body, msg->body_len);
	return 0;
}

static int on_stall(struct step_services *l, void *link, struct control_msg *msg)
{
	if (l->ops.stall && msg->code >= 0 && msg->code < INT32_MAX / 1000) {
		control_printable(msg->text);
		l->ops.stall(l->arg, (uint32_t)msg->code, msg->rank != 0,
			     msg->text);
	}
	return 0;
}

static int on_status(struct step_services *l, void *link, struct control_msg *msg)
{
	if (l->ops.status)
		l->ops.status(l->arg, msg->id, msg->origin, msg->body,
			      msg->body_len);
	return 0;
}

/* The asker will ask again. */
static int on_started(struct step_services *l, void *link, struct control_msg *msg)
{
	const struct control_msg yes = {
		.type = CONTROL_STARTED,
		.origin = msg->origin,
		.id = msg->id,
	};
	struct buf frame;

	if (!l->ops.started || !l->ops.started(l->arg, msg->id))
		return 0;
	buf_init(&frame, CONTROL_TEXT_MAX);
	if (!control_pack(&frame, &yes))
		l->ops.reply(l->arg, link, frame.data, frame.len);
	buf_free(&frame);
	return 0;
}

/* ---- links ---- */

static int (*const handlers[CONTROL_TYPES])(struct step_services *l, void *link,
					    struct control_msg *msg) = {
	[CONTROL_SPAWN] = on_spawn,
	[CONTROL_PUBLISH] = on_publish,
	[CONTROL_UNPUBLISH] = on_unpublish,
	[CONTROL_LOOKUP] = on_lookup,
	[CONTROL_NAMES] = on_names,
	[CONTROL_ABORT] = on_abort,
	[CONTROL_REPORT] = on_report,
	[CONTROL_NOTE] = on_note,
	[CONTROL_READY] = on_ready,
	[CONTROL_TRACE] = on_trace,
	[CONTROL_STALL] = on_stall,
	[CONTROL_STATUS] = on_status,
	[CONTROL_STARTED] = on_started,
	/* no CONTROL_REPLY: nobody is asked */
};

int step_services_receive(struct step_services *l, void *link, const void *data,
		     size_t len)
{
	struct control_msg msg;
	int rc = control_unpack(data, len, &msg);

	if (rc)
		return rc;
	rc = handlers[msg.type] ? handlers[msg.type](l, link, &msg) : -EPROTO;
	control_free(&msg);
	return rc;
}

void step_services_link_lost(struct step_services *l, void *link)
{
	struct waiting *w, *next;

	name_store_link_lost(l->pmix_names, link);
	HASH_ITER(hh, l->waiting, w, next) {
		if (w->link == link)
			w->link = NULL;
	}
}

void step_services_step_lost(struct step_services *l, void *link)
{
	step_services_link_lost(l, link);
	port_names_lost(&l->names, link);
}
