/* SPDX-License-Identifier: BSD-3-Clause */
/* Things by key, each in a list of those that have the same key and are not seen by all. */
#include "libpmi/name_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "libutil/hash.h"
#include "libutil/pack.h"

/* A value that is published. */
struct thing {
	struct thing *prev, *next;
	struct key *key;
	struct names_proc from; /* texts are its own */
	enum names_range range;
	bool once;
	size_t len;
	char value[];
};

struct key {
	UT_hash_handle hh;
	struct thing *things; /* never empty */
	char text[];
};

/* A look-up that waits. */
struct look_up {
	struct look_up *prev, *next;
	struct name_asker who; /* texts are its own */
	struct names_request request; /* in `body` */
	uint64_t due; /* 0: its time has not begun */
	char body[];
};

/* A rank that publishes no more, or a namespace of which nobody does. */
struct ended {
	struct ended *next;
	struct names_proc proc; /* texts are its own; NAMES_ALL_RANKS */
};

struct name_store {
	uint64_t hash_seed;
	name_answer_fn *answer;
	void *arg;
	struct key *keys;
	struct look_up *look_ups;
	struct ended *ended;
	size_t count, bytes, waits, ends;
};

int name_store_create(struct name_store **out, uint64_t hash_seed,
		      name_answer_fn *answer, void *arg)
{
	struct name_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->hash_seed = hash_seed;
	s->answer = answer;
	s->arg = arg;
	*out = s;
	return 0;
}

/* ---- processes ---- */

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* Are the two in one? */
static bool share(enum names_range range, const struct names_proc *a,
		  const struct names_proc *b)
{
	switch (range) {
	case NAMES_OF_PROCESS:
		return a->rank == b->rank && same(a->nspace, b->nspace);
	case NAMES_OF_NODE:
		return same(a->node, b->node);
	case NAMES_OF_NAMESPACE:
		return same(a->nspace, b->nspace);
	default:
		return true;
	}
}

static void free_proc(struct names_proc *p)
{
	free((char *)p->nspace);
	free((char *)p->node);
}

static int copy_proc(struct names_proc *to, const struct names_proc *from)
{
	to->rank = from->rank;
	to->nspace = strdup(from->nspace);
	to->node = strdup(from->node);
	return to->nspace && to->node ? 0 : -ENOMEM;
}

/* ---- things ---- */

static uint32_t hash_of(const struct name_store *s, const char *key)
{
	return hash_seeded(s->hash_seed, key, strlen(key));
}

static struct key *find_key(const struct name_store *s, const char *key)
{
	struct key *k;

	HASH_FIND_BYHASHVALUE(hh, s->keys, key, strlen(key), hash_of(s, key), k);
	return k;
}

static struct key *add_key(struct name_store *s, const char *text)
{
	size_t len = strlen(text);
	struct key *k = calloc(1, sizeof(*k) + len + 1);

	if (!k)
		return NULL;
	memcpy(k->text, text, len);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, s->keys, k->text, len, hash_of(s, text), k);
	if (find_key(s, text) == k)
		return k;
	free(k); /* the table could not grow */
	return NULL;
}

static size_t cost(const struct thing *t)
{
	return strlen(t->key->text) + t->len;
}

static void remove_thing(struct name_store *s, struct thing *t)
{
	struct key *k = t->key;

	s->count--;
	s->bytes -= cost(t);
	DL_DELETE(k->things, t);
	free_proc(&t->from);
	free(t);
	if (k->things)
		return;
	HASH_DEL(s->keys, k);
	free(k);
}

/* The thing that the request would see of that key, or NULL. */
static struct thing *find_thing(const struct name_store *s, const struct names_proc *who,
				enum names_range range, const char *key)
{
	struct key *k = find_key(s, key);
	struct thing *t = NULL;

	if (k)
		DL_FOREACH(k->things, t)
			if (share(t->range, &t->from, who) &&
			    share(range, who, &t->from))
				break;
	return t;
}

