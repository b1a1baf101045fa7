/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys at their home: the operations on them, and requests that wait for them. */
#include "libstore/home_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/hash.h"

#define NUMBER_MAX 32 /* bytes of a number as text */
#define RECALLS_MAX 8 /* of a key: nobody gets a copy of one that changes often */

static void answer_done(struct home *h, const struct asker *to)
{
	home_answer_number(h, to, 0);
}

/* ---- keys ---- */

static uint32_t hash_of(const struct home *h, const struct store_bytes *name)
{
	return hash_seeded(h->o.store.seed, name->data, name->len);
}

static struct key *find(const struct home *h, enum store_space space,
			const struct store_bytes *name)
{
	struct key *k;

	HASH_FIND_BYHASHVALUE(hh, h->keys[space], name->data, name->len, hash_of(h, name), k);
	return k;
}

/* NULL: `from` has been answered. */
static struct key *add_key(struct home *h, const struct asker *from,
			   enum store_space space, const struct store_bytes *name)
{
	uint64_t bytes = HOME_OVERHEAD + name->len;
	struct key *k;

	if (h->nkeys >= h->o.store.keys) {
		home_answer_text(h, from, STORE_FULL,
				 "the step has %u keys, as many as it may have: delete keys that nobody needs any more",
				 h->nkeys);
		return NULL;
	}
	if (!home_take(h, from, bytes))
		return NULL;
	k = calloc(1, sizeof(*k) + name->len);
	if (k) {
		k->len = name->len;
		if (name->len)
			memcpy(k->name, name->data, name->len);
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, h->keys[space], k->name, k->len,
					    hash_of(h, name), k);
	}
	if (!k || !k->hh.tbl) {
		free(k);
		home_give(h, bytes);
		home_answer_no_memory(h, from);
		return NULL;
	}
	h->nkeys++;
	return k;
}

static struct key *find_or_add(struct home *h, const struct asker *from,
			       enum store_space space, const struct store_bytes *name)
{
	struct key *k = find(h, space, name);

	return k ? k : add_key(h, from, space, name);
}

/* Remove a key that neither exists nor is waited for. */
void keys_drop_unused(struct home *h, enum store_space space, struct key *k)
{
	if (k->value || k->waiters)
		return;
	HASH_DELETE(hh, h->keys[space], k);
	home_give(h, HOME_OVERHEAD + k->len);
	h->nkeys--;
	free(k);
}

/* ---- copies of other nodes ---- */

static bool lend(struct home *h, const struct asker *to, struct key *k)
{
	size_t before = k->holders.n;
	bool has_room = h->o.store.bytes - h->used >= sizeof(uint32_t);

	if (to->position == ASKER_HERE || k->recalls >= RECALLS_MAX || !has_room ||
	    holders_add(&k->holders, to->position))
		return false;
	h->used += (k->holders.n - before) * sizeof(uint32_t);
	return true;
}

bool home_is_lent(const struct home *h, enum store_space space, const struct store_bytes *key)
{
	const struct key *k = find(h, space, key);

	return k && k->holders.n;
}

void home_recall(struct home *h, enum store_space space, const struct store_bytes *key,
		 void (*fn)(void *arg, uint32_t position), void *arg)
{
	struct key *k = find(h, space, key);

	if (!k)
		return;
	k->recalls++;
	home_give(h, k->holders.n * sizeof(uint32_t));
	holders_take(&k->holders, fn, arg);
}

/* ---- requests that wait ---- */

/* Answer with the values of keys, or, without them, whether all exist. */
static void answer_keys(struct home *h, const struct asker *to, enum store_space space,
			const struct store_bytes *keys, uint32_t n, bool values)
{
	struct payload **found = values ? calloc(n, sizeof(*found)) : NULL;
	uint64_t bytes = 0;
	bool all = true;
	struct key *k = NULL;

	for (uint32_t i = 0; i < n && (!values || found); i++) {
		k = find(h, space, &keys[i]);

		all &= k && k->value;
		if (found && k && k->value) {
			found[i] = k->value;
			bytes += k->value->len;
		}
	}
	if (!values)
		home_answer_number(h, to, all);
	else if (!found)
		home_answer_no_memory(h, to);
	else if (bytes > STORE_ANSWER_MAX)
		home_answer_text(h, to, STORE_FULL, "the values have more than %zu MiB together",
				 STORE_ANSWER_MAX >> 20);
	else if (n == 1 && found[0] && lend(h, to, k))
		home_answer_copy(h, to, found[0]);
	else
		home_answer_values(h, to, found, n);
	free(found);
}

