/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of nodes about a step, packed, and combined: which ranks keep others waiting. */
#include "libpmi/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/control.h"
#include "libpmi/status_private.h"
#include "libutil/coder.h"

#define RUN_BYTES (4 + 4 + 1 + 1 + 4 * COLL_KINDS)
#define LINK_BYTES (4 + 1 + 1 + 8)
#define RUNS_SHOWN 16  /* of ranks, in a text */

/* ---- a node ---- */

static bool continues(const struct status_run *run,
		      const struct status_run *rank)
{
	return rank->first == run->last + 1 && rank->phase == run->phase &&
	       rank->stopped == run->stopped &&
	       !memcmp(rank->entered, run->entered, sizeof(run->entered));
}

void status_add_rank(struct node_status *n, const struct status_run *rank)
{
	struct status_run *run = n->nruns ? &n->runs[n->nruns - 1] : NULL;

	if (run && continues(run, rank))
		run->last = rank->last;
	else
		n->runs[n->nruns++] = *rank;
}

static void code_run(struct coder *c, struct status_run *r)
{
	code_u32(c, &r->first);
	code_u32(c, &r->last);
	CODE_ENUM(c, &r->phase, STATUS_PHASES);
	code_flag(c, &r->stopped);
	code_u32s(c, r->entered, COLL_KINDS);
	CODE_CHECK(c, r->last >= r->first);
}

