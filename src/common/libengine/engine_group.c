/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of groups, PMI-1 1.2: collectives of a subset that carry what their members
 * have put and the step has not fenced yet. It stays pending for the next fence of the
 * step as well: the values that a group brings are early (group_kvs.h).
 *
 * A rank that waits for such a barrier can be told nothing but its end: MPICH takes every
 * barrier_out for it, looks at any other answer forever, and crashes when its connection
 * ends. So one that fails ends the step.
 *
 *   contribution: blocks; each a u32 length and the u32 number of the fence that will
 *                 bring them, little-endian, and then the records.
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
#include "libpmi/control.h"
#include "libpmi/extension.h"
#include "libpmi/group.h"
#include "libutil/pack.h"
#include "libutil/rankset.h"

#define NO_MEMORY "could not enter a group's barrier: out of memory"

/* The names of these barriers differ from other collectives of a subset by this. */
static uint8_t op_of(const struct pmi_group *g)
{
	return 1 + g->form;
}

/* ---- what members have put ---- */

/* A member's records of one fence, from those at `from` of all that it ever put. */
struct block {
	const char *data;
	uint64_t at; /* where it begins in all that the rank ever put */
	size_t len;
	uint32_t fence;
};

static int append_block(struct buf *b, struct block k, uint64_t from)
{
	size_t known = from <= k.at ? 0 : from - k.at;
	int rc;

	if (known >= k.len)
		return 0;
	k.len -= known;
	rc = pack_u32(b, k.len);
	if (!rc)
		rc = pack_u32(b, k.fence);
	return rc ? rc : buf_append(b, k.data + known, k.len);
}

/*
 * Appends the values that the rank has put since `from` and that no fence has brought
 * yet.
 */
static int append_put(struct rank_session *ss, uint64_t from, struct buf *b)
{
	const struct entered *e;
	int rc = 0;

	DL_FOREACH(ss->entered, e)
		if (!rc && e->records)
			rc = append_block(b, (struct block){
				.data = (const char *)e->records->data,
				.at = e->upto - e->records->len,
				.len = e->records->len,
				.fence = e->seq,
			}, from);
	return rc ? rc : append_block(b, (struct block){
		.data = ss->pending.data,
		.at = ss->put,
		.len = ss->pending.len,
		.fence = coll_entered(ss->server->coll, COLL_FENCE, ss->slot),
	}, from);
}

/* ---- what groups have had ---- */

/* A hash that is equal for the same members, whatever the tag. */
static uint64_t members_hash(const struct pmi_group *g)
{
	uint64_t hash = g->form;

	if (g->form == PMI_GROUP_LIST)
		hash = image_hash(g->ranks, g->count * sizeof(*g->ranks));
	return hash;
}

/* Groups of two nodes have the same form and tag, but do not meet. */
static uint32_t name_hash(const struct rank_session *ss, const struct entered *e,
			  const struct pmi_group *g)
{
	uint32_t position = ss->server->step->position;
	const uint64_t what[] = { e->members, (uint32_t)g->tag,
				  g->form == PMI_GROUP_NODE ? position : 0 };

	return (uint32_t)image_hash(what, sizeof(what));
}

/* Up to where the members know what the rank has put. */
static uint64_t known_to(const struct rank_session *ss, uint64_t members)
{
	for (int i = 0; i < GROUPS_RECENT; i++)
		if (ss->groups[i].upto && ss->groups[i].members == members)
			return ss->groups[i].upto;
	return 0;
}

/* Only once its barrier has ended: one with another tag may end before it. */
static void note_known(struct rank_session *ss, const struct entered *e)
{
	struct group_known known = { e->members, e->upto };
	int last = 0;

	while (last < GROUPS_RECENT - 1 &&
	       ss->groups[last].members != e->members)
		last++;
	if (ss->groups[last].members == e->members &&
	    ss->groups[last].upto > e->upto)
		known.upto = ss->groups[last].upto;
	memmove(&ss->groups[1], &ss->groups[0], last * sizeof(known));
	ss->groups[0] = known;
}

