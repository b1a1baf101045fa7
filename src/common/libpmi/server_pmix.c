/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx clients of the node, by way of who serves them (pmix_msg.h): it enters for them
 * and is told how that ended; whatever it sends is a stranger's.
 *
 *   contribution: the rank's entry as it came (pmix_entry_pack), a part of the message,
 *                 or nothing; so the contributions one after another are the result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libcoll/subset.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"
#include "libpmi/server_private.h"

#define SUBSET_OP 16 /* the names of these subsets differ by it from a group's of PMI-1 */
#define EVENTS_MAX 64 /* that are kept for who does not serve yet */
#define HEAD_MAX (PMIX_MSG_TEXT_MAX + 128) /* bytes of a message without its data */

/* What has been entered and has not ended. */
struct pmix_entered {
	struct pmix_entered *prev, *next;
	uint64_t id;      /* whoever serves the clients has given it */
	uint32_t number;  /* of a fence of all: its own; else the server's */
	enum pmix_op op;
	uint32_t members; /* 0: a fence of all */
	uint32_t entries; /* that libcoll will tell the end of */
	bool answered;
	char *failed;     /* why, while the answer is held back */
};

/* ---- sending ---- */

void pmix_send_message(struct pmi_server *s, const struct pmix_msg *m,
		       struct payload *data)
{
	char room[HEAD_MAX];
	struct buf head;

	if (!s->pmix.served || s->pmix.lost)
		return;
	buf_init_in(&head, room, sizeof(room));
	if (!pmix_msg_pack_head(&head, m))
		s->ops->pmix_send(s->arg, head.data, head.len, data);
}

size_t pmix_text_len(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	return len < PMIX_MSG_TEXT_MAX ? len : PMIX_MSG_TEXT_MAX;
}

static void send_ended(struct pmi_server *s, uint64_t id, int status,
		       const char *text, struct payload *data)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_ENDED, .rank = PMIX_NO_RANK, .id = id,
		.status = status, .text = text, .text_len = pmix_text_len(text),
		.len = data ? data->len : 0,
	};

	pmix_send_message(s, &m, data);
}

void pmix_rank_gone(struct rank_session *ss)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_GONE, .rank = ss->rank, .text = ss->why,
		.number = ss->pmix == RANK_PMIX_ACTIVE && !ss->server->ops->end_step,
		.text_len = pmix_text_len(ss->why),
	};

	if (ss->pmix != RANK_PMIX_FINALIZED)
		pmix_send_message(ss->server, &m, NULL);
}

/* Its neighbours may wait for it in MPI, and never meet it in a fence. */
void pmix_rank_failed(struct rank_session *ss)
{
	if (ss->pmix == RANK_PMIX_ACTIVE && ss->server->ops->end_step)
		collective_report(ss->server, ss->why, ss->why);
}

/* ---- ends ---- */

static const char *const op_names[PMIX_OP_END] = {
	[PMIX_OP_FENCE] = "fence",
	[PMIX_OP_CONSTRUCT] = "group construct",
	[PMIX_OP_DESTRUCT] = "group destruct",
	[PMIX_OP_CONNECT] = "connect",
	[PMIX_OP_DISCONNECT] = "disconnect",
};

const char *pmix_subset_name(uint8_t op)
{
	return op < SUBSET_OP ? NULL : op_names[op - SUBSET_OP];
}

static struct pmix_entered *find_op(const struct pmi_server *s, bool all, uint32_t number)
{
	struct pmix_entered *op;

	DL_FOREACH(s->pmix.ops, op)
		if (op->number == number && !op->members == all)
			break;
	return op;
}

static void free_op(struct pmi_server *s, struct pmix_entered *op)
{
	DL_DELETE(s->pmix.ops, op);
	free(op->failed);
	free(op);
}

static void answer(struct pmi_server *s, struct pmix_entered *op, int status,
		   const char *text, struct payload *data)
{
	send_ended(s, op->id, status, text, data);
	op->answered = true;
	if (!op->entries)
		free_op(s, op);
}