/* All but the links and `wait`. */
static void code_status(struct coder *c, struct node_status *n)
{
	code_u32(c, &n->age_ms);
	code_u32(c, &n->requests);
	code_u32s(c, n->ended, COLL_KINDS);
	code_count(c, &n->nruns, STATUS_RUNS_MAX, RUN_BYTES);
	if (!c->out && !(n->runs = calloc(n->nruns + 1, sizeof(*n->runs))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; !c->rc && i < n->nruns; i++)
		code_run(c, &n->runs[i]);
}

int status_pack(struct buf *b, const struct node_status *n)
{
	struct coder c = { .out = b };

	code_status(&c, (struct node_status *)n);
	return c.rc;
}

int status_pack_link(struct buf *b, uint32_t position, bool is_parent,
		     enum status_link link, uint64_t queued)
{
	int rc = pack_u32(b, position);

	rc = rc ? rc : pack_u8(b, is_parent);
	rc = rc ? rc : pack_u8(b, link);
	return rc ? rc : pack_u64(b, queued);
}

int status_pack_waits(struct buf *b, const struct node_status *n)
{
	struct coder c = { .out = b };

	if (n->wait || n->keys.key || n->keys.ncomers)
		status_code_waits(&c, (struct node_status *)n);
	return c.rc;
}

void status_free(struct node_status *n)
{
	free(n->runs);
	free(n->wait);
	free(n->keys.key);
	free(n->keys.waiters);
	free(n->keys.comers);
}

int status_unpack(const void *data, size_t len, struct node_status *n)
{
	struct coder c = { .out = NULL };
	uint32_t links;

	*n = (struct node_status){ .runs = NULL };
	cursor_init(&c.in, data, len);
	code_status(&c, n);
	code_count(&c, &links, STATUS_LINKS_MAX, LINK_BYTES);
	unpack_raw(&c.in, LINK_BYTES * links);
	if (cursor_left(&c.in))
		status_code_waits(&c, n);
	c.rc = coder_end(&c);
	if (c.rc)
		status_free(n);
	return c.rc;
}

/* ---- the step ---- */

int step_status_create(struct step_status **out, uint32_t nodes,
		       status_name_fn name, void *arg)
{
	struct step_status *s;

	if (!nodes || nodes > STATUS_NODES_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->nodes = nodes;
	s->name = name;
	s->arg = arg;
	buf_init(&s->packed, STATUS_ANSWER_MAX);
	s->all = calloc(nodes, sizeof(*s->all));
	if (!s->all) {
		free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void step_status_destroy(struct step_status *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nodes; i++)
		status_free(&s->all[i]);
	free(s->all);
	buf_free(&s->packed);
	free(s);
}

static int keep_packed(struct buf *b, uint32_t position, const void *data,
		       size_t len)
{
	size_t before = b->len;
	int rc = pack_u32(b, position);

	rc = rc ? rc : pack_bytes(b, data, len);
	if (rc)
		b->len = before;
	return rc;
}

int step_status_add(struct step_status *s, uint32_t position, const void *data,
		    size_t len)
{
	struct node_status n;
	int rc;

	if (position >= s->nodes)
		return -EPROTO;
	if (s->all[position].runs)
		return -EEXIST;
	rc = status_unpack(data, len, &n);
	if (rc)
		return rc;
	rc = keep_packed(&s->packed, position, data, len);
	if (rc) {
		status_free(&n);
		return rc;
	}
	s->all[position] = n;
	s->answered++;
	return 0;
}

bool step_status_complete(const struct step_status *s)
{
	return s->answered == s->nodes;
}

/* ---- who waits for whom ---- */

/* A rank that is gone is no reason to wait: what it misses has failed. */
static bool keeps_waiting(const struct status_run *r, enum coll_kind kind,
			  uint32_t seq)
{
	return r->phase != STATUS_GONE && r->entered[kind] <= seq;
}

/* The ranks use the other interface only. */
static bool is_elsewhere(const struct status_run *r, enum coll_kind kind)
{
	return r->phase == (kind == COLL_PMIX ? STATUS_IN_PMI : STATUS_IN_PMIX);
}

static bool is_unstarted(const struct status_run *r, enum coll_kind kind)
{
	return r->phase <= STATUS_FRESH || is_elsewhere(r, kind);
}

/*
 * libpmix tells of a node's fence when all of its ranks are in. Ranks that have not
 * started PMIx are late then; of others nobody knows.
 */
static bool some_have_not_started(const struct node_status *n, uint32_t seq)
{
	for (uint32_t i = 0; i < n->nruns; i++)
		if (keeps_waiting(&n->runs[i], COLL_PMIX, seq) &&
		    is_unstarted(&n->runs[i], COLL_PMIX))
			return true;
	return false;
}

/* True: the node's collective is known to wait for a rank of this run. */
static bool is_late(const struct node_status *n, const struct status_run *r,
		    enum coll_kind kind, uint32_t seq)
{
	return keeps_waiting(r, kind, seq) &&
	       (kind != COLL_PMIX || is_unstarted(r, COLL_PMIX) ||
		!some_have_not_started(n, seq));
}

static uint32_t count_of(const struct status_run *r)
{
	return r->last - r->first + 1;
}

/* The most that any rank of a node has entered. */
static uint32_t most_entered(const struct node_status *n, enum coll_kind kind)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n->nruns; i++)
		if (n->runs[i].entered[kind] > most)
			most = n->runs[i].entered[kind];
	return most;
}

static uint32_t missing_at(const struct node_status *n, enum coll_kind kind,
			   uint32_t seq)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < n->nruns; i++)
		if (is_late(n, &n->runs[i], kind, seq))
			missing += count_of(&n->runs[i]);
	return missing;
}

/* A node that has not answered has entered nothing, and no rank of it is missing. */
bool step_status_stalled(const struct step_status *s, enum coll_kind kind,
			 struct stalled *out)
{
	*out = (struct stalled){ .kind = kind, .seq = UINT32_MAX };
	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct node_status *n = &s->all[i];

		if (n->age_ms && n->ended[kind] < out->seq &&
		    most_entered(n, kind) > n->ended[kind])
			out->seq = n->ended[kind];
	}
	if (out->seq == UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct node_status *n = &s->all[i];

		out->missing += missing_at(n, kind, out->seq);
		if (n->age_ms > out->age_ms &&
		    most_entered(n, kind) > out->seq)
			out->age_ms = n->age_ms;
	}
	return true;
}

