/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences with data: what goes out, what comes in, and who is given it when. */
#include "helpers/pmixd/collect.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/pmix_msg.h"

/* The data that a fence has brought, as it came. */
struct parcel {
	uint32_t users; /* blobs in it */
	char bytes[];
};

/* The data of a rank. */
struct blob {
	struct parcel *parcel; /* NULL: none */
	const char *data;
	uint32_t len;
	bool given;          /* to libpmix */
};

/*
 * A question to libpmix what a rank of this node has committed. libpmix answers not
 * before the rank has committed something.
 *
 *   ASKED -> ANSWERED  in libpmix's thread
 *   IDLE or ANSWERED -> ASKED, ANSWERED -> IDLE  in the program's
 */
struct question {
	atomic_int state;
	char *data;
	size_t len;
};

enum { IDLE, ASKED, ANSWERED };

struct collect {
	const struct library *library;
	const struct pmix_nspace *nspace;
	bool demand;
	struct blob *blobs;         /* by rank; NULL until some have come */
	struct question *questions; /* by slot */
};

/* ---- its life ---- */

int collect_create(struct collect **out, const struct library *l,
		   const struct pmix_nspace *n, enum pmixd_collect mode)
{
	struct collect *c = calloc(1, sizeof(*c));
	uint32_t count;

	if (!c)
		return -ENOMEM;
	layout_ranks_at(n->layout, n->position, &count);
	c->library = l;
	c->nspace = n;
	c->demand = mode == PMIXD_COLLECT_DEMAND ||
		    (mode == PMIXD_COLLECT_AUTO &&
		     layout_ranks(n->layout) > COLLECT_STORE_RANKS);
	c->questions = calloc(count, sizeof(*c->questions));
	if (!c->questions) {
		free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

static void drop_blob(struct blob *b)
{
	if (b->parcel && !--b->parcel->users)
		free(b->parcel);
	memset(b, 0, sizeof(*b));
}

/* libpmix may still answer one: then they stay. */
static void free_questions(struct collect *c)
{
	uint32_t count, asked = 0;

	layout_ranks_at(c->nspace->layout, c->nspace->position, &count);
	for (uint32_t i = 0; i < count; i++) {
		asked += atomic_load(&c->questions[i].state) == ASKED;
		if (atomic_load(&c->questions[i].state) == ANSWERED)
			free(c->questions[i].data);
	}
	if (!asked)
		free(c->questions);
}

void collect_free(struct collect *c)
{
	for (uint32_t r = 0; c->blobs && r < layout_ranks(c->nspace->layout); r++)
		drop_blob(&c->blobs[r]);
	free(c->blobs);
	free_questions(c);
	free(c);
}

void collect_old_client(struct collect *c)
{
	c->demand = false;
}

/* ---- what goes out ---- */

static void on_answer(pmix_status_t status, char *data, size_t len, void *arg)
{
	struct question *q = arg;

	q->data = status == PMIX_SUCCESS && len ? malloc(len) : NULL;
	q->len = q->data ? len : 0;
	if (q->data)
		memcpy(q->data, data, len);
	atomic_store(&q->state, ANSWERED);
}

static void take_answer(struct question *q)
{
	free(q->data);
	q->data = NULL;
	q->len = 0;
	atomic_store(&q->state, IDLE);
}

static void ask(struct collect *c, struct question *q, uint32_t rank)
{
	pmix_proc_t proc = { .rank = rank };

	if (atomic_load(&q->state) == ASKED)
		return;
	take_answer(q); /* one that came too late */
	strncpy(proc.nspace, c->nspace->name, PMIX_MAX_NSLEN);
	atomic_store(&q->state, ASKED);
	if (c->library->server_dmodex_request(&proc, on_answer, q))
		atomic_store(&q->state, IDLE);
}

/* An entry of a rank: the kind, and the bytes. */
static int give(struct buf *b, uint32_t rank, enum collect_kind kind,
		const void *bytes, size_t len)
{
	struct pmix_entry e = { .rank = rank };
	char *copy;
	int rc;

	if (!len)
		return pmix_entry_pack(b, &e);
	if (len >= UINT32_MAX)
		return -EMSGSIZE;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	copy[0] = (char)kind;
	memcpy(copy + 1, bytes, len);
	e.bytes = copy;
	e.len = (uint32_t)len + 1;
	rc = pmix_entry_pack(b, &e);
	free(copy);
	return rc;
}

/*
 * Appends the data that a rank has committed, or nothing, when libpmix has not
 * answered.
 */
static int give_answer(struct question *q, uint32_t rank, struct buf *b)
{
	int rc;

	if (atomic_load(&q->state) != ANSWERED)
		return give(b, rank, COLLECT_RANK, NULL, 0);
	rc = give(b, rank, COLLECT_RANK, q->data, q->len);
	take_answer(q);
	return rc;
}

static int give_ranks(struct collect *c, const uint32_t *ranks, const uint32_t *slots,
		      uint32_t count, struct buf *b)
{
	int rc = 0;

	for (uint32_t i = 0; i < count; i++)
		ask(c, &c->questions[slots[i]], ranks[slots[i]]);
	library_pass(c->library, c->nspace->name);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = give_answer(&c->questions[slots[i]], ranks[slots[i]], b);
	return rc;
}

int collect_give(struct collect *c, const struct event *fence, const uint32_t *slots,
		 uint32_t count, struct buf *b)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(c->nspace->layout, c->nspace->position,
						&here);
	int rc = 0;

	if (fence->collect && c->demand)
		return give_ranks(c, ranks, slots, count, b);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = give(b, ranks[slots[i]], COLLECT_NODE, fence->data,
			  fence->collect && !i ? fence->len : 0);
	return rc;
}

int collect_give_ranks(struct collect *c, const uint32_t *slots, uint32_t count,
		       struct buf *b)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(c->nspace->layout, c->nspace->position,
						&here);

	return give_ranks(c, ranks, slots, count, b);
}