/* It has failed: say so, or hold the answer back. */
static void fail(struct pmi_server *s, struct pmix_entered *op, const char *why)
{
	if (s->held)
		op->failed = strdup(why);
	if (!op->failed)
		answer(s, op, -ECANCELED, why, NULL);
}

void pmix_ended(struct pmi_server *s, uint32_t seq, struct payload *result,
		const char *why)
{
	struct pmix_entered *op = find_op(s, true, seq);

	if (!op || op->failed)
		return;
	op->entries = 0;
	if (why)
		fail(s, op, why);
	else
		answer(s, op, 0, NULL, result);
}

/* Once for each member of the node: the first says it. */
void pmix_subset_ended(struct pmi_server *s, uint32_t number,
		       struct payload *result, const char *why)
{
	struct pmix_entered *op = find_op(s, false, number);
	char text[COLL_REASON_MAX + 64];

	if (!op)
		return;
	op->entries--;
	if (op->answered && !op->entries)
		free_op(s, op);
	else if (op->answered || op->failed)
		return;
	else if (!why)
		answer(s, op, 0, NULL, result);
	else {
		snprintf(text, sizeof(text), "PMIx %s of %u ranks failed: %s",
			 op_names[op->op], op->members, why);
		collective_report(s, text, why);
		fail(s, op, why);
	}
}

void pmix_answer_failed(struct pmi_server *s)
{
	struct pmix_entered *op, *next;

	DL_FOREACH_SAFE(s->pmix.ops, op, next)
		if (op->failed && !op->answered)
			answer(s, op, -ECANCELED, op->failed, NULL);
}

void pmix_free(struct pmi_server *s)
{
	while (s->pmix.ops)
		free_op(s, s->pmix.ops);
	pmix_free_fetches(s);
	payload_vec_clear(&s->pmix.events);
}

/* ---- who enters with what ---- */

/* ENTER, taken apart. */
struct entrance {
	const struct pmix_msg *msg;
	struct payload *message;
	uint32_t *members; /* NULL: a fence of all ranks */
	uint32_t count;    /* of the members */
	struct payload **given; /* by slot; NULL: nothing */
	bool *in;               /* by slot */
	uint32_t entries;
	char why[WHY_MAX]; /* it cannot be */
};

static int by_rank(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct rank_session *own_rank(const struct pmi_server *s, uint32_t rank)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(s->step->layout, s->step->position,
						&count);
	const uint32_t *at = bsearch(&rank, ranks, count, sizeof(*ranks), by_rank);

	return at ? &s->sessions[at - ranks] : NULL;
}

static bool is_member(const struct entrance *en, uint32_t rank)
{
	return !en->members || bsearch(&rank, en->members, en->count,
				       sizeof(*en->members), by_rank);
}

static int cannot_be(struct pmi_server *s, struct entrance *en, uint32_t rank,
		     const char *why)
{
	snprintf(en->why, sizeof(en->why), "rank %u %s (node %s)", rank, why,
		 server_node_name(s));
	return -EINVAL;
}

/* The entry `e` begins at `at` in the message. */
static int take_entry(struct pmi_server *s, struct entrance *en,
		      const struct pmix_entry *e, const unsigned char *at)
{
	const struct rank_session *ss = own_rank(s, e->rank);
	const unsigned char *end = (const unsigned char *)e->bytes + e->len;

	if (!ss)
		return cannot_be(s, en, e->rank, "runs elsewhere");
	if (!is_member(en, e->rank))
		return cannot_be(s, en, e->rank, "is no member");
	if (en->in[ss->slot])
		return cannot_be(s, en, e->rank, "enters twice");
	en->in[ss->slot] = true;
	en->entries++;
	if (!e->len)
		return 0;
	en->given[ss->slot] = payload_slice(en->message, at - en->message->data,
					    end - at);
	return en->given[ss->slot] ? 0 : -ENOMEM;
}

