/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of what waits, for the report of a long wait and for pmi2x why. */
#include "libstore/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/rankset.h"

#define RANKS_SHOWN 320 /* bytes of a list of ranks */
#define WAITS_LOOKED_AT 4096

void wait_begin(struct store *s, struct own_request *r, const struct store_request *rq)
{
	struct key_wait *w = calloc(1, sizeof(*w));

	if (!w)
		return;
	w->request = r;
	w->rank = rq->rank;
	w->nkeys = rq->nkeys;
	home_show_name(rq->keys[0].data, rq->keys[0].len, w->key);
	r->wait = w;
	DL_APPEND(s->key_waits, w);
}

void wait_end(struct store *s, struct own_request *r)
{
	if (!r->wait)
		return;
	DL_DELETE(s->key_waits, r->wait);
	free(r->wait);
	r->wait = NULL;
}

uint64_t store_oldest_wait(const struct store *s)
{
	uint64_t own = s->key_waits ? s->key_waits->request->number : 0;

	return own + home_oldest_meeting(s->here) + (s->step ? home_oldest_meeting(s->step) : 0);
}

/* The key that the request misses; where another node knows that, its first one. */
static const char *missing_key(const struct store *s, const struct key_wait *w,
			       char out[NAME_SHOWN])
{
	const struct asker asker = { w->request->number, ASKER_HERE, 0 };
	const struct home *home = w->request->local ? s->here : s->step;
	const char *key = home ? home_missing_key(home, &asker, out) : NULL;

	return key ? key : w->key;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The ranks whose requests begin with the same key; each once. Returns how many. */
static uint32_t ranks_of(const struct store *s, const struct key_wait *like, uint32_t *ranks)
{
	uint32_t n = 0, kept = 0, looked = 0;
	const struct key_wait *w;

	DL_FOREACH(s->key_waits, w) {
		if (looked++ == WAITS_LOOKED_AT)
			break;
		if (!strcmp(w->key, like->key) && w->request->local == like->request->local &&
		    w->request->client->space == like->request->client->space)
			ranks[n++] = w->rank;
	}
	qsort(ranks, n, sizeof(*ranks), compare);
	for (uint32_t i = 0; i < n; i++)
		if (!i || ranks[i] != ranks[kept - 1])
			ranks[kept++] = ranks[i];
	return like->request->client->space == STORE_SYNC ? kept : n;
}

/* A connection of PyTorch has no rank. */
static void put_waiters(const struct store *s, const struct key_wait *w, char *out, size_t size)
{
	const char *node = s->names[layout_node_id(s->layout, s->position)];
	uint32_t *ranks = calloc(WAITS_LOOKED_AT, sizeof(*ranks)), n;
	char list[RANKS_SHOWN];

	out[0] = '\0';
	n = ranks ? ranks_of(s, w, ranks) : 0;
	if (n && w->request->client->space == STORE_TORCH) {
		snprintf(out, size, "%u connection%s of PyTorch wait%s", n, n > 1 ? "s" : "",
			 n > 1 ? "" : "s");
	} else if (n) {
		rankset_format(ranks, n, list, sizeof(list));
		snprintf(out, size, "rank%s %s (node %.64s) wait%s", n > 1 ? "s" : "", list,
			 node, n > 1 ? "" : "s");
	}
	free(ranks);
}

static void tell_key(const struct store *s, unsigned seconds, char text[STORE_TEXT_MAX])
{
	const struct key_wait *w = s->key_waits;
	char key[NAME_SHOWN], waiters[STORE_TEXT_MAX / 2], more[32] = "";

	if (w->nkeys > 1)
		snprintf(more, sizeof(more), " (of %u keys)", w->nkeys);
	put_waiters(s, w, waiters, sizeof(waiters));
	snprintf(text, STORE_TEXT_MAX, "key %s%s: %u s, %s for it, and it has no value",
		 missing_key(s, w, key), more, seconds, waiters);
}

/* ---- by client ---- */

bool store_waits_for_key(const struct store *s, struct store_key_wait *out)
{
	const struct key_wait *w = s->key_waits;
	char text[STORE_TEXT_MAX] = "", key[NAME_SHOWN];

	if (s->step)
		home_tell_meeting(s->step, 0, text);
	if (!text[0])
		home_tell_meeting(s->here, 0, text);
	if (text[0] || !w || w->request->local)
		return false;
	snprintf(out->key, sizeof(out->key), "%s", missing_key(s, w, key));
	out->space = w->request->client->space;
	return true;
}

void store_each_key_wait(const struct store *s, const struct store_key_wait *wait,
			 void (*fn)(void *arg, void *client_arg, uint32_t rank, bool for_it),
			 void *arg)
{
	char key[NAME_SHOWN];
	uint32_t looked = 0;
	const struct key_wait *w;

	DL_FOREACH(s->key_waits, w) {
		const struct store_client *c = w->request->client;

		if (looked++ == WAITS_LOOKED_AT)
			break;
		if (c->space == wait->space && !w->request->local)
			fn(arg, c->arg, w->rank, !strcmp(missing_key(s, w, key), wait->key));
	}
}

void store_tell_wait(const struct store *s, unsigned seconds, char text[STORE_TEXT_MAX])
{
	text[0] = '\0';
	if (s->step)
		home_tell_meeting(s->step, seconds, text);
	if (!text[0])
		home_tell_meeting(s->here, seconds, text);
	if (!text[0] && s->key_waits)
		tell_key(s, seconds, text);
}
