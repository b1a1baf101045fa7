/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences with data: what goes out, what comes in, and who is given it when. */
#include "helpers/pmixd/collect.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/pmix_msg.h"

/* The data of a rank. */
struct modex_blob {
	struct payload *message; /* the message with the entries; NULL: there are none */
	const char *data;
	uint32_t len;
	bool given;          /* to libpmix */
};

/*
 * A request to libpmix for the data that a rank of this node has committed. libpmix answers
 * once the rank has committed something.
 *
 *   ASKED -> ANSWERED  in libpmix's thread
 *   IDLE or ANSWERED -> ASKED, ANSWERED -> IDLE  in the program's
 */
struct dmodex_request {
	atomic_int state;
	struct payload *data; /* ANSWERED: or NULL, if there are none */
};

enum { IDLE, ASKED, ANSWERED };

struct collect {
	const struct library *library;
	const struct pmix_nspace *nspace;
	bool demand;
	struct modex_blob *blobs;        /* by rank; NULL until some have come */
	struct dmodex_request *requests; /* by slot */
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
	c->requests = calloc(count, sizeof(*c->requests));
	if (!c->requests) {
		free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

static void drop_modex_blob(struct modex_blob *b)
{
	payload_unref(b->message);
	memset(b, 0, sizeof(*b));
}

/* libpmix may still answer one: then they stay. */
static void free_requests(struct collect *c)
{
	uint32_t count, asked = 0;

	layout_ranks_at(c->nspace->layout, c->nspace->position, &count);
	for (uint32_t i = 0; i < count; i++) {
		asked += atomic_load(&c->requests[i].state) == ASKED;
		if (atomic_load(&c->requests[i].state) == ANSWERED)
			payload_unref(c->requests[i].data);
	}
	if (!asked)
		free(c->requests);
}

void collect_free(struct collect *c)
{
	for (uint32_t r = 0; c->blobs && r < layout_ranks(c->nspace->layout); r++)
		drop_modex_blob(&c->blobs[r]);
	free(c->blobs);
	free_requests(c);
	free(c);
}

void collect_old_client(struct collect *c)
{
	c->demand = false;
}

/* ---- what goes out ---- */

static void on_answer(pmix_status_t status, char *data, size_t len, void *arg)
{
	struct dmodex_request *q = arg;

	q->data = status == PMIX_SUCCESS && len ? payload_copy(data, len) : NULL;
	atomic_store(&q->state, ANSWERED);
}

static void take_answer(struct dmodex_request *q)
{
	payload_unref(q->data);
	q->data = NULL;
	atomic_store(&q->state, IDLE);
}

static void ask(struct collect *c, struct dmodex_request *q, uint32_t rank)
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

/* An entry of a rank up to its data: the kind, unless there are none. */
static int begin_entry(struct buf *b, uint32_t rank, enum collect_kind kind, size_t len)
{
	struct pmix_entry e = { .rank = rank, .len = len ? (uint32_t)len + 1 : 0 };
	int rc;

	if (len >= UINT32_MAX)
		return -EMSGSIZE;
	rc = pmix_entry_pack_head(b, &e);
	return rc || !len ? rc : pack_u8(b, kind);
}

/* The data that a rank has committed, or none, when libpmix has not answered. */
static int give_answer(struct dmodex_request *q, uint32_t rank, struct pieces *out)
{
	bool answered = atomic_load(&q->state) == ANSWERED;
	struct payload *data = answered ? q->data : NULL;
	int rc;

	rc = begin_entry(&out->last, rank, COLLECT_RANK, data ? data->len : 0);
	if (!rc && data)
		rc = pieces_add(out, data);
	if (answered)
		take_answer(q);
	return rc;
}

/* libpmix's collection of a node is the first member's; the others give nothing. */
static int give_collection(const struct event *fence, uint32_t rank, bool first,
			   struct buf *b)
{
	size_t len = fence->collect && first ? fence->len : 0;
	int rc = begin_entry(b, rank, COLLECT_NODE, len);

	return rc || !len ? rc : buf_append(b, fence->data, len);
}

static int give_ranks(struct collect *c, const uint32_t *ranks, const uint32_t *slots,
		      uint32_t count, struct pieces *out)
{
	int rc = 0;

	for (uint32_t i = 0; i < count; i++)
		ask(c, &c->requests[slots[i]], ranks[slots[i]]);
	library_pass(c->library, c->nspace->name);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = give_answer(&c->requests[slots[i]], ranks[slots[i]], out);
	return rc;
}

int collect_give(struct collect *c, const struct event *fence, const uint32_t *slots,
		 uint32_t count, struct pieces *out)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(c->nspace->layout, c->nspace->position,
						&here);
	int rc = 0;

	if (fence->collect && c->demand)
		return give_ranks(c, ranks, slots, count, out);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = give_collection(fence, ranks[slots[i]], !i, &out->last);
	return rc;
}

int collect_give_ranks(struct collect *c, const uint32_t *slots, uint32_t count,
		       struct pieces *out)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(c->nspace->layout, c->nspace->position,
						&here);

	return give_ranks(c, ranks, slots, count, out);
}

/* ---- what comes in ---- */

static int keep(struct collect *c, struct payload *message, const struct pmix_entry *e)
{
	uint32_t ranks = layout_ranks(c->nspace->layout);
	struct modex_blob *b;

	if (e->rank >= ranks)
		return -EPROTO;
	if (!c->blobs)
		c->blobs = calloc(ranks, sizeof(*c->blobs));
	if (!c->blobs)
		return -ENOMEM;
	b = &c->blobs[e->rank];
	drop_modex_blob(b);
	*b = (struct modex_blob){
		.message = payload_ref(message),
		.data = (const char *)e->bytes + 1,
		.len = e->len - 1,
	};
	return 0;
}

static int take_entry(struct collect *c, struct payload *message,
		      const struct pmix_entry *e, struct buf *store)
{
	const char *bytes = e->bytes;

	if (!e->len)
		return 0;
	if (bytes[0] == COLLECT_NODE)
		return buf_append(store, bytes + 1, e->len - 1);
	return bytes[0] == COLLECT_RANK ? keep(c, message, e) : -EPROTO;
}

static int take_entries(struct collect *c, struct payload *message,
			const struct pmix_msg *m, struct buf *store)
{
	struct pmix_entry e;
	struct cursor at;
	int rc = 0;

	cursor_init(&at, m->data, m->len);
	while (!rc && pmix_entry_next(&at, &e))
		rc = take_entry(c, message, &e, store);
	return rc || cursor_ok(&at) ? rc : -EPROTO;
}

int collect_take(struct collect *c, const struct pmix_msg *m, struct payload *message,
		 char **store, size_t *store_len)
{
	struct buf b;
	int rc;

	*store = NULL;
	*store_len = 0;
	buf_init(&b, SIZE_MAX);
	rc = take_entries(c, message, m, &b);
	if (rc) {
		buf_free(&b);
		return rc;
	}
	*store = b.data;
	*store_len = b.len;
	return 0;
}

/* libpmix packs a key as it is. That it is found may be chance. */
static bool may_have(const struct modex_blob *b, const char *key)
{
	return !key || memmem(b->data, b->len, key, strlen(key));
}

bool collect_find(struct collect *c, uint32_t rank, const char *key,
		  const void **data, size_t *len)
{
	struct modex_blob *b;

	if (!c->blobs || rank >= layout_ranks(c->nspace->layout))
		return false;
	b = &c->blobs[rank];
	if (!b->message || b->given || !may_have(b, key))
		return false;
	b->given = true;
	*data = b->data;
	*len = b->len;
	return true;
}