/* Every member of the node is in. */
static int check_complete(struct pmi_server *s, struct entrance *en)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (!en->in[i] && is_member(en, s->sessions[i].rank))
			return cannot_be(s, en, s->sessions[i].rank, "is missing");
	return en->entries ? 0 : cannot_be(s, en, s->sessions[0].rank, "is no member");
}

/* Only fences of all are told apart by their order. */
static int list_all(const struct pmi_server *s, struct entrance *en)
{
	en->count = layout_ranks(s->step->layout);
	en->members = malloc(en->count * sizeof(*en->members));
	for (uint32_t r = 0; en->members && r < en->count; r++)
		en->members[r] = r;
	return en->members ? 0 : -ENOMEM;
}

static int take_members(struct pmi_server *s, struct entrance *en, struct cursor *c)
{
	int rc = pmix_members_unpack(c, &en->members, &en->count,
				     layout_ranks(s->step->layout));

	if (!rc && !en->members && en->msg->op != PMIX_OP_FENCE)
		rc = list_all(s, en);
	return rc;
}

static int take_entries(struct pmi_server *s, struct entrance *en)
{
	struct pmix_entry e;
	const unsigned char *at;
	struct cursor c;
	int rc;

	cursor_init(&c, en->msg->data, en->msg->len);
	rc = take_members(s, en, &c);
	for (at = c.at; !rc && pmix_entry_next(&c, &e); at = c.at)
		rc = take_entry(s, en, &e, at);
	if (!rc && !cursor_ok(&c))
		rc = -EPROTO;
	return rc ? rc : check_complete(s, en);
}

static int open_entrance(struct pmi_server *s, struct entrance *en)
{
	if (en->msg->op < PMIX_OP_FENCE || en->msg->op >= PMIX_OP_END)
		return -ENOTSUP;
	en->given = calloc(s->nslots, sizeof(*en->given));
	en->in = calloc(s->nslots, sizeof(*en->in));
	return en->given && en->in ? take_entries(s, en) : -ENOMEM;
}

static void close_entrance(const struct pmi_server *s, struct entrance *en)
{
	for (uint32_t i = 0; en->given && i < s->nslots; i++)
		payload_unref(en->given[i]);
	free(en->given);
	free(en->in);
	free(en->members);
}

/* ---- entering ---- */

static void refuse(struct pmi_server *s, uint64_t id, int rc, const char *why)
{
	log_error(s->log, "a PMIx collective of node %s cannot be entered: %s",
		  server_node_name(s), why);
	send_ended(s, id, rc, why, NULL);
}

static struct pmix_entered *new_op(struct pmi_server *s, const struct entrance *en)
{
	struct pmix_entered *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->id = en->msg->id;
	op->op = en->msg->op;
	op->members = en->members ? en->count : 0;
	DL_APPEND(s->pmix.ops, op);
	return op;
}

/* The slot of a rank that can enter, and the fence's number; or why none can. */
static int look_ahead(const struct pmi_server *s, uint32_t *seq)
{
	int rc = -ESHUTDOWN;

	for (uint32_t i = 0; i < s->nslots && (!rc || rc == -ESHUTDOWN); i++) {
		int may = coll_may_enter(s->coll, COLL_PMIX, i);

		if (may == -ESHUTDOWN)
			continue;
		rc = may;
		*seq = coll_entered(s->coll, COLL_PMIX, i);
	}
	return rc;
}

/* Those that have gone have failed it for the others already. */
static int enter_all(struct pmi_server *s, const struct entrance *en)
{
	char why[COLL_REASON_MAX];
	struct pmix_entered *op;
	uint32_t seq;
	int rc = look_ahead(s, &seq);

	op = rc ? NULL : new_op(s, en);
	if (!op)
		return rc ? rc : -ENOMEM;
	op->number = seq;
	op->entries = 1;
	snprintf(why, sizeof(why), "node %s: %s", server_node_name(s),
		 answer_text(-ENOMEM));
	for (uint32_t i = 0; i < s->nslots; i++) {
		if (coll_may_enter(s->coll, COLL_PMIX, i))
			continue;
		server_event(s, PMI_EVENT_ENTER, i, COLL_PMIX, seq);
		rc = coll_enter(s->coll, COLL_PMIX, i, en->given[i], &seq);
		if (rc == -ENOMEM)
			coll_expire(s->coll, COLL_PMIX, seq, why);
	}
	return 0;
}

