/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of all nodes together: who keeps whom waiting. */
#include "libpmi/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_SHOWN 16  /* of ranks, in a text */
#define NODES_SHOWN 8

struct survey {
	uint32_t nodes;
	uint32_t answered;
	survey_name_fn name;
	void *arg;
	struct node_state *states; /* by position */
	bool *there;
};

int survey_create(struct survey **out, uint32_t nodes, survey_name_fn name,
		  void *arg)
{
	struct survey *s;

	if (!nodes || nodes > SURVEY_NODES_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->nodes = nodes;
	s->name = name;
	s->arg = arg;
	s->states = calloc(nodes, sizeof(*s->states));
	s->there = calloc(nodes, sizeof(*s->there));
	if (!s->states || !s->there) {
		survey_destroy(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void survey_destroy(struct survey *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->states && i < s->nodes; i++)
		state_free(&s->states[i]);
	free(s->states);
	free(s->there);
	free(s);
}

int survey_add(struct survey *s, uint32_t position, const void *data,
	       size_t len)
{
	int rc;

	if (position >= s->nodes)
		return -EPROTO;
	if (s->there[position])
		return -EEXIST;
	rc = state_unpack(data, len, &s->states[position]);
	if (rc)
		return rc;
	s->there[position] = true;
	s->answered++;
	return 0;
}

bool survey_complete(const struct survey *s)
{
	return s->answered == s->nodes;
}

/* ---- who waits for whom ---- */

/* A rank that is gone is no reason to wait: what it misses has failed. */
static bool keeps_waiting(const struct state_run *r, enum coll_kind kind,
			  uint32_t seq)
{
	return r->phase != STATE_GONE && r->entered[kind] <= seq;
}

static uint32_t count_of(const struct state_run *r)
{
	return r->last - r->first + 1;
}

/* Of a node: the most that any of its ranks has entered. */
static uint32_t most_entered(const struct node_state *n, enum coll_kind kind)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n->nruns; i++)
		if (n->runs[i].entered[kind] > most)
			most = n->runs[i].entered[kind];
	return most;
}

static uint32_t missing_at(const struct node_state *n, enum coll_kind kind,
			   uint32_t seq)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < n->nruns; i++)
		if (keeps_waiting(&n->runs[i], kind, seq))
			missing += count_of(&n->runs[i]);
	return missing;
}

bool survey_stalled(const struct survey *s, enum coll_kind kind,
		    struct stalled *out)
{
	*out = (struct stalled){ .kind = kind, .seq = UINT32_MAX };
	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct node_state *n = &s->states[i];

		if (s->there[i] && n->age_ms &&
		    most_entered(n, kind) > n->ended[kind] &&
		    n->ended[kind] < out->seq)
			out->seq = n->ended[kind];
	}
	if (out->seq == UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct node_state *n = &s->states[i];

		if (!s->there[i])
			continue;
		out->missing += missing_at(n, kind, out->seq);
		if (n->age_ms > out->age_ms &&
		    most_entered(n, kind) > out->seq)
			out->age_ms = n->age_ms;
	}
	return true;
}

/* ---- as text ---- */

struct rank_list {
	struct state_run *runs; /* all of them, ascending when sorted */
	uint32_t nruns;
	uint32_t total; /* ranks of the step */
	bool stopped;   /* all of them are */
	bool unstarted; /* none of them has started PMI */
};

