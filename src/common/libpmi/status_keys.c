/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks that wait for a key of the step's store, that have come and do not wait, and that have not come. */
#include "libpmi/status_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/control.h"
#include "libutil/rankset.h"

#define WAITERS_MAX 65536     /* of a node; comers, too */
#define WAITER_BYTES (4 + 4 + 1)
#define COMER_BYTES (4 + 2)
#define RANKS_MAX (1u << 24)  /* ranks of a step that the text can describe */
#define LIST_SHOWN 160        /* bytes of a list of ranks */

/* ---- packed ---- */

/* Malloc'ed; NULL: it is empty, or there is no memory. */
static void code_line(struct coder *c, char **line)
{
	const char *text = *line ? *line : "";
	size_t len = strlen(text);
	const void *at = text;

	code_limited(c, &at, &len, STATUS_TEXT_MAX - 1);
	if (c->out)
		return;
	*line = at && len ? strndup(at, len) : NULL;
	if (*line)
		control_printable(*line);
}

static void code_waiters(struct coder *c, struct status_keys *k)
{
	code_count(c, &k->nwaiters, WAITERS_MAX, WAITER_BYTES);
	if (!c->out && !(k->waiters = calloc(k->nwaiters + 1, sizeof(*k->waiters))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; !c->rc && i < k->nwaiters; i++) {
		code_u32(c, &k->waiters[i].position);
		code_u32(c, &k->waiters[i].id);
		code_flag(c, &k->waiters[i].other);
	}
}

static void code_comers(struct coder *c, struct status_keys *k)
{
	code_count(c, &k->ncomers, WAITERS_MAX, COMER_BYTES);
	if (!c->out && !(k->comers = calloc(k->ncomers + 1, sizeof(*k->comers))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; !c->rc && i < k->ncomers; i++) {
		code_u32(c, &k->comers[i].rank);
		code_u16(c, &k->comers[i].port);
	}
}

void status_code_waits(struct coder *c, struct node_status *n)
{
	code_line(c, &n->wait);
	code_line(c, &n->keys.key);
	code_u32(c, &n->keys.age_s);
	code_flag(c, &n->keys.torch);
	code_waiters(c, &n->keys);
	code_comers(c, &n->keys);
}

/* ---- what each rank does ---- */

enum doing { NO_RANK, AWAY, IDLE, WAITS_ELSE, WAITS };

struct view {
	const struct step_status *step;
	const struct status_keys *keys; /* of the node that has waited longest */
	unsigned char *doing;           /* enum doing, by rank */
	uint32_t ranks;
	uint32_t unknown; /* waiters whose rank is not known */
	uint32_t *list;   /* room for all ranks */
};

/* NULL: nobody has waited for `least_s`. */
static const struct status_keys *oldest(const struct step_status *s, uint32_t least_s)
{
	const struct status_keys *found = NULL;

	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct status_keys *k = &s->all[i].keys;

		if (k->key && k->age_s >= least_s && (!found || k->age_s > found->age_s))
			found = k;
	}
	return found;
}

/* The highest rank and 1; 0: more ranks than this file describes. */
static uint32_t rank_limit(const struct step_status *s)
{
	uint64_t limit = 0, count = 0;

	for (uint32_t i = 0; i < s->nodes; i++) {
		for (uint32_t k = 0; k < s->all[i].nruns; k++) {
			const struct status_run *r = &s->all[i].runs[k];

			count += (uint64_t)r->last - r->first + 1;
			limit = r->last >= limit ? (uint64_t)r->last + 1 : limit;
		}
	}
	return limit <= RANKS_MAX && count <= RANKS_MAX ? (uint32_t)limit : 0;
}

/* Ranks that have ended do not count. A rank that does two things counts for the later one of the enum. */
static void note(const struct view *v, uint32_t rank, enum doing doing)
{
	if (rank < v->ranks && v->doing[rank] != NO_RANK && v->doing[rank] < doing)
		v->doing[rank] = (unsigned char)doing;
}

static void note_living(const struct view *v)
{
	for (uint32_t i = 0; i < v->step->nodes; i++) {
		const struct node_status *n = &v->step->all[i];

		for (uint32_t k = 0; k < n->nruns; k++)
			if (n->runs[k].phase != STATUS_GONE)
				memset(v->doing + n->runs[k].first, AWAY,
				       n->runs[k].last - n->runs[k].first + 1);
	}
}

static void note_comers(const struct view *v)
{
	for (uint32_t i = 0; i < v->step->nodes; i++) {
		const struct status_keys *k = &v->step->all[i].keys;

		for (uint32_t c = 0; c < k->ncomers; c++) {
			const struct status_comer *comer = &k->comers[c];

			if (v->keys->torch && comer->port == STATUS_PORT_HIDDEN && comer->rank < v->ranks)
				v->doing[comer->rank] = NO_RANK;
			else if (!comer->port != v->keys->torch)
				note(v, comer->rank, IDLE);
		}
	}
}

static uint32_t rank_at(const struct status_keys *k, uint32_t port)
{
	for (uint32_t c = 0; c < k->ncomers; c++)
		if (k->comers[c].port > STATUS_PORT_HIDDEN && k->comers[c].port == port)
			return k->comers[c].rank;
	return UINT32_MAX;
}

/*
 * The rank of a waiter at a server. UINT32_MAX: the node that a connection of PyTorch comes from does
 * not know it. Several nodes may share the address of the server.
 */
static uint32_t rank_of(const struct view *v, const struct status_waiter *w, uint32_t server)
{
	uint32_t rank = UINT32_MAX;

	if (!v->keys->torch)
		return w->id;
	if (w->position < v->step->nodes)
		rank = rank_at(&v->step->all[w->position].keys, w->id);
	for (uint32_t i = 0; w->position == server && rank == UINT32_MAX && i < v->step->nodes; i++)
		rank = rank_at(&v->step->all[i].keys, w->id);
	return rank;
}

static void note_waiters(struct view *v)
{
	for (uint32_t i = 0; i < v->step->nodes; i++) {
		const struct status_keys *k = &v->step->all[i].keys;
		bool same = k->key && !strcmp(k->key, v->keys->key);

		for (uint32_t w = 0; k->torch == v->keys->torch && w < k->nwaiters; w++) {
			uint32_t rank = rank_of(v, &k->waiters[w], i);
			bool for_it = same && !k->waiters[w].other;

			note(v, rank, for_it ? WAITS : WAITS_ELSE);
			v->unknown += for_it && rank == UINT32_MAX;
		}
	}
}

/* ---- as text ---- */

static bool node_has(const struct view *v, const struct node_status *n, enum doing doing)
{
	for (uint32_t k = 0; k < n->nruns; k++)
		for (uint32_t r = n->runs[k].first; r <= n->runs[k].last; r++)
			if (v->doing[r] == doing)
				return true;
	return false;
}

static void put_nodes(const struct view *v, struct buf *b, enum doing doing)
{
	const struct step_status *s = v->step;
	uint32_t count = 0, shown = 0;

	for (uint32_t i = 0; i < s->nodes; i++)
		count += node_has(v, &s->all[i], doing);
	buf_puts(b, count == 1 ? "node " : "nodes ");
	for (uint32_t i = 0; i < s->nodes && shown < NODES_SHOWN; i++)
		if (node_has(v, &s->all[i], doing))
			buf_printf(b, "%s%.64s", shown++ ? ", " : "", s->name(s->arg, i));
	if (count > shown)
		buf_printf(b, " and %u more", count - shown);
}

/* "; ranks 1-2 (node n1) wait for another key". Returns whether there are any. */
static bool put_ranks(const struct view *v, struct buf *b, const char *before, enum doing doing,
		      const char *one, const char *several)
{
	char list[LIST_SHOWN];
	uint32_t n = 0;

	for (uint32_t r = 0; r < v->ranks; r++)
		if (v->doing[r] == doing)
			v->list[n++] = r;
	if (!n)
		return false;
	buf_printf(b, "%srank%s %s (", before, n == 1 ? "" : "s",
		   rankset_format(v->list, n, list, sizeof(list)));
	put_nodes(v, b, doing);
	buf_printf(b, ") %s", n == 1 ? one : several);
	return true;
}

static void put_unknown(const struct view *v, struct buf *b, bool others)
{
	if (v->unknown)
		buf_printf(b, "%s%u %sconnection%s of PyTorch wait%s for it",
			   others ? " and " : "", v->unknown, others ? "more " : "",
			   v->unknown == 1 ? "" : "s", v->unknown == 1 ? "s" : "");
}

static void put_silent(const struct view *v, struct buf *b)
{
	uint32_t silent = v->step->nodes - v->step->answered;

	if (silent)
		buf_printf(b, "; no answer from %u node%s", silent, silent == 1 ? "" : "s");
}

static void put_all(const struct view *v, struct buf *b)
{
	bool torch = v->keys->torch, known;

	buf_printf(b, "key %s: %u s, ", v->keys->key, v->keys->age_s);
	known = put_ranks(v, b, "", WAITS, "waits for it", "wait for it");
	put_unknown(v, b, known);
	buf_puts(b, ", and it has no value");
	(void)put_ranks(v, b, "; ", WAITS_ELSE, "waits for another key", "wait for other keys");
	(void)put_ranks(v, b, "; ", IDLE,
			torch ? "is connected, and does not wait" :
				"has used pmi2x-sync, and does not wait for a key",
			torch ? "are connected, and do not wait" :
				"have used pmi2x-sync, and do not wait for a key");
	(void)put_ranks(v, b, "; ", AWAY,
			torch ? "is not connected to the TCPStore" : "has not used pmi2x-sync",
			torch ? "are not connected to the TCPStore" : "have not used pmi2x-sync");
	put_silent(v, b);
}

static bool look(struct view *v)
{
	v->doing = calloc(v->ranks, sizeof(*v->doing));
	v->list = calloc(v->ranks, sizeof(*v->list));
	if (!v->doing || !v->list)
		return false;
	note_living(v);
	note_comers(v);
	note_waiters(v);
	return true;
}

bool step_status_key(const struct step_status *s, uint32_t least_s, char out[STATUS_TEXT_MAX],
		     uint32_t *age_s)
{
	struct view v = { .step = s, .keys = oldest(s, least_s), .ranks = rank_limit(s) };
	const char *text;
	struct buf b;
	bool known;

	if (!v.keys || !v.ranks)
		return false;
	buf_init(&b, 8 * STATUS_TEXT_MAX);
	known = look(&v);
	if (known)
		put_all(&v, &b);
	text = known ? buf_cstr(&b) : NULL;
	snprintf(out, STATUS_TEXT_MAX, "%s", text ? text : "");
	*age_s = v.keys->age_s;
	buf_free(&b);
	free(v.doing);
	free(v.list);
	return text != NULL;
}