/* The rank is gone for all collectives. */
static void lose_rank(struct rank_session *ss, const char *why)
{
	struct pmi_server *s = ss->server;

	snprintf(ss->why, sizeof(ss->why), "%s", why);
	if (rank_is_live(ss))
		s->ops->client_close(s->arg, ss->slot);
	rank_end(ss, "left");
}

/* A member that cannot enter has missed what others wait in: it has to go. */
static void miss(struct pmi_server *s, struct pmix_entered *op, uint32_t slot, int rc)
{
	struct rank_session *ss = &s->sessions[slot];
	char why[WHY_MAX];

	snprintf(why, sizeof(why),
		 "rank %u (node %s) could not enter a PMIx %s: %s", ss->rank,
		 server_node_name(s), op_names[op->op], answer_text(rc));
	if (rc != -ESHUTDOWN)
		lose_rank(ss, why);
	pmix_subset_ended(s, op->number, NULL, ss->why);
}

static int enter_some(struct pmi_server *s, const struct entrance *en)
{
	const struct coll_subset_name name = {
		.op = SUBSET_OP + en->msg->op, .tag = en->msg->text,
		.tag_len = en->msg->text_len, .ranks = en->members,
		.count = en->count,
	};
	struct pmix_entered *op = new_op(s, en);
	uint32_t left = en->entries;
	int rc = 0;

	if (!op)
		return -ENOMEM;
	op->number = s->pmix.next++;
	op->entries = en->entries;
	for (uint32_t i = 0; i < s->nslots && left; i++) {
		if (!en->in[i])
			continue;
		rc = coll_enter_subset(s->coll, i, &name, en->given[i],
				       PMIX_SUBSET_ID | op->number);
		if (rc && rc != -ESHUTDOWN && left == en->entries) {
			free_op(s, op);
			return rc;
		}
		left--;
		if (rc)
			miss(s, op, i, rc);
	}
	return 0;
}

static bool id_in_use(const struct pmi_server *s, uint64_t id)
{
	const struct pmix_entered *op;

	DL_FOREACH(s->pmix.ops, op)
		if (op->id == id && !op->answered)
			return true;
	return false;
}

static int on_enter(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	struct entrance en = { .msg = m, .message = message };
	int rc = id_in_use(s, m->id) ? -EEXIST : open_entrance(s, &en);

	server_use(s);
	if (!rc)
		rc = en.members ? enter_some(s, &en) : enter_all(s, &en);
	if (rc)
		refuse(s, m->id, rc, en.why[0] ? en.why : strerror(-rc));
	close_entrance(s, &en);
	return 0;
}

/* ---- the other messages ---- */

static void nspace_of(const struct pmi_server *s, const char *name,
		      const char *parent, struct pmix_nspace *out)
{
	const struct pmi_step *step = s->step;

	*out = (struct pmix_nspace){
		.name = name,
		.layout = (struct layout *)step->layout,
		.position = step->position,
		.node_names = (const char **)step->node_names,
		.universe_size = step->universe_size,
		.app_sizes = (uint32_t *)step->app_sizes,
		.app_numbers = (uint32_t *)step->app_numbers,
		.napps = step->app_sizes ? step->napps : 0,
		.uid = s->pmix.uid,
		.gid = s->pmix.gid,
		.parent = step->spawner_jobid ? parent : NULL,
		.topology = s->topology.path,
	};
}

