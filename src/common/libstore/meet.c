/* SPDX-License-Identifier: BSD-3-Clause */
/* Meetings: all ranks, or those of one node, wait for each other. */
#include "libstore/home_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/hash.h"
#include "libutil/rankset.h"

#define RANKS_SHOWN 320 /* bytes of a list of ranks */
#define NODES_SHOWN 320 /* bytes of a list of nodes */

struct meeting {
	UT_hash_handle hh;      /* in home.meetings, by name; the oldest is the first */
	uint64_t number;        /* of meetings at this home */
	struct waiter **in;     /* by index in o.ranks; NULL: missing */
	struct waiter *waiters;
	uint32_t nin;
	uint64_t bytes;         /* counted for it */
	uint64_t values;        /* bytes of what the ranks have brought */
	bool gather;
	size_t len;
	char name[];            /* first two bytes: space, and gather */
};

/* ---- words ---- */

static const char *kind(const struct meeting *m)
{
	return m->gather ? "allgather" : "barrier";
}

static const char *shown(const struct meeting *m, char out[NAME_SHOWN])
{
	return home_show_name(m->name + 2, m->len - 2, out);
}

static uint32_t rank_at(const struct home *h, uint32_t index)
{
	return h->o.ranks ? h->o.ranks[index] : index;
}

static const char *node_of(const struct home *h, uint32_t rank)
{
	uint32_t position = layout_rank_position(h->o.layout, rank);

	return h->o.names[layout_node_id(h->o.layout, position)];
}

/* The nodes of ascending ranks; each once, where its ranks follow one another. */
static void list_nodes(const struct home *h, const uint32_t *ranks, uint32_t n,
		       char out[NODES_SHOWN])
{
	const char *last = NULL;
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		const char *node = node_of(h, ranks[i]);
		size_t len = strlen(node);

		if (last && !strcmp(last, node))
			continue;
		if (used + len + sizeof(", , ...") > NODES_SHOWN) {
			snprintf(out + used, NODES_SHOWN - used, ", ...");
			return;
		}
		used += (size_t)snprintf(out + used, NODES_SHOWN - used, "%s%s",
					 last ? ", " : "", node);
		last = node;
	}
}

/* Lists of the ranks that are not in a meeting (NULL: all), and of their nodes. Returns how many. */
static uint32_t list_missing(const struct home *h, const struct meeting *m,
			     char list[RANKS_SHOWN], char nodes[NODES_SHOWN])
{
	uint32_t *ranks = calloc(h->o.nranks, sizeof(*ranks)), n = 0;

	for (uint32_t i = 0; ranks && i < h->o.nranks; i++)
		if (!m || !m->in[i])
			ranks[n++] = rank_at(h, i);
	if (n) {
		rankset_format(ranks, n, list, RANKS_SHOWN);
		list_nodes(h, ranks, n, nodes);
	}
	free(ranks);
	return n;
}

static const char *plural(const char *nodes)
{
	return strchr(nodes, ',') ? "s" : "";
}

/* "ranks 3, 5-6 (nodes n1, n2)" */
static void name_missing(const struct home *h, const struct meeting *m,
			 char out[STORE_TEXT_MAX])
{
	char list[RANKS_SHOWN], nodes[NODES_SHOWN];
	uint32_t n = list_missing(h, m, list, nodes);

	out[0] = '\0';
	if (n)
		snprintf(out, STORE_TEXT_MAX, "rank%s %s (node%s %s)", n > 1 ? "s" : "",
			 list, plural(nodes), nodes);
}

uint64_t home_oldest_meeting(const struct home *h)
{
	return h->meetings ? h->meetings->number : 0;
}

/* In the form of collectives of MPI: libpmi/status.h. */
void home_tell_meeting(const struct home *h, unsigned seconds, char text[STORE_TEXT_MAX])
{
	const struct meeting *m = h->meetings;
	char list[RANKS_SHOWN], nodes[NODES_SHOWN], name[NAME_SHOWN];
	uint32_t n = m ? list_missing(h, m, list, nodes) : 0;

	text[0] = '\0';
	if (n)
		snprintf(text, STORE_TEXT_MAX,
			 "%s %s of pmi2x-sync: %u s, waiting for %u of %u ranks: %s (node%s %s)",
			 kind(m), shown(m, name), seconds, n, h->o.nranks, list,
			 plural(nodes), nodes);
}

