/* SPDX-License-Identifier: BSD-3-Clause */
/* A home: its limits and answers, requests that wait, and ranks that have ended. */
#include "libstore/home_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

static void give(struct home *h, const struct asker *to, const struct store_answer *a)
{
	struct asker one = *to;

	h->answer(h->arg, &one, 1, a);
}

void home_answer_number(struct home *h, const struct asker *to, int64_t number)
{
	const struct store_answer a = { .number = number, .text = "" };

	give(h, to, &a);
}

void home_answer_values(struct home *h, const struct asker *to,
			struct payload *const *values, uint32_t n)
{
	const struct store_answer a = { .values = values, .nvalues = n, .text = "" };

	give(h, to, &a);
}

void home_answer_copy(struct home *h, const struct asker *to, struct payload *value)
{
	const struct store_answer a = {
		.values = &value, .nvalues = 1, .text = "", .copy = true,
	};

	give(h, to, &a);
}

void home_answer_text(struct home *h, const struct asker *to, enum store_status status,
		      const char *fmt, ...)
{
	char text[STORE_TEXT_MAX];
	struct store_answer a = { .status = status, .text = text };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	give(h, to, &a);
}

void home_answer_no_memory(struct home *h, const struct asker *to)
{
	home_answer_text(h, to, STORE_FULL,
			 "no memory for the keys of the step on the node that has them (see Pmi2xBufferLimit)");
}

/* ---- limits ---- */

bool home_take(struct home *h, const struct asker *from, uint64_t bytes)
{
	uint64_t limit = h->o.store.bytes;

	if (bytes <= limit - h->used) {
		h->used += bytes;
		return true;
	}
	home_answer_text(h, from, STORE_FULL,
			 "the keys and values of the step would take more than %llu MiB: delete keys that nobody needs any more",
			 (unsigned long long)(limit >> 20));
	return false;
}

void home_give(struct home *h, uint64_t bytes)
{
	h->used -= bytes;
}

/* ---- requests that wait ---- */

struct waiter *home_waiter(struct home *h, const struct asker *from, enum store_op op,
			   const struct store_bytes *keys, uint32_t nkeys)
{
	uint64_t bytes = HOME_OVERHEAD + nkeys * sizeof(*keys);
	struct waiter *w;
	char *to;

	for (uint32_t i = 0; i < nkeys; i++)
		bytes += keys[i].len;
	if (HASH_COUNT(h->waiters) >= STORE_WAITS_MAX) {
		home_answer_text(h, from, STORE_FULL, "%u requests of the step wait, as many as may",
				 STORE_WAITS_MAX);
		return NULL;
	}
	if (!home_take(h, from, bytes))
		return NULL;
	w = calloc(1, sizeof(*w) + bytes);
	if (w) {
		w->asker = *from;
		HASH_ADD(hh, h->waiters, asker, sizeof(w->asker), w);
	}
	if (!w || !w->hh.tbl) {
		free(w);
		home_give(h, bytes);
		home_answer_no_memory(h, from);
		return NULL;
	}
	w->op = op;
	w->bytes = bytes;
	w->nkeys = nkeys;
	to = (char *)&w->keys[nkeys];
	for (uint32_t i = 0; i < nkeys; i++) {
		if (keys[i].len)
			memcpy(to, keys[i].data, keys[i].len);
		w->keys[i] = (struct store_bytes){ to, keys[i].len };
		to += keys[i].len;
	}
	return w;
}

void home_waiter_free(struct home *h, struct waiter *w)
{
	HASH_DEL(h->waiters, w);
	home_give(h, w->bytes);
	payload_unref(w->value);
	free(w);
}

/* ---- the end of what waits ---- */

static void withdraw(struct home *h, struct waiter *w)
{
	if (w->meeting) {
		meet_leave(h, w);
		return;
	}
	DL_DELETE(w->key->waiters, w);
	keys_drop_unused(h, w->space, w->key);
	home_waiter_free(h, w);
}