static int send_nspace(struct pmi_server *s)
{
	char name[PMIX_NSPACE_NAME_MAX + 1], parent[PMIX_NSPACE_NAME_MAX + 1];
	struct pmix_msg m = { .type = PMIX_MSG_NSPACE, .rank = PMIX_NO_RANK };
	struct payload *data = NULL;
	struct pmix_nspace n;
	struct buf b;
	int rc;

	pmix_nspace_name(name, s->step->jobid);
	pmix_nspace_name(parent, s->step->spawner_jobid);
	nspace_of(s, name, parent, &n);
	buf_init(&b, PMIX_MSG_BYTES_MAX);
	rc = pmix_nspace_pack(&b, &n);
	if (!rc)
		data = payload_take(&b);
	buf_free(&b);
	if (!data)
		return rc ? rc : -ENOMEM;
	m.len = data->len;
	pmix_send_message(s, &m, data);
	payload_unref(data);
	return 0;
}

static int on_hello(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	if (m->number != PMIX_MSG_VERSION) {
		log_error(s->log, "pmi2x-pmixd of node %s speaks version %u of its protocol, this agent %u: install both of one release",
			  server_node_name(s), m->number, PMIX_MSG_VERSION);
		return -EPROTO;
	}
	s->pmix.hello = true;
	s->pmix.waits = topology_want(s);
	return s->pmix.waits ? 0 : send_nspace(s);
}

void pmix_topology_known(struct pmi_server *s)
{
	bool waits = s->pmix.waits;
	char why[WHY_MAX];

	s->pmix.waits = false;
	if (!waits || s->pmix.lost || !send_nspace(s))
		return;
	snprintf(why, sizeof(why), "node %s cannot serve PMIx: out of memory",
		 server_node_name(s));
	pmi_server_pmix_lost(s, why);
}

static void send_event(struct pmi_server *s, struct payload *event)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_EVENT, .rank = PMIX_NO_RANK, .len = event->len,
	};

	pmix_send_message(s, &m, event);
}

/* Its clients may come later, and are then told what has happened. */
void pmix_flooded(void *server, struct payload *event)
{
	struct pmi_server *s = server;

	if (!s->pmix.served || s->pmix.lost)
		return;
	if (s->pmix.ready)
		send_event(s, event);
	else if (s->pmix.events.count < EVENTS_MAX)
		(void)payload_vec_add(&s->pmix.events, event);
}

static void send_events(struct pmi_server *s)
{
	for (size_t i = 0; i < s->pmix.events.count; i++)
		send_event(s, s->pmix.events.items[i]);
	payload_vec_clear(&s->pmix.events);
}

static int on_ready(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	if (!s->pmix.ready)
		pmix_pass_on_fetches(s);
	s->pmix.ready = true;
	send_events(s);
	return 0;
}

void pmix_copy_text(const struct pmix_msg *m, char *out)
{
	snprintf(out, PMIX_MSG_TEXT_MAX + 1, "%.*s", (int)m->text_len,
		 m->text ? m->text : "");
	control_printable(out);
}

static int on_refused(struct pmi_server *s, const struct pmix_msg *m,
		      struct payload *message)
{
	char text[PMIX_MSG_TEXT_MAX + 1], why[COLL_REASON_MAX];

	pmix_copy_text(m, text);
	snprintf(why, sizeof(why), "node %.64s cannot serve PMIx: %.384s",
		 server_node_name(s), text);
	requests_report(s, why);
	pmi_server_pmix_lost(s, why);
	return 0;
}

struct rank_session *pmix_rank_of(struct pmi_server *s, const struct pmix_msg *m)
{
	struct rank_session *ss = own_rank(s, m->rank);

	if (!ss)
		log_error(s->log, "pmi2x-pmixd of node %s speaks for rank %u, which runs elsewhere; ignored",
			  server_node_name(s), m->rank);
	return ss;
}

static int on_connected(struct pmi_server *s, const struct pmix_msg *m,
			struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);

	if (!ss || ss->state == RANK_GONE)
		return 0;
	ss->pmix = RANK_PMIX_ACTIVE;
	server_started(s, ss);
	return 0;
}