/* ---- publish ---- */

/* Is there one that somebody would see beside a new one? */
static bool collides(const struct key *k, const struct names_proc *who,
		     enum names_range range)
{
	const struct thing *t;

	DL_FOREACH(k->things, t)
		if (share(t->range, &t->from, who) || share(range, who, &t->from))
			return true;
	return false;
}

static struct thing *new_thing(const struct names_proc *who,
			       const struct names_request *r,
			       const struct names_item *item)
{
	struct thing *t = calloc(1, sizeof(*t) + item->len);

	if (!t)
		return NULL;
	t->range = r->range;
	t->once = r->once;
	t->len = item->len;
	if (item->len)
		memcpy(t->value, item->value, item->len);
	if (!copy_proc(&t->from, who))
		return t;
	free_proc(&t->from);
	free(t);
	return NULL;
}

static bool has_room(const struct name_store *s, const struct names_item *item)
{
	return s->count < NAME_STORE_KEYS_MAX &&
	       strlen(item->key) + item->len <= NAME_STORE_BYTES_MAX - s->bytes;
}

static int add_thing(struct name_store *s, const struct names_proc *who,
		     const struct names_request *r, const struct names_item *item)
{
	struct key *k = find_key(s, item->key);
	struct thing *t;

	if (k && collides(k, who, r->range))
		return -EEXIST;
	if (!has_room(s, item))
		return -ENOSPC;
	t = new_thing(who, r, item);
	if (!t)
		return -ENOMEM;
	k = k ? k : add_key(s, item->key);
	if (!k) {
		free_proc(&t->from);
		free(t);
		return -ENOMEM;
	}
	t->key = k;
	DL_APPEND(k->things, t);
	s->count++;
	s->bytes += cost(t);
	return 0;
}

static bool is_own(const struct thing *t, const struct names_proc *who)
{
	return share(NAMES_OF_PROCESS, &t->from, who);
}

/* One thing of the asker's own under this key, the latest. */
static struct thing *find_own(const struct name_store *s, const struct names_proc *who,
			      const char *key)
{
	struct key *k = find_key(s, key);
	struct thing *t, *own = NULL;

	if (k)
		DL_FOREACH(k->things, t)
			if (is_own(t, who))
				own = t;
	return own;
}

/* All keys or none. */
static int publish(struct name_store *s, const struct names_proc *who,
		   const struct names_request *r)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < r->count && !rc; i++)
		rc = add_thing(s, who, r, &r->items[i]);
	for (i = rc ? i - 1 : 0; i > 0; i--)
		remove_thing(s, find_own(s, who, r->items[i - 1].key));
	return rc;
}

/* ---- unpublish ---- */

static int unpublish_all(struct name_store *s, const struct names_proc *who)
{
	struct key *k, *next_key;
	struct thing *t, *next;

	HASH_ITER(hh, s->keys, k, next_key)
		DL_FOREACH_SAFE(k->things, t, next)
			if (is_own(t, who))
				remove_thing(s, t);
	return 0;
}

static int unpublish(struct name_store *s, const struct names_proc *who,
		     const struct names_request *r)
{
	struct thing *t;
	int rc = 0;

	if (!r->count)
		return unpublish_all(s, who);
	for (uint32_t i = 0; i < r->count; i++) {
		t = find_own(s, who, r->items[i].key);
		if (t)
			remove_thing(s, t);
		else
			rc = -ENOENT;
	}
	return rc;
}

/* ---- look-up ---- */

static void answer(struct name_store *s, const struct name_asker *to, int error)
{
	const struct names_answer a = { .error = error };

	(void)s->answer(s->arg, to, &a);
}

/*
 * Fill in what is there; how many these are. For a missing one, the process that is to
 * publish it stays.
 */