/* The first key from `at` on that does not exist; n: all do. */
static uint32_t first_missing(const struct home *h, enum store_space space,
			      const struct store_bytes *keys, uint32_t at, uint32_t n)
{
	while (at < n) {
		const struct key *k = find(h, space, &keys[at]);

		if (!k || !k->value)
			break;
		at++;
	}
	return at;
}

/* Answer the waiter, which waits for no key now, if all of its keys exist; or let it wait. */
static void look(struct home *h, struct waiter *w)
{
	const struct asker to = w->asker;
	uint32_t at = first_missing(h, w->space, w->keys, w->at, w->nkeys);

	if (at == w->nkeys && w->deletes != h->deletes)
		at = first_missing(h, w->space, w->keys, 0, w->nkeys);
	w->deletes = h->deletes;
	w->at = at;
	if (at < w->nkeys) {
		w->key = find_or_add(h, &to, w->space, &w->keys[at]);
		if (w->key)
			DL_APPEND(w->key->waiters, w);
		else
			home_waiter_free(h, w); /* it has been answered */
		return;
	}
	if (w->op == STORE_FETCH)
		answer_keys(h, &to, w->space, w->keys, w->nkeys, true);
	else
		answer_done(h, &to);
	home_waiter_free(h, w);
}

static void wake(struct home *h, struct key *k)
{
	struct waiter *waiters = k->waiters, *w, *next;

	k->waiters = NULL;
	DL_FOREACH_SAFE(waiters, w, next) {
		w->key = NULL;
		look(h, w);
	}
}

/* ---- operations ---- */

static void ask_wait(struct home *h, const struct asker *from, enum store_space space,
		     const struct store_request *rq)
{
	struct waiter *w;

	if (first_missing(h, space, rq->keys, 0, rq->nkeys) == rq->nkeys) {
		if (rq->op == STORE_FETCH)
			answer_keys(h, from, space, rq->keys, rq->nkeys, true);
		else
			answer_done(h, from);
		return;
	}
	w = home_waiter(h, from, rq->op, rq->keys, rq->nkeys);
	if (!w)
		return;
	w->space = space;
	w->deletes = h->deletes;
	look(h, w);
}

/*
 * Give a key the value that consists of two parts. False: `from` has been answered, and nothing
 * has changed.
 */
static bool set_parts(struct home *h, const struct asker *from, enum store_space space,
		      const struct store_bytes *name, struct store_bytes a,
		      struct store_bytes b)
{
	struct key *k = find_or_add(h, from, space, name);
	size_t before = k && k->value ? k->value->len : 0, len = a.len + b.len;
	struct payload *value;

	if (!k)
		return false;
	if (!home_take(h, from, len)) {
		keys_drop_unused(h, space, k);
		return false;
	}
	value = payload_new_in(h->o.store.budget, len);
	if (!value) {
		home_give(h, len);
		keys_drop_unused(h, space, k);
		home_answer_no_memory(h, from);
		return false;
	}
	if (a.len)
		memcpy(value->data, a.data, a.len);
	if (b.len)
		memcpy(value->data + a.len, b.data, b.len);
	h->exist[space] += !k->value;
	home_give(h, before);
	payload_unref(k->value);
	k->value = value;
	return true;
}

static const struct store_bytes nothing;

static bool set(struct home *h, const struct asker *from, enum store_space space,
		const struct store_request *rq, struct store_bytes value)
{
	return set_parts(h, from, space, rq->keys, value, nothing);
}

/* After the answer to who has changed it. */
static void wake_key(struct home *h, enum store_space space, const struct store_bytes *name)
{
	struct key *k = find(h, space, name);

	if (k)
		wake(h, k);
}

static void ask_set(struct home *h, const struct asker *from, enum store_space space,
		    const struct store_request *rq)
{
	if (!set(h, from, space, rq, rq->value))
		return;
	answer_done(h, from);
	wake_key(h, space, rq->keys);
}

static void ask_append(struct home *h, const struct asker *from, enum store_space space,
		       const struct store_request *rq)
{
	const struct key *k = find(h, space, rq->keys);
	struct payload *old = k ? payload_ref(k->value) : NULL;
	struct store_bytes before = { old ? old->data : NULL, old ? old->len : 0 };
	bool done = false;

	if (before.len + rq->value.len > STORE_VALUE_MAX)
		home_answer_text(h, from, STORE_FULL, "the value would have more than %zu MiB",
				 STORE_VALUE_MAX >> 20);
	else
		done = set_parts(h, from, space, rq->keys, before, rq->value);
	payload_unref(old);
	if (!done)
		return;
	answer_done(h, from);
	wake_key(h, space, rq->keys);
}