/* ---- failing ---- */

/*
 * The rank cannot be told. The end of its step also ends its waiting; where nothing can,
 * its connection is closed.
 */
static void fail_group(struct rank_session *ss, struct entered *e, const char *why)
{
	struct pmi_server *s = ss->server;
	char text[COLL_REASON_MAX + 64];

	snprintf(text, sizeof(text), "barrier of a group of %u ranks failed: %s",
		 e->count, why);
	e->failed = true;
	if (!collective_end_step(s, text, why))
		rank_fail(ss, "waits for a group's barrier that has failed");
}

/* ---- the end ---- */

static int take_block(struct pmi_server *s, struct cursor *c)
{
	uint32_t len = unpack_u32(c), fence = unpack_u32(c);
	const void *records = unpack_raw(c, len);
	struct record r;
	size_t at = 0;
	int rc = 0;

	if (!cursor_ok(c) || records_check(records, len, &at))
		return -EPROTO;
	if (fence < coll_ended(s->coll, COLL_FENCE))
		return 0;
	for (at = 0; !rc && record_next(records, len, &at, &r) == 1;)
		rc = early_put(&s->early, &r, fence);
	return rc;
}

/* Once a result, not once a member. 0, or the errors of early_put, or -EPROTO. */
static int take_result(struct pmi_server *s, struct payload *result)
{
	struct cursor c;
	int rc = 0;

	if (result == s->group_result || !result->len)
		return 0;
	cursor_init(&c, result->data, result->len);
	while (!rc && cursor_left(&c))
		rc = take_block(s, &c);
	if (rc)
		return rc;
	payload_unref(s->group_result);
	s->group_result = payload_ref(result);
	return 0;
}

void group_ended(struct rank_session *ss, uint32_t id, struct payload *result,
		 const char *why)
{
	struct entered *e = collective_find_group(ss, id);
	char text[COLL_REASON_MAX];
	int rc = 0;

	if (!e)
		return;
	if (result)
		rc = take_result(ss->server, result);
	if (rc) {
		snprintf(text, sizeof(text), "node %s: %s",
			 engine_node_name(ss->server), answer_text(rc));
		why = text;
	}
	if (why) {
		fail_group(ss, e, why);
		return;
	}
	note_known(ss, e);
	engine_event(ss->server, PMI_EVENT_GROUP_DONE, ss->slot, 0, e->name);
	answer_ok(ss, &e->rq);
	collective_forget(ss, e);
}

/* ---- waiting for long ---- */

#define SHOWN_MAX 160 /* bytes of a list of ranks or nodes, NUL included */
#define TAG_SHOWN_MAX 64

static void put_children(const struct pmi_server *s, const uint32_t *children,
			 uint32_t count, struct buf *b)
{
	const struct pmi_step *step = s->step;

	for (uint32_t i = 0; i < count && b->len < SHOWN_MAX; i++)
		buf_printf(b, "%s%.64s", i ? ", " : "",
			   step->node_names[layout_node_id(step->layout,
							   children[i])]);
}

/* Puts the tag, which tells a group apart from others of the same ranks. */
static void put_tag(const struct coll_subset_state *what, bool pmix, struct buf *b)
{
	int32_t number;

	if (pmix && what->tag_len) {
		buf_printf(b, " (%.*s)", (int)(what->tag_len < TAG_SHOWN_MAX ?
					       what->tag_len : TAG_SHOWN_MAX), what->tag);
	} else if (what->tag_len == sizeof(number)) {
		memcpy(&number, what->tag, sizeof(number));
		buf_printf(b, " (tag %d)", (int)number);
	}
}

static void put_operation(const struct pmi_server *s, const struct coll_subset_state *what,
			  struct buf *b)
{
	const char *pmix = what->unnamed ? NULL : pmix_subset_name(what->op);