bool home_cancel(struct home *h, const struct asker *from)
{
	struct waiter *w;

	HASH_FIND(hh, h->waiters, from, sizeof(*from), w);
	if (w)
		withdraw(h, w);
	return w != NULL;
}

void home_forget(struct home *h, uint32_t position)
{
	struct waiter *w, *next;

	h->busy = true;
	HASH_ITER(hh, h->waiters, w, next)
		if (w->asker.position == position)
			withdraw(h, w);
	h->busy = false;
	meet_look(h);
}

/* ---- ranks that have ended ---- */

/* A number above 0; the last one stands for all for which there is no room. */
static uint8_t number_of_how(struct home *h, const char *how)
{
	uint32_t i = 0;

	while (i < h->nhow && strncmp(h->how[i], how, GONE_HOW_MAX - 1))
		i++;
	if (i == GONE_TEXTS - 1)
		how = "has ended";
	if (i == h->nhow && i < GONE_TEXTS)
		snprintf(h->how[h->nhow++], GONE_HOW_MAX, "%s", how);
	return (uint8_t)((i < GONE_TEXTS ? i : GONE_TEXTS - 1) + 1);
}

uint32_t home_rank_index(const struct home *h, uint32_t rank)
{
	uint32_t low = 0, high = h->o.nranks;

	if (!h->o.ranks)
		return rank < high ? rank : UINT32_MAX;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->o.ranks[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->o.nranks && h->o.ranks[low] == rank ? low : UINT32_MAX;
}

void home_rank_gone(struct home *h, uint32_t rank, const char *how)
{
	uint32_t i = home_rank_index(h, rank);

	if (i == UINT32_MAX)
		return;
	if (!h->gone)
		h->gone = calloc(h->o.nranks, 1);
	if (!h->gone || h->gone[i]) /* without memory a timeout has to do */
		return;
	h->gone[i] = number_of_how(h, how);
	h->ngone++;
	meet_rank_gone(h, i);
}

void home_each_gone(const struct home *h, void (*fn)(void *arg, uint32_t rank, const char *how),
		    void *arg)
{
	for (uint32_t i = 0; h->gone && i < h->o.nranks; i++)
		if (h->gone[i])
			fn(arg, h->o.ranks ? h->o.ranks[i] : i, h->how[h->gone[i] - 1]);
}

/* ---- for people ---- */

const char *home_show_name(const void *name, size_t len, char out[NAME_SHOWN])
{
	size_t n = len < NAME_SHOWN - 1 ? len : NAME_SHOWN - 1;

	for (size_t i = 0; i < n; i++) {
		char c = ((const char *)name)[i];

		out[i] = c > ' ' && c < 127 ? c : '?';
	}
	out[n] = '\0';
	return out;
}

const char *home_missing_key(const struct home *h, const struct asker *from,
			     char out[NAME_SHOWN])
{
	const struct waiter *w;

	HASH_FIND(hh, h->waiters, from, sizeof(*from), w);
	return w && w->key ? home_show_name(w->key->name, w->key->len, out) : NULL;
}

/* ---- life ---- */

int home_create(struct home **out, const struct home_options *options,
		home_answer_fn *answer, void *arg)
{
	struct home *h = calloc(1, sizeof(*h));

	*out = h;
	if (!h)
		return -ENOMEM;
	h->o = *options;
	if (!h->o.store.bytes)
		h->o.store.bytes = STORE_BYTES;
	if (!h->o.store.keys)
		h->o.store.keys = STORE_KEYS_MAX;
	h->answer = answer;
	h->arg = arg;
	return 0;
}

void home_destroy(struct home *h)
{
	struct waiter *w, *next;

	if (!h)
		return;
	h->busy = true;
	HASH_ITER(hh, h->waiters, w, next)
		withdraw(h, w);
	keys_free(h);
	free(h->gone);
	free(h);
}