static int by_first(const void *a, const void *b)
{
	const struct state_run *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static void join_runs(struct rank_list *l)
{
	uint32_t kept = 0;

	if (!l->nruns)
		return;
	qsort(l->runs, l->nruns, sizeof(*l->runs), by_first);
	for (uint32_t i = 1; i < l->nruns; i++) {
		if (l->runs[i].first == l->runs[kept].last + 1)
			l->runs[kept].last = l->runs[i].last;
		else
			l->runs[++kept] = l->runs[i];
	}
	l->nruns = kept + 1;
}

static void take_node(struct rank_list *l, const struct node_state *n,
		      const struct stalled *what)
{
	for (uint32_t i = 0; i < n->nruns; i++) {
		const struct state_run *r = &n->runs[i];

		l->total += count_of(r);
		if (!keeps_waiting(r, what->kind, what->seq))
			continue;
		l->runs[l->nruns++] = *r;
		l->stopped &= r->stopped;
		l->unstarted &= r->phase <= STATE_FRESH;
	}
}

/* Every rank that is missing; runs is NULL when there is no memory. */
static void list_missing(const struct survey *s, const struct stalled *what,
			 struct rank_list *l)
{
	size_t room = 1;

	for (uint32_t i = 0; i < s->nodes; i++)
		room += s->states[i].nruns;
	*l = (struct rank_list){ .stopped = true, .unstarted = true };
	l->runs = calloc(room, sizeof(*l->runs));
	for (uint32_t i = 0; l->runs && i < s->nodes; i++)
		if (s->there[i])
			take_node(l, &s->states[i], what);
	join_runs(l);
}

static void put_ranks(struct buf *b, const struct rank_list *l)
{
	uint32_t rest = 0;

	for (uint32_t i = 0; i < l->nruns; i++) {
		const struct state_run *r = &l->runs[i];

		if (i >= RUNS_SHOWN)
			rest += count_of(r);
		else if (r->first == r->last)
			buf_printf(b, "%s%u", i ? ", " : "", r->first);
		else
			buf_printf(b, "%s%u-%u", i ? ", " : "", r->first,
				   r->last);
	}
	if (rest)
		buf_printf(b, " and %u more", rest);
}

typedef bool (*node_fn)(const struct survey *s, uint32_t position,
			const struct stalled *what);

static bool has_missing(const struct survey *s, uint32_t position,
			const struct stalled *what)
{
	return s->there[position] &&
	       missing_at(&s->states[position], what->kind, what->seq);
}

static bool lacks_result(const struct survey *s, uint32_t position,
			 const struct stalled *what)
{
	return s->there[position] &&
	       s->states[position].ended[what->kind] <= what->seq;
}

static bool is_silent(const struct survey *s, uint32_t position,
		      const struct stalled *what)
{
	return !s->there[position];
}

/* "node n2", "nodes n2, n65 and 3 more" */
static void put_nodes(const struct survey *s, struct buf *b, node_fn fn,
		      const struct stalled *what)
{
	uint32_t count = 0, shown = 0;

	for (uint32_t i = 0; i < s->nodes; i++)
		count += fn(s, i, what);
	buf_puts(b, count == 1 ? "node " : "nodes ");
	for (uint32_t i = 0; i < s->nodes && shown < NODES_SHOWN; i++)
		if (fn(s, i, what))
			buf_printf(b, "%s%.64s", shown++ ? ", " : "",
				   s->name(s->arg, i));
	if (count > shown)
		buf_printf(b, " and %u more", count - shown);
}

static void put_missing(const struct survey *s, struct buf *b,
			const struct stalled *what)
{
	struct rank_list l;

	list_missing(s, what, &l);
	buf_printf(b, "waiting for %u of %u ranks: ", what->missing, l.total);
	put_ranks(b, &l);
	buf_puts(b, " (");
	put_nodes(s, b, has_missing, what);
	buf_puts(b, l.stopped ? "; stopped" : "");
	buf_puts(b, l.unstarted ? "; PMI not started" : "");
	buf_puts(b, ")");
	free(l.runs);
}

const char *survey_text(const struct survey *s, const struct stalled *what,
			char out[SURVEY_TEXT_MAX])
{
	const char *text;
	struct buf b;

	buf_init(&b, 8 * SURVEY_TEXT_MAX);
	buf_printf(&b, "%s %u: %u s, ", coll_kind_name(what->kind), what->seq,
		   what->age_ms / 1000);
	if (what->missing) {
		put_missing(s, &b, what);
	} else if (survey_complete(s)) {
		buf_puts(&b, "all ranks are in, no result yet on ");
		put_nodes(s, &b, lacks_result, what);
	} else {
		buf_puts(&b, "no rank that answers is missing");
	}
	if (!survey_complete(s)) {
		buf_puts(&b, "; no answer from ");
		put_nodes(s, &b, is_silent, what);
	}
	text = buf_cstr(&b);
	snprintf(out, SURVEY_TEXT_MAX, "%s", text ? text : "no memory");
	buf_free(&b);
	return out;
}

/* ---- as JSON ---- */

static void json_text(struct buf *b, const char *text)
{
	buf_puts(b, "\"");
	for (; *text; text++)
		if (*text >= ' ' && *text < 127 && *text != '"' &&
		    *text != '\\')
			buf_append(b, text, 1);
	buf_puts(b, "\"");
}

static void json_runs(struct buf *b, const struct node_state *n)
{
	for (uint32_t i = 0; i < n->nruns; i++) {
		const struct state_run *r = &n->runs[i];

		buf_printf(b, "%s{\"first\":%u,\"last\":%u,\"phase\":\"%s\","
			   "\"stopped\":%s,\"entered\":[%u,%u,%u]}",
			   i ? "," : "", r->first, r->last,
			   state_phase_name(r->phase),
			   r->stopped ? "true" : "false", r->entered[COLL_FENCE],
			   r->entered[COLL_GATHER], r->entered[COLL_RING]);
	}
}

static void json_links(const struct survey *s, struct buf *b,
		       const struct node_state *n)
{
	for (uint32_t i = 0; i < n->nlinks; i++) {
		const struct state_link *l = &n->links[i];

		buf_printf(b, "%s{\"to\":", i ? "," : "");
		json_text(b, l->position < s->nodes ?
				     s->name(s->arg, l->position) : "?");
		buf_printf(b, ",\"parent\":%s,\"state\":\"%s\",\"queued\":%llu}",
			   l->is_parent ? "true" : "false",
			   state_link_name(l->state),
			   (unsigned long long)l->queued);
	}
}

static void json_node(const struct survey *s, struct buf *b, uint32_t position)
{
	const struct node_state *n = &s->states[position];

	buf_puts(b, "{\"node\":");
	json_text(b, s->name(s->arg, position));
	buf_printf(b, ",\"answered\":%s", s->there[position] ? "true" : "false");
	buf_printf(b, ",\"age_ms\":%u,\"requests\":%u,\"ended\":[%u,%u,%u]",
		   n->age_ms, n->requests, n->ended[COLL_FENCE],
		   n->ended[COLL_GATHER], n->ended[COLL_RING]);
	buf_puts(b, ",\"ranks\":[");
	json_runs(b, n);
	buf_puts(b, "],\"links\":[");
	json_links(s, b, n);
	buf_puts(b, "]}");
}

int survey_json(const struct survey *s, const char *step, struct buf *out)
{
	char text[SURVEY_TEXT_MAX];
	struct stalled what;
	bool comma = false;

	buf_puts(out, "{\"step\":");
	json_text(out, step);
	buf_puts(out, ",\"waiting\":[");
	for (int kind = 0; kind < COLL_KINDS; kind++) {
		if (!survey_stalled(s, kind, &what))
			continue;
		buf_puts(out, comma ? "," : "");
		json_text(out, survey_text(s, &what, text));
		comma = true;
	}
	buf_puts(out, "],\"nodes\":[");
	for (uint32_t i = 0; i < s->nodes; i++) {
		buf_puts(out, i ? "," : "");
		json_node(s, out, i);
	}
	return buf_puts(out, "]}\n");
}