	if (what->unnamed) {
		buf_printf(b, "%s of some ranks, which ranks of nodes below have entered",
			   pmix_find_client(s) ? "PMIx operation" : "barrier");
		return;
	}
	buf_printf(b, "%s%s of %u ranks", pmix ? "PMIx " : "",
		   pmix ? pmix : "barrier of a group", what->members);
	put_tag(what, pmix, b);
}

static void describe_wait(const struct pmi_server *s, unsigned seconds,
			  const struct coll_subset_state *what,
			  const uint32_t *ranks, const uint32_t *children,
			  char text[PMI_WAIT_TEXT_MAX])
{
	char list[SHOWN_MAX];
	struct buf b;

	buf_init_in(&b, text, PMI_WAIT_TEXT_MAX);
	put_operation(s, what, &b);
	buf_printf(&b, ": %u s, node %s waits for ", seconds, engine_node_name(s));
	if (what->own)
		buf_puts(&b, "its own ranks: some must enter, and none has");
	if (what->nranks)
		buf_printf(&b, "rank%s %s of its own", what->nranks > 1 ? "s" : "", rankset_format(
				   ranks, what->nranks, list, sizeof(list)));
	if (what->nchildren) {
		buf_puts(&b, what->own || what->nranks ? ", and for " : "");
		buf_puts(&b, "ranks of or below these nodes: ");
		put_children(s, children, what->nchildren, &b);
	}
	if (what->waits_parent)
		buf_puts(&b, "ranks of other nodes; its own are in");
	else if (!what->own && !what->nranks && !what->nchildren)
		buf_puts(&b, "ranks of nodes below it");
	buf_cstr(&b);
	control_printable(text);
}

/* The first of which it is known here who is late; or, with `own`, the first at all. */
static void tell_wait(struct pmi_server *s, unsigned seconds, bool own,
		      char text[PMI_WAIT_TEXT_MAX])
{
	const struct tree_place *place = coll_place(s->coll);
	struct coll_subset_state what;
	uint32_t *ranks, *children;
	bool found;

	ranks = calloc(s->nslots + place->children + 1, sizeof(*ranks));
	if (!ranks)
		return;
	children = ranks + s->nslots;
	found = coll_subset_at(s->coll, 0, &what, ranks, children);
	for (size_t n = 1; found && !own && what.waits_parent; n++)
		found = coll_subset_at(s->coll, n, &what, ranks, children);
	if (found)
		describe_wait(s, seconds, &what, ranks, children, text);
	free(ranks);
}

void group_tell_wait(struct pmi_server *s, unsigned seconds,
		     char text[PMI_WAIT_TEXT_MAX])
{
	tell_wait(s, seconds, false, text);
}

void group_tell_own_wait(struct pmi_server *s, unsigned seconds,
			 char text[PMI_WAIT_TEXT_MAX])
{
	tell_wait(s, seconds, true, text);
}

/* ---- entering ---- */

static struct coll_subset_name name_of(const struct rank_session *ss,
				       const struct pmi_group *g)
{
	const struct pmi_step *step = ss->server->step;
	struct coll_subset_name name = {
		.op = op_of(g), .tag = &g->tag, .tag_len = sizeof(g->tag),
		.ranks = g->ranks, .count = g->count,
	};

	if (g->form == PMI_GROUP_NODE)
		name.ranks = layout_ranks_at(step->layout, step->position,
					     &name.count);
	return name;
}

static struct payload *contribution(struct rank_session *ss, uint64_t from,
				    int *error)
{
	struct payload *p = NULL;
	struct buf b;

	buf_init(&b, PMI_PENDING_MAX);
	b.budget = ss->server->step->budget;
	*error = append_put(ss, from, &b);
	if (!*error && b.len) {
		p = payload_take(&b);
		*error = p ? 0 : -ENOMEM;
	}
	buf_free(&b);
	return p;
}