static uint32_t find_all(const struct name_store *s, const struct names_proc *who,
			 const struct names_request *r)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		struct names_item *item = &r->items[i];
		const struct thing *t = find_thing(s, who, r->range, item->key);

		if (t || item->value)
			item->from = t ? t->from : (struct names_proc){};
		item->value = t ? t->value : NULL;
		item->len = t ? t->len : 0;
		found += t != NULL;
	}
	return found;
}

static void forget_read(struct name_store *s, const struct names_proc *who,
			const struct names_request *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct thing *t = find_thing(s, who, r->range, r->items[i].key);

		if (t && t->once)
			remove_thing(s, t);
	}
}

/* Items that are there come first; their order is nobody's concern. */
static void answer_found(struct name_store *s, const struct name_asker *to,
			const struct names_request *r)
{
	struct names_answer a = { .items = r->items };

	for (uint32_t i = 0; i < r->count; i++) {
		struct names_item item = r->items[i];

		if (!item.value)
			continue;
		r->items[i] = r->items[a.count];
		r->items[a.count++] = item;
	}
	if (!s->answer(s->arg, to, &a))
		forget_read(s, &to->proc, r);
}

/* Can it not be published without that rank? */
static bool depends(const struct names_item *item, uint32_t rank)
{
	struct cursor c;

	cursor_init(&c, item->ranks, item->ranks_len);
	if (rank == NAMES_ALL_RANKS || !item->ranks_len)
		return true;
	while (cursor_ok(&c) && cursor_left(&c))
		if (unpack_u32(&c) == rank && cursor_ok(&c))
			return true;
	return false;
}

/* The ended process that was to publish it; or NULL. */
static const struct ended *find_ended(const struct name_store *s,
				      const struct names_item *item)
{
	const struct ended *e = s->ended;

	while (e && !(same(e->proc.nspace, item->from.nspace) &&
		      depends(item, e->proc.rank)))
		e = e->next;
	return e;
}

/* One that the request waits for in vain, from whom it was to come; or key NULL. */
static struct names_item find_hopeless(const struct name_store *s,
				       const struct names_request *r)
{
	struct names_item hopeless = {};
	uint32_t hopes = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		const struct names_item *item = &r->items[i];
		const struct ended *e = item->value ? NULL : find_ended(s, item);

		hopes += !e;
		if (e)
			hopeless = (struct names_item){ .key = item->key,
							.from = e->proc };
	}
	return hopes < r->wait ? hopeless : (struct names_item){};
}

/* Is it hopeless, and answered? */
static bool give_up(struct name_store *s, const struct name_asker *to,
		    const struct names_request *r)
{
	struct names_item item = find_hopeless(s, r);
	const struct names_answer a = {
		.error = -ECONNRESET, .items = &item, .count = 1,
	};

	if (item.key)
		(void)s->answer(s->arg, to, &a);
	return item.key;
}

static void free_look_up(struct name_store *s, struct look_up *l)
{
	DL_DELETE(s->look_ups, l);
	s->waits--;
	free_proc(&l->who.proc);
	free(l->request.items);
	free(l);
}

static int add_look_up(struct name_store *s, const struct name_asker *who,
		       const void *body, size_t len)
{
	struct look_up *l;
	int rc;

	if (s->waits >= NAME_STORE_WAITS_MAX)
		return -ENOSPC;
	l = calloc(1, sizeof(*l) + len);
	if (!l)
		return -ENOMEM;
	memcpy(l->body, body, len);
	l->who = *who;
	DL_APPEND(s->look_ups, l);
	s->waits++;
	rc = copy_proc(&l->who.proc, &who->proc);
	rc = rc ? rc : names_unpack_request(&l->request, l->body, len);
	if (rc) {
		l->request.items = NULL;
		free_look_up(s, l);
	}
	return rc;
}

static void look_up(struct name_store *s, const struct name_asker *who,
		   const struct names_request *r, const void *body, size_t len)
{
	uint32_t found = find_all(s, &who->proc, r);
	int rc;

	if (found >= r->wait && found) {
		answer_found(s, who, r);
		return;
	}
	if (give_up(s, who, r))
		return;
	rc = r->wait ? add_look_up(s, who, body, len) : -ENOENT;
	if (rc)
		answer(s, who, rc);
}

