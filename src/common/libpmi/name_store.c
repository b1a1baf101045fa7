/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups of published things, those that wait, and ends of processes that publish. */
#include "libpmi/name_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libpmi/name_things.h"
#include "libutil/pack.h"

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
	struct name_things things;
	name_answer_fn *answer;
	void *arg;
	struct look_up *look_ups;
	struct ended *ended;
	size_t waits, ends;
};

int name_store_create(struct name_store **out, uint64_t hash_seed,
		      name_answer_fn *answer, void *arg)
{
	struct name_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->things.hash_seed = hash_seed;
	s->answer = answer;
	s->arg = arg;
	*out = s;
	return 0;
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
		const struct thing *t = name_things_find(&s->things, who, r->range, item->key);

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
		struct thing *t = name_things_find(&s->things, who, r->range, r->items[i].key);

		if (t && t->once)
			name_things_remove(&s->things, t);
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

	while (e && !(name_same(e->proc.nspace, item->from.nspace) &&
		      depends(item, e->proc.rank)))
		e = e->next;
	return e;
}

/*
 * An item that can never come, and its publisher, which has ended; key NULL: there is none.
 */
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

/* True: the look-up can never succeed, and was answered. */
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
	name_proc_free(&l->who.proc);
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
	rc = name_proc_copy(&l->who.proc, &who->proc);
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

/* True: the look-up was answered. */
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
	name_proc_free(&e->proc);
	free(e);
}

/* A namespace's end says all that its ranks' ends have said. */
static void forget_ranks(struct name_store *s, const char *nspace)
{
	struct ended *e, *next;

	LL_FOREACH_SAFE(s->ended, e, next)
		if (name_same(e->proc.nspace, nspace))
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
	if (!name_proc_copy(&e->proc, who))
		return 0;
	free_ended(s, e);
	return -ENOMEM;
}

static int change(struct name_store *s, const struct names_proc *who,
		  const struct names_request *r)
{
	if (r->op == NAMES_PUBLISH)
		return name_things_publish(&s->things, who, r);
	return r->op == NAMES_ENDED ? end_proc(s, who) :
				      name_things_unpublish(&s->things, who, r);
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
	if (!s)
		return;
	while (s->ended)
		free_ended(s, s->ended);
	while (s->look_ups)
		free_look_up(s, s->look_ups);
	name_things_free(&s->things);
	free(s);
}