/* ---- what comes in ---- */

static struct parcel *copy_parcel(const void *data, size_t len)
{
	struct parcel *parcel = malloc(sizeof(*parcel) + len);

	if (!parcel)
		return NULL;
	parcel->users = 0;
	memcpy(parcel->bytes, data, len);
	return parcel;
}

static int keep(struct collect *c, struct parcel *parcel, const struct pmix_entry *e)
{
	uint32_t ranks = layout_ranks(c->nspace->layout);
	struct blob *b;

	if (e->rank >= ranks)
		return -EPROTO;
	if (!c->blobs)
		c->blobs = calloc(ranks, sizeof(*c->blobs));
	if (!c->blobs)
		return -ENOMEM;
	b = &c->blobs[e->rank];
	drop_blob(b);
	parcel->users++;
	*b = (struct blob){
		.parcel = parcel,
		.data = (const char *)e->bytes + 1,
		.len = e->len - 1,
	};
	return 0;
}

static int take_entry(struct collect *c, struct parcel *parcel,
		      const struct pmix_entry *e, struct buf *store)
{
	const char *bytes = e->bytes;

	if (!e->len)
		return 0;
	if (bytes[0] == COLLECT_NODE)
		return buf_append(store, bytes + 1, e->len - 1);
	return bytes[0] == COLLECT_RANK ? keep(c, parcel, e) : -EPROTO;
}

static int take_entries(struct collect *c, struct parcel *parcel, size_t len,
			struct buf *store)
{
	struct pmix_entry e;
	struct cursor at;
	int rc = 0;

	cursor_init(&at, parcel->bytes, len);
	while (!rc && pmix_entry_next(&at, &e))
		rc = take_entry(c, parcel, &e, store);
	return rc || cursor_ok(&at) ? rc : -EPROTO;
}

int collect_take(struct collect *c, const void *data, size_t len, char **store,
		 size_t *store_len)
{
	struct parcel *parcel = copy_parcel(data, len);
	struct buf b;
	int rc;

	*store = NULL;
	*store_len = 0;
	if (!parcel)
		return -ENOMEM;
	buf_init(&b, SIZE_MAX);
	parcel->users = 1; /* this function */
	rc = take_entries(c, parcel, len, &b);
	if (!--parcel->users)
		free(parcel);
	if (rc) {
		buf_free(&b);
		return rc;
	}
	*store = b.data;
	*store_len = b.len;
	return 0;
}

/* libpmix packs a key as it is. That it is found may be chance. */
static bool may_have(const struct blob *b, const char *key)
{
	return !key || memmem(b->data, b->len, key, strlen(key));
}

bool collect_find(struct collect *c, uint32_t rank, const char *key,
		  const void **data, size_t *len)
{
	struct blob *b;

	if (!c->blobs || rank >= layout_ranks(c->nspace->layout))
		return false;
	b = &c->blobs[rank];
	if (!b->parcel || b->given || !may_have(b, key))
		return false;
	b->given = true;
	*data = b->data;
	*len = b->len;
	return true;
}