static void enter_group(struct rank_session *ss, struct entered *e,
			const struct pmi_group *g)
{
	const struct coll_subset_name name = name_of(ss, g);
	struct payload *p;
	int rc;

	e->members = members_hash(g);
	e->count = name.count;
	e->name = name_hash(ss, e, g);
	engine_event(ss->server, PMI_EVENT_GROUP_ENTER, ss->slot, 0, e->name);
	e->upto = ss->put + ss->pending.len;
	p = contribution(ss, known_to(ss, e->members), &rc);
	if (!rc)
		rc = collective_count(ss, e, p ? p->len : 0);
	if (!rc)
		rc = coll_enter_subset(ss->server->coll, ss->slot, &name, p,
				       e->seq);
	payload_unref(p);
	if (rc)
		fail_group(ss, e, answer_text(rc));
}

/* The rank asks for what cannot be: it is told, and so is the user, once a node. */
static void refuse(struct rank_session *ss, const struct rank_request *rq,
		   const char *why)
{
	struct pmi_server *s = ss->server;
	char text[ANSWER_TEXT_MAX];

	snprintf(text, sizeof(text),
		 "rank %u (node %s) sent barrier_in with an invalid group: %s",
		 ss->rank, engine_node_name(s), why);
	if (engine_notices(s, NOTICE_GROUP_REFUSED))
		requests_report(s, text);
	answer_error(ss, rq, PMI_RC_INVALID_ARG, "invalid group: %s", why);
}

static int by_rank(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool is_member(const struct rank_session *ss, const struct pmi_group *g)
{
	return g->form != PMI_GROUP_LIST ||
	       bsearch(&ss->rank, g->ranks, g->count, sizeof(*g->ranks), by_rank);
}

static void enter_world(struct rank_session *ss,
			       const struct rank_request *rq)
{
	if (slots_count_socket(ss))
		collective_fence(ss, rq);
}

static void group_barrier(struct rank_session *ss, const struct rank_request *rq,
		   const struct pmi_group *g)
{
	struct entered *e;

	if (!is_member(ss, g)) {
		refuse(ss, rq, "the rank itself is not in the group");
		return;
	}
	e = collective_note_group(ss, rq);
	if (!e)
		rank_fail(ss, NO_MEMORY);
	else
		enter_group(ss, e, g);
}

/*
 * The world without a tag is the step's own barrier, and meets those who say so
 * without a group.
 */
static void enter_text(struct rank_session *ss, struct rank_request *rq,
		       const char *text)
{
	uint32_t nranks = layout_ranks(ss->server->step->layout);
	char why[PMI_GROUP_WHY_MAX];
	struct pmi_group g;
	int rc = pmi_group_read(&g, text, nranks, why);

	rq->tag = g.tag;
	if (rc == -ENOMEM)
		rank_fail(ss, NO_MEMORY);
	else if (rc)
		refuse(ss, rq, why);
	else if (g.form == PMI_GROUP_WORLD && g.tag == 0)
		enter_world(ss, rq);
	else if (g.form == PMI_GROUP_WORLD && pmi_group_fill(&g, nranks))
		rank_fail(ss, NO_MEMORY);
	else
		group_barrier(ss, rq, &g);
	pmi_group_free(&g);
}

void group_handle_barrier(struct rank_session *ss, const struct rank_request *rq,
			  const struct pmi_message *m)
{
	static const struct command in_group = {
		.name = "barrier_in", .response = "barrier_out", .tagged = true,
	};
	const char *text = pmi_message_str(m, EXT_KEY_GROUP);
	struct rank_request own = *rq;

	if (!text) {
		collective_fence(ss, rq);
		return;
	}
	/* The group operation gets no name of its own: no collective waits for it. */
	own.command = &in_group;
	enter_text(ss, &own, text);
}

void group_handle_ext(struct rank_session *ss, const struct rank_request *rq,
		      const struct pmi_message *m)
{
	const char *text = pmi_message_str(m, EXT_KEY_GROUP);
	struct rank_request own = *rq;

	if (!text)
		answer_error(ss, rq, PMI_RC_INVALID_ARG, "group is missing");
	else
		enter_text(ss, &own, text);
}