/* ---- meetings ---- */

static struct meeting *find(const struct home *h, const char *name, size_t len)
{
	struct meeting *m;

	HASH_FIND_BYHASHVALUE(hh, h->meetings, name, len,
			      hash_seeded(h->o.store.seed, name, len), m);
	return m;
}

static void free_meeting(struct home *h, struct meeting *m)
{
	HASH_DELETE(hh, h->meetings, m);
	home_give(h, m->bytes);
	free(m->in);
	free(m);
}

/* NULL: `from` has been answered. */
static struct meeting *add(struct home *h, const struct asker *from, const char *name,
			   size_t len)
{
	uint64_t bytes = HOME_OVERHEAD + len + h->o.nranks * sizeof(struct waiter *);
	struct meeting *m;

	if (!home_take(h, from, bytes))
		return NULL;
	m = calloc(1, sizeof(*m) + len);
	if (m)
		m->in = calloc(h->o.nranks, sizeof(*m->in));
	if (m && m->in) {
		m->number = ++h->last_meeting;
		m->bytes = bytes;
		m->len = len;
		memcpy(m->name, name, len);
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, h->meetings, m->name, len,
					    hash_seeded(h->o.store.seed, name, len), m);
	}
	if (m && m->hh.tbl)
		return m;
	home_give(h, bytes);
	if (m)
		free(m->in);
	free(m);
	home_answer_text(h, from, STORE_FULL, "no memory for a meeting of ranks");
	return NULL;
}

static void make_name(char out[STORE_KEY_MAX + 2], enum store_space space,
		      const struct store_request *rq)
{
	out[0] = (char)space;
	out[1] = (char)rq->gather;
	if (rq->keys->len)
		memcpy(out + 2, rq->keys->data, rq->keys->len);
}

/* The waiter is in no list any more. */
static void forget(struct home *h, struct meeting *m, struct waiter *w)
{
	m->in[home_rank_index(h, w->rank)] = NULL;
	m->nin--;
	DL_DELETE(m->waiters, w);
	if (w->value)
		m->values -= w->value->len;
	home_waiter_free(h, w);
}

/* ---- ends ---- */

/* One answer to all that are in the meeting, which ends. */
static void answer_all(struct home *h, struct meeting *m, const struct store_answer *a)
{
	struct asker *to = calloc((size_t)m->nin + 1, sizeof(*to)), one;
	uint32_t n = 0;

	while (m->waiters) {
		one = m->waiters->asker;
		forget(h, m, m->waiters);
		if (to)
			to[n++] = one;
		else
			h->answer(h->arg, &one, 1, a);
	}
	if (n)
		h->answer(h->arg, to, n, a);
	free(to);
	free_meeting(h, m);
}

static void fail(struct home *h, struct meeting *m, const char *why)
{
	const struct store_answer a = { .status = STORE_FAILED, .text = why };

	answer_all(h, m, &a);
}

static void fail_by_rank(struct home *h, struct meeting *m, uint32_t index)
{
	char why[STORE_TEXT_MAX], name[NAME_SHOWN];
	uint32_t rank = rank_at(h, index);

	snprintf(why, sizeof(why), "%s %s cannot end: rank %u (node %.64s) %s and is not in it",
		 kind(m), shown(m, name), rank, node_of(h, rank),
		 h->how[h->gone[index] - 1]);
	fail(h, m, why);
}

void meet_rank_gone(struct home *h, uint32_t index)
{
	struct meeting *m, *next;

	HASH_ITER(hh, h->meetings, m, next)
		if (!m->in[index])
			fail_by_rank(h, m, index);
}

/* True, and the meeting has failed: a rank that it misses has ended. */
static bool misses_gone(struct home *h, struct meeting *m)
{
	if (!h->ngone)
		return false;
	for (uint32_t i = 0; i < h->o.nranks; i++) {
		if (h->gone[i] && !m->in[i]) {
			fail_by_rank(h, m, i);
			return true;
		}
	}
	return false;
}