static bool equals(const struct payload *p, const struct store_bytes *b)
{
	return p->len == b->len && (!b->len || !memcmp(p->data, b->data, b->len));
}

static void answer_bytes(struct home *h, const struct asker *to,
			 const struct store_bytes *bytes)
{
	struct payload *p = payload_copy(bytes->data, bytes->len);

	if (p)
		home_answer_values(h, to, &p, 1);
	else
		home_answer_no_memory(h, to);
	payload_unref(p);
}

static void ask_compare_set(struct home *h, const struct asker *from,
			    enum store_space space, const struct store_request *rq)
{
	const struct key *k = find(h, space, rq->keys);
	bool exists = k && k->value;

	if (exists ? !equals(k->value, &rq->expected) : rq->expected.len > 0) {
		if (exists)
			home_answer_values(h, from, &k->value, 1);
		else
			answer_bytes(h, from, &rq->expected);
		return;
	}
	if (!set(h, from, space, rq, rq->value))
		return;
	k = find(h, space, rq->keys);
	home_answer_values(h, from, &k->value, 1);
	wake_key(h, space, rq->keys);
}

/* False: it is no number. */
static bool number_of(const struct payload *p, int64_t *out)
{
	bool minus = p->len && p->data[0] == '-';
	uint64_t most = (uint64_t)INT64_MAX + minus, n = 0;
	size_t at = minus;

	if (at == p->len)
		return false;
	for (; at < p->len; at++) {
		unsigned digit = p->data[at] - (unsigned)'0';

		if (digit > 9 || n > (most - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*out = minus ? (int64_t)(0 - n) : (int64_t)n;
	return true;
}

static void ask_add(struct home *h, const struct asker *from, enum store_space space,
		    const struct store_request *rq)
{
	const struct key *k = find(h, space, rq->keys);
	char text[NUMBER_MAX];
	int64_t sum = 0;

	if (k && k->value && !number_of(k->value, &sum)) {
		home_answer_text(h, from, STORE_INVALID,
				 "the value of the key is not a number, so nothing can be added to it");
		return;
	}
	if (__builtin_add_overflow(sum, rq->number, &sum)) {
		home_answer_text(h, from, STORE_INVALID, "the sum does not fit into 64 bits");
		return;
	}
	snprintf(text, sizeof(text), "%lld", (long long)sum);
	if (!set(h, from, space, rq, (struct store_bytes){ text, strlen(text) }))
		return;
	home_answer_number(h, from, sum);
	wake_key(h, space, rq->keys);
}

static void ask_delete(struct home *h, const struct asker *from, enum store_space space,
		       const struct store_request *rq)
{
	struct key *k = find(h, space, rq->keys);
	bool existed = k && k->value;

	if (existed) {
		home_give(h, k->value->len);
		payload_unref(k->value);
		k->value = NULL;
		h->exist[space]--;
		h->deletes++;
		keys_drop_unused(h, space, k);
	}
	home_answer_number(h, from, existed);
}

static void ask_values(struct home *h, const struct asker *from, enum store_space space,
		       const struct store_request *rq)
{
	answer_keys(h, from, space, rq->keys, rq->nkeys, rq->op == STORE_GET);
}

static void ask_count(struct home *h, const struct asker *from, enum store_space space,
		      const struct store_request *rq)
{
	home_answer_number(h, from, h->exist[space]);
}

static void (*const handlers[STORE_OPS])(struct home *h, const struct asker *from,
					 enum store_space space,
					 const struct store_request *rq) = {
	[STORE_SET] = ask_set,
	[STORE_GET] = ask_values,
	[STORE_COMPARE_SET] = ask_compare_set,
	[STORE_ADD] = ask_add,
	[STORE_APPEND] = ask_append,
	[STORE_CHECK] = ask_values,
	[STORE_WAIT] = ask_wait,
	[STORE_FETCH] = ask_wait,
	[STORE_DELETE] = ask_delete,
	[STORE_COUNT] = ask_count,
	[STORE_MEET] = meet_enter,
	[STORE_MISSING] = meet_missing,
};

void home_ask(struct home *h, const struct asker *from, enum store_space space,
	      const struct store_request *rq)
{
	handlers[rq->op](h, from, space, rq);
}

void keys_free(struct home *h)
{
	struct key *k, *next;

	for (int space = 0; space < STORE_SPACES; space++) {
		HASH_ITER(hh, h->keys[space], k, next) {
			HASH_DELETE(hh, h->keys[space], k);
			payload_unref(k->value);
			free(k->holders.positions);
			free(k);
		}
	}
}