static int on_finalized(struct pmi_server *s, const struct pmix_msg *m,
			struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);

	if (!ss || ss->pmix != RANK_PMIX_ACTIVE)
		return 0;
	server_event(s, PMI_EVENT_FINALIZE, ss->slot, 0, 0);
	ss->pmix = RANK_PMIX_FINALIZED;
	s->leaving = true;
	return 0;
}

static int on_abort(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);
	char text[PMIX_MSG_TEXT_MAX + 1];

	pmix_copy_text(m, text);
	if (ss)
		requests_abort(ss, true, m->status, text);
	return 0;
}

static int on_event(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	struct payload *event = payload_slice(message, message->len - m->len, m->len);
	int rc = event ? coll_flood(s->coll, event) : -ENOMEM;

	server_use(s);
	payload_unref(event);
	if (rc)
		log_error(s->log, "node %s cannot tell the others an event of PMIx of %zu bytes: %s",
			  server_node_name(s), m->len, strerror(-rc));
	return 0;
}

static int on_log(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message)
{
	char text[PMIX_MSG_TEXT_MAX + 1];

	pmix_copy_text(m, text);
	log_line(s->log, m->number <= LOG_LEVEL_DEBUG ? m->number : LOG_LEVEL_DEBUG,
		 "node %s: %s", server_node_name(s), text);
	return 0;
}

static const struct {
	int (*handle)(struct pmi_server *s, const struct pmix_msg *m,
		      struct payload *message);
	bool first; /* comes before all others, and no more later */
} messages[PMIX_MSG_TYPES] = {
	[PMIX_MSG_HELLO] = { on_hello, true },
	[PMIX_MSG_READY] = { on_ready },
	[PMIX_MSG_REFUSED] = { on_refused },
	[PMIX_MSG_CONNECTED] = { on_connected },
	[PMIX_MSG_FINALIZED] = { on_finalized },
	[PMIX_MSG_ENTER] = { on_enter },
	[PMIX_MSG_FETCH] = { pmix_on_fetch },
	[PMIX_MSG_FETCHED] = { pmix_on_fetched },
	[PMIX_MSG_NAMES] = { pmix_on_names },
	[PMIX_MSG_SPAWN] = { pmix_on_spawn },
	[PMIX_MSG_ABORT] = { on_abort },
	[PMIX_MSG_EVENT] = { on_event },
	[PMIX_MSG_LOG] = { on_log },
};

/* ---- the host's calls ---- */

void pmi_server_use_pmix(struct pmi_server *s, uint32_t uid, uint32_t gid)
{
	s->pmix.served = true;
	s->pmix.uid = uid;
	s->pmix.gid = gid;
}

int pmi_server_pmix_input(struct pmi_server *s, struct payload *message)
{
	struct pmix_msg m;
	int rc = -EPROTO;

	if (s->pmix.lost)
		return 0;
	if (pmix_msg_unpack(&m, message->data, message->len) ==
		    (int64_t)message->len &&
	    m.nspace == 0 && messages[m.type].handle &&
	    messages[m.type].first == !s->pmix.hello)
		rc = messages[m.type].handle(s, &m, message);
	server_settle(s);
	return rc;
}

/* Whoever serves no more has lost the clients, too, that speak nothing else. */
static void lose_ranks(struct pmi_server *s, const char *why)
{
	for (uint32_t i = 0; i < s->nslots; i++) {
		struct rank_session *ss = &s->sessions[i];

		if (ss->pmix == RANK_PMIX_ACTIVE && rank_is_unused(ss))
			lose_rank(ss, why);
	}
}

static bool any_rank_left(const struct pmi_server *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->sessions[i].state != RANK_GONE)
			return true;
	return false;
}

void pmi_server_pmix_lost(struct pmi_server *s, const char *why)
{
	if (!s->pmix.served || s->pmix.lost)
		return;
	s->pmix.lost = true;
	if (s->pmix.hello && any_rank_left(s)) {
		coll_expire(s->coll, COLL_PMIX, coll_ended(s->coll, COLL_PMIX), why);
		lose_ranks(s, why);
	}
	pmix_fail_fetches(s, why);
	pmix_free(s);
	server_settle(s);
}