void meet_leave(struct home *h, struct waiter *w)
{
	struct meeting *m = w->meeting;

	forget(h, m, w);
	if (!m->nin)
		free_meeting(h, m);
	else if (!h->busy)
		(void)misses_gone(h, m);
}

void meet_look(struct home *h)
{
	struct meeting *m, *next;

	HASH_ITER(hh, h->meetings, m, next)
		(void)misses_gone(h, m);
}

static void complete(struct home *h, struct meeting *m)
{
	struct payload **values = m->gather ? calloc(h->o.nranks, sizeof(*values)) : NULL;

	if (m->gather && !values) {
		fail(h, m, "no memory for the values of an allgather");
		return;
	}
	for (uint32_t i = 0; values && i < h->o.nranks; i++)
		values[i] = payload_ref(m->in[i]->value);
	answer_all(h, m, &(struct store_answer){
		.values = values, .nvalues = values ? h->o.nranks : 0, .text = "",
	});
	for (uint32_t i = 0; values && i < h->o.nranks; i++)
		payload_unref(values[i]);
	free(values);
}

/* ---- entering ---- */

/* False: `from` has been answered. */
static bool bring_value(struct home *h, const struct asker *from, struct meeting *m,
			struct waiter *w, const struct store_bytes *value)
{
	if (!m->gather)
		return true;
	if (m->values + value->len > STORE_ANSWER_MAX) {
		home_answer_text(h, from, STORE_FULL,
				 "the values of an allgather may have %zu MiB together",
				 STORE_ANSWER_MAX >> 20);
		return false;
	}
	if (!home_take(h, from, value->len))
		return false;
	w->bytes += value->len;
	w->value = payload_copy_in(h->o.store.budget, value->data, value->len);
	if (w->value)
		m->values += value->len;
	else
		home_answer_text(h, from, STORE_FULL,
				 "no memory for a value (see Pmi2xBufferLimit)");
	return w->value != NULL;
}

/* False: `from` has been answered. */
static bool add_rank(struct home *h, const struct asker *from, struct meeting *m,
		     uint32_t index, const struct store_request *rq)
{
	char name[NAME_SHOWN];
	struct waiter *w;

	if (m->in[index]) {
		home_answer_text(h, from, STORE_INVALID,
				 "another process of rank %u is in %s %s already: give one of the two another name",
				 rq->rank, kind(m), shown(m, name));
		return false;
	}
	w = home_waiter(h, from, STORE_MEET, NULL, 0);
	if (!w)
		return false;
	if (!bring_value(h, from, m, w, &rq->value)) {
		home_waiter_free(h, w);
		return false;
	}
	w->meeting = m;
	w->rank = rq->rank;
	m->in[index] = w;
	m->nin++;
	DL_APPEND(m->waiters, w);
	return true;
}

void meet_enter(struct home *h, const struct asker *from, enum store_space space,
		const struct store_request *rq)
{
	uint32_t index = home_rank_index(h, rq->rank);
	char name[STORE_KEY_MAX + 2];
	struct meeting *m;

	if (index == UINT32_MAX) {
		home_answer_text(h, from, STORE_INVALID, "rank %u does not run %s", rq->rank,
				 rq->local ? "on this node" : "in this step");
		return;
	}
	make_name(name, space, rq);
	m = find(h, name, rq->keys->len + 2);
	if (!m)
		m = add(h, from, name, rq->keys->len + 2);
	if (!m)
		return;
	m->gather = rq->gather;
	if (!add_rank(h, from, m, index, rq)) {
		if (!m->nin)
			free_meeting(h, m);
		return;
	}
	if (m->nin == h->o.nranks)
		complete(h, m);
	else
		(void)misses_gone(h, m);
}

void meet_missing(struct home *h, const struct asker *from, enum store_space space,
		  const struct store_request *rq)
{
	char name[STORE_KEY_MAX + 2], text[STORE_TEXT_MAX];

	make_name(name, space, rq);
	name_missing(h, find(h, name, rq->keys->len + 2), text);
	home_answer_text(h, from, STORE_OK, "%s", text);
}