/* Some ranks that `what` waits for use the other interface, and wait in `other`. */
static bool waits_in(const struct step_status *s, const struct stalled *what,
		     const struct stalled *other)
{
	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct node_status *n = &s->all[i];

		for (uint32_t k = 0; k < n->nruns; k++)
			if (is_late(n, &n->runs[k], what->kind, what->seq) &&
			    is_elsewhere(&n->runs[k], what->kind) &&
			    n->runs[k].entered[other->kind] > other->seq)
				return true;
	}
	return false;
}

bool step_status_crossed(const struct step_status *s, struct stalled *out)
{
	struct stalled pmix;

	if (!step_status_stalled(s, COLL_PMIX, &pmix))
		return false;
	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (kind != COLL_PMIX && step_status_stalled(s, kind, out) &&
		    waits_in(s, out, &pmix) && waits_in(s, &pmix, out))
			return true;
	return false;
}

/* ---- as text ---- */

/* The ranks that are missing. */
struct rank_list {
	struct status_run *runs; /* ascending; NULL: no memory */
	uint32_t nruns;
	uint32_t total; /* ranks of the step */
	bool stopped;   /* all of them are */
	bool unstarted; /* none of them has started the interface, */
	bool elsewhere; /* for all use the other one */
};

static int by_first(const void *a, const void *b)
{
	const struct status_run *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static void take_node(struct rank_list *l, const struct node_status *n,
		      const struct stalled *what)
{
	for (uint32_t i = 0; i < n->nruns; i++) {
		const struct status_run *r = &n->runs[i];

		l->total += count_of(r);
		if (!is_late(n, r, what->kind, what->seq))
			continue;
		l->runs[l->nruns++] = *r;
		l->stopped &= r->stopped;
		l->unstarted &= is_unstarted(r, what->kind);
		l->elsewhere &= is_elsewhere(r, what->kind);
	}
}

static void list_missing(const struct step_status *s,
			 const struct stalled *what, struct rank_list *l)
{
	size_t room = 1;

	for (uint32_t i = 0; i < s->nodes; i++)
		room += s->all[i].nruns;
	*l = (struct rank_list){ .stopped = true, .unstarted = true, .elsewhere = true };
	l->runs = calloc(room, sizeof(*l->runs));
	if (!l->runs)
		return;
	for (uint32_t i = 0; i < s->nodes; i++)
		take_node(l, &s->all[i], what);
	qsort(l->runs, l->nruns, sizeof(*l->runs), by_first);
}

/* Runs that continue each other, of neighbouring nodes, are one. */
static void put_ranks(struct buf *b, const struct rank_list *l)
{
	uint32_t shown = 0, rest = 0;

	for (uint32_t i = 0, next; i < l->nruns; i = next) {
		uint32_t first = l->runs[i].first, last = l->runs[i].last;

		for (next = i + 1; next < l->nruns &&
				   l->runs[next].first == last + 1; next++)
			last = l->runs[next].last;
		if (shown == RUNS_SHOWN) {
			rest += last - first + 1;
			continue;
		}
		buf_printf(b, "%s%u", shown++ ? ", " : "", first);
		if (last > first)
			buf_printf(b, "-%u", last);
	}
	if (rest)
		buf_printf(b, " and %u more", rest);
}

typedef bool (*node_fn)(const struct node_status *n,
			const struct stalled *what);

static bool has_missing(const struct node_status *n, const struct stalled *what)
{
	return missing_at(n, what->kind, what->seq) > 0;
}

static bool lacks_result(const struct node_status *n,
			 const struct stalled *what)
{
	return n->ended[what->kind] <= what->seq;
}

static bool is_silent(const struct node_status *n, const struct stalled *what)
{
	return !n->runs;
}

/* "node n2", "nodes n2, n65 and 3 more" */
static void put_nodes(const struct step_status *s, struct buf *b, node_fn fn,
		      const struct stalled *what)
{
	uint32_t count = 0, shown = 0;

	for (uint32_t i = 0; i < s->nodes; i++)
		count += fn(&s->all[i], what);
	buf_puts(b, count == 1 ? "node " : "nodes ");
	for (uint32_t i = 0; i < s->nodes && shown < NODES_SHOWN; i++)
		if (fn(&s->all[i], what))
			buf_printf(b, "%s%.64s", shown++ ? ", " : "",
				   s->name(s->arg, i));
	if (count > shown)
		buf_printf(b, " and %u more", count - shown);
}

static void put_missing(const struct step_status *s, struct buf *b,
			const struct stalled *what)
{
	struct rank_list l;

	list_missing(s, what, &l);
	buf_printf(b, "waiting for %u of %u ranks: ", what->missing, l.total);
	put_ranks(b, &l);
	buf_puts(b, " (");
	put_nodes(s, b, has_missing, what);
	buf_puts(b, l.stopped ? "; stopped" : "");
	if (l.elsewhere)
		buf_puts(b, what->kind == COLL_PMIX ?
			 "; PMI started, not PMIx: " STATUS_ONE_INTERFACE :
			 "; PMIx started, not PMI: " STATUS_ONE_INTERFACE);
	else if (l.unstarted)
		buf_puts(b, what->kind == COLL_PMIX ? "; PMIx not started" :
						      "; PMI not started");
	else if (what->kind == COLL_PMIX && what->missing > 1)
		buf_puts(b, "; some of them: libpmix does not report which");
	buf_puts(b, ")");
	free(l.runs);
}

const char *step_status_text(const struct step_status *s,
			     const struct stalled *what,
			     char out[STATUS_TEXT_MAX])
{
	const char *text;
	struct buf b;

	buf_init(&b, 8 * STATUS_TEXT_MAX);
	buf_printf(&b, "%s %u: %u s, ", coll_kind_name(what->kind), what->seq,
		   what->age_ms / 1000);
	if (what->missing) {
		put_missing(s, &b, what);
	} else if (step_status_complete(s)) {
		buf_puts(&b, "all ranks are in, no result yet on ");
		put_nodes(s, &b, lacks_result, what);
	} else {
		buf_puts(&b, "every rank on the nodes that answer is in");
	}
	if (!step_status_complete(s)) {
		buf_puts(&b, "; no answer from ");
		put_nodes(s, &b, is_silent, what);
	}
	text = buf_cstr(&b);
	snprintf(out, STATUS_TEXT_MAX, "%s", text ? text : "no memory");
	buf_free(&b);
	return out;
}

/* ---- for tools ---- */

/* The number of nodes whose wait is told: more would say the same. */
static uint32_t waits_shown(const struct step_status *s)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->nodes && count < NODES_SHOWN; i++)
		count += s->all[i].wait != NULL;
	return count;
}

