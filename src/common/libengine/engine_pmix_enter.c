/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that PMIx clients of the node enter: fences, of all ranks or some, groups
 * and connections. Whoever serves the clients enters for them and is told how that
 * ended.
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
#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/pmix_msg.h"

#define SUBSET_OP COLL_OP_PMIX /* the names of these subsets differ by it from a group's of PMI-1 */

/* An operation that has been entered and has not ended. */
struct pmix_entered {
	struct pmix_entered *prev, *next;
	uint64_t id;      /* whoever serves the clients has given it */
	uint32_t number;  /* of a fence of all: its own; else the server's */
	enum pmix_op op;
	uint32_t members; /* 0: a fence of all */
	uint32_t entries; /* operations of libcoll whose end is awaited */
	bool answered;
	char *failed;     /* why, while the answer is held back */
};

/* ---- ends ---- */

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
		if (op->number == number && !op->members == all && !op->failed)
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

/* The operation failed: send that, or hold the answer back. */
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

	if (!op)
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

void pmix_free_entered(struct pmi_server *s)
{
	while (s->pmix.ops)
		free_op(s, s->pmix.ops);
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
	char why[WHY_MAX]; /* the reason, if the operation is invalid */
};

static bool is_member(const struct entrance *en, uint32_t rank)
{
	return !en->members || pmix_find_rank(en->members, en->count, rank);
}

static int cannot_be(struct pmi_server *s, struct entrance *en, uint32_t rank,
		     const char *why)
{
	snprintf(en->why, sizeof(en->why), "rank %u %s (node %s)", rank, why,
		 engine_node_name(s));
	return -EINVAL;
}

/* The entry `e` begins at `at` in the message. */
static int take_entry(struct pmi_server *s, struct entrance *en,
		      const struct pmix_entry *e, const unsigned char *at)
{
	const struct rank_session *ss = pmix_own_rank(s, e->rank);
	const unsigned char *end = (const unsigned char *)e->bytes + e->len;

	if (!ss)
		return cannot_be(s, en, e->rank, "runs elsewhere");
	if (!is_member(en, e->rank))
		return cannot_be(s, en, e->rank, "is not a member");
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
	return en->entries ? 0 : cannot_be(s, en, s->sessions[0].rank, "is not a member");
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
		  engine_node_name(s), why);
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

/* The number of the fence that the ranks enter which can; or why none can. */
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

/*
 * libpmix has taken ranks of which one has started its next program for members of one
 * collective. The earlier program fails everywhere; the rank of the later one hears of it.
 */
static int check_series(struct pmi_server *s, struct entrance *en)
{
	uint32_t first = UINT32_MAX, i;

	for (i = 0; i < s->nslots; i++) {
		if (!en->in[i] || s->sessions[i].ended)
			continue;
		if (first == UINT32_MAX)
			first = i;
		if (coll_series(s->coll, i) != coll_series(s->coll, first))
			break;
	}
	if (i == s->nslots)
		return 0;
	snprintf(en->why, sizeof(en->why),
		 "ranks %u and %u (node %.64s) run different PMIx programs",
		 s->sessions[first].rank, s->sessions[i].rank, engine_node_name(s));
	if (coll_series(s->coll, i) < coll_series(s->coll, first))
		first = i;
	coll_end_series(s->coll, first, en->why);
	return -ECONNRESET;
}

/* Ranks that have gone have failed the fence for the others already. */
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
	snprintf(why, sizeof(why), "node %s: %s", engine_node_name(s),
		 answer_text(-ENOMEM));
	for (uint32_t i = 0; i < s->nslots; i++) {
		if (coll_may_enter(s->coll, COLL_PMIX, i))
			continue;
		engine_event(s, PMI_EVENT_ENTER, i, COLL_PMIX, seq);
		rc = coll_enter(s->coll, COLL_PMIX, i, en->given[i], &seq);
		if (rc == -ENOMEM)
			coll_expire(s->coll, COLL_PMIX, seq, why);
	}
	return 0;
}

/* A member that cannot enter has missed what others wait in: it has to go. */
static void miss(struct pmi_server *s, struct pmix_entered *op, uint32_t slot, int rc)
{
	struct rank_session *ss = &s->sessions[slot];
	char why[WHY_MAX];

	snprintf(why, sizeof(why),
		 "rank %u (node %s) could not enter a PMIx %s: %s", ss->rank,
		 engine_node_name(s), op_names[op->op], answer_text(rc));
	if (rc != -ESHUTDOWN)
		pmix_lose_rank(ss, why);
	else if (ss->ended)
		snprintf(why, sizeof(why), "%s", ss->why);
	pmix_subset_ended(s, op->number, NULL, why);
}

/* All that enter have one, see check_series. */
static uint32_t series_of(const struct pmi_server *s, const struct entrance *en)
{
	uint32_t i = 0;

	while (i + 1 < s->nslots && (!en->in[i] || s->sessions[i].ended))
		i++;
	return coll_series(s->coll, i);
}

static int enter_some(struct pmi_server *s, const struct entrance *en)
{
	const struct coll_subset_name name = {
		.op = SUBSET_OP + en->msg->op, .tag = en->msg->text,
		.tag_len = en->msg->text_len, .ranks = en->members,
		.count = en->count, .series = series_of(s, en),
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

int pmix_on_enter(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	struct entrance en = { .msg = m, .message = message };
	int rc = id_in_use(s, m->id) ? -EEXIST : open_entrance(s, &en);

	engine_use(s);
	rc = rc ? rc : check_series(s, &en);
	if (!rc)
		rc = en.members ? enter_some(s, &en) : enter_all(s, &en);
	if (rc)
		refuse(s, m->id, rc, en.why[0] ? en.why : strerror(-rc));
	close_entrance(s, &en);
	return 0;
}