/* Is it answered? */
static bool try_again(struct name_store *s, struct look_up *l)
{
	if (find_all(s, &l->who.proc, &l->request) < l->request.wait)
		return give_up(s, &l->who, &l->request);
	answer_found(s, &l->who, &l->request);
	return true;
}

/* Something has been published, or never will be. */
static void look_again(struct name_store *s)
{
	struct look_up *l, *next;

	DL_FOREACH_SAFE(s->look_ups, l, next)
		if (try_again(s, l))
			free_look_up(s, l);
}

/* ---- requests ---- */

static void free_ended(struct name_store *s, struct ended *e)
{
	LL_DELETE(s->ended, e);
	s->ends--;
	free_proc(&e->proc);
	free(e);
}

/* A namespace's end says all that its ranks' ends have said. */
static void forget_ranks(struct name_store *s, const char *nspace)
{
	struct ended *e, *next;

	LL_FOREACH_SAFE(s->ended, e, next)
		if (same(e->proc.nspace, nspace))
			free_ended(s, e);
}

static int end_proc(struct name_store *s, const struct names_proc *who)
{
	struct ended *e;

	if (who->rank == NAMES_ALL_RANKS)
		forget_ranks(s, who->nspace);
	if (s->ends >= NAME_STORE_ENDED_MAX)
		return -ENOSPC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	LL_PREPEND(s->ended, e);
	s->ends++;
	if (!copy_proc(&e->proc, who))
		return 0;
	free_ended(s, e);
	return -ENOMEM;
}

static int change(struct name_store *s, const struct names_proc *who,
		  const struct names_request *r)
{
	if (r->op == NAMES_PUBLISH)
		return publish(s, who, r);
	return r->op == NAMES_ENDED ? end_proc(s, who) :
				      unpublish(s, who, r);
}

static void answer_change(struct name_store *s, const struct name_asker *who,
			  const struct names_request *r)
{
	int rc = change(s, &who->proc, r);

	answer(s, who, rc);
	if (!rc && r->op != NAMES_UNPUBLISH)
		look_again(s);
}

int name_store_ask(struct name_store *s, const struct name_asker *who, const void *body,
		   size_t len)
{
	struct names_request r;
	int rc = names_unpack_request(&r, body, len);

	if (rc)
		return rc;
	if (r.op == NAMES_LOOKUP)
		look_up(s, who, &r, body, len);
	else
		answer_change(s, who, &r);
	free(r.items);
	return 0;
}

/* ---- ends ---- */

void name_store_link_lost(struct name_store *s, const void *link)
{
	struct look_up *l, *next;

	DL_FOREACH_SAFE(s->look_ups, l, next)
		if (l->who.link == link)
			free_look_up(s, l);
}

uint64_t name_store_expire(struct name_store *s, uint64_t now)
{
	uint64_t first = UINT64_MAX;
	struct look_up *l, *next;

	DL_FOREACH_SAFE(s->look_ups, l, next) {
		if (!l->request.timeout_ms)
			continue;
		if (!l->due)
			l->due = now + l->request.timeout_ms;
		if (l->due <= now) {
			answer(s, &l->who, -ETIMEDOUT);
			free_look_up(s, l);
		} else if (l->due < first) {
			first = l->due;
		}
	}
	return first;
}

void name_store_destroy(struct name_store *s)
{
	struct key *k, *next_key;
	struct thing *t, *next;

	if (!s)
		return;
	while (s->ended)
		free_ended(s, s->ended);
	while (s->look_ups)
		free_look_up(s, s->look_ups);
	HASH_ITER(hh, s->keys, k, next_key)
		DL_FOREACH_SAFE(k->things, t, next)
			remove_thing(s, t);
	free(s);
}