static int pack_waits(const struct step_status *s, struct buf *out)
{
	uint32_t left = waits_shown(s);
	int rc = 0;

	for (uint32_t i = 0; !rc && left; i++) {
		if (!s->all[i].wait)
			continue;
		rc = pack_str(out, s->all[i].wait);
		left--;
	}
	return rc;
}

static int pack_texts(const struct step_status *s, struct buf *out)
{
	struct stalled what[COLL_KINDS];
	char text[STATUS_TEXT_MAX], key[STATUS_TEXT_MAX];
	uint32_t count = 0, age_s;
	bool key_waits = step_status_key(s, 1, key, &age_s);
	int rc;

	for (int kind = 0; kind < COLL_KINDS; kind++)
		count += step_status_stalled(s, kind, &what[count]);
	rc = pack_u32(out, count + key_waits + waits_shown(s));
	for (uint32_t i = 0; !rc && i < count; i++)
		rc = pack_str(out, step_status_text(s, &what[i], text));
	if (!rc && key_waits)
		rc = pack_str(out, key);
	return rc ? rc : pack_waits(s, out);
}

int step_status_pack(const struct step_status *s, const char *step,
		     struct buf *out)
{
	int rc = pack_str(out, STATUS_FORM);

	rc = rc ? rc : pack_str(out, step);
	rc = rc ? rc : pack_u32(out, s->nodes);
	for (uint32_t i = 0; !rc && i < s->nodes; i++)
		rc = pack_str(out, s->name(s->arg, i));
	rc = rc ? rc : pack_texts(s, out);
	return rc ? rc : buf_append(out, s->packed.data, s->packed.len);
}
