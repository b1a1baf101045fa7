/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data of a group's members, and the results that libpmix gets. The first member of a
 * node gives for all of them:
 *
 *   u8   is a context id wanted?
 *   u64  a context id that the node has given to no other group
 *   the rest: what libpmix has packed of them (PMIX_GROUP_ENDPT_DATA), or nothing
 *
 * All nodes get the same in the same order, so all take the context id of the first.
 */
#include <errno.h>
#include <stdlib.h>

#include "helpers/pmixd/server_internal.h"

/* ---- what goes out ---- */

/* No two nodes, nor two groups of a node, have the same; and it is not 0. */
static uint64_t new_context(struct job *j)
{
	return ++j->groups * layout_nodes(j->nspace.layout) + j->nspace.position;
}

static int give_first(struct job *j, const struct event *e, uint32_t rank,
		      struct buf *b)
{
	struct pmix_entry entry = { .rank = rank };
	struct buf own;
	int rc;

	buf_init(&own, UINT32_MAX);
	rc = pack_u8(&own, e->context);
	rc = rc ? rc : pack_u64(&own, new_context(j));
	rc = rc ? rc : buf_append(&own, e->data, e->len);
	entry.bytes = own.data;
	entry.len = (uint32_t)own.len;
	rc = rc ? rc : pmix_entry_pack(b, &entry);
	buf_free(&own);
	return rc;
}

int group_give(struct job *j, const struct event *e, const uint32_t *slots,
	       uint32_t count, struct buf *b)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(j->nspace.layout, j->nspace.position,
						&here);
	int rc = give_first(j, e, ranks[slots[0]], b);

	return rc ? rc : server_give_nothing(j, slots + 1, count - 1, b);
}

/* ---- what comes in ---- */

/* The result of a group for libpmix, until it has read it. */
struct result {
	bool wanted;
	uint64_t context; /* 0: none yet */
	struct buf data;
	struct info_list infos;
};

static int take_entry(struct result *r, const struct pmix_entry *e)
{
	struct cursor c;
	uint64_t context;

	cursor_init(&c, e->bytes, e->len);
	r->wanted |= unpack_u8(&c) != 0;
	context = unpack_u64(&c);
	if (!cursor_ok(&c))
		return -EPROTO;
	if (!r->context)
		r->context = context;
	return buf_append(&r->data, c.at, cursor_left(&c));
}

static int take_entries(struct result *r, const void *data, size_t len)
{
	struct pmix_entry e;
	struct cursor c;
	int rc = 0;

	cursor_init(&c, data, len);
	while (!rc && pmix_entry_next(&c, &e))
		rc = take_entry(r, &e);
	return rc || cursor_ok(&c) ? rc : -EPROTO;
}

static void free_result(void *arg)
{
	struct result *r = arg;

	info_free(&r->infos);
	buf_free(&r->data);
	free(r);
}

/* libpmix frees the data itself, and says so in the list. */
static void make_infos(struct result *r, const struct job *j, const uint32_t *ranks,
		       uint32_t count)
{
	info_add_ranks(&r->infos, PMIX_GROUP_MEMBERSHIP, j->nspace.name, ranks,
		       ranks ? count : layout_ranks(j->nspace.layout));
	if (r->wanted)
		info_add_size(&r->infos, PMIX_GROUP_CONTEXT_ID, r->context);
	if (!r->data.len)
		return;
	info_add_bytes(&r->infos, PMIX_GROUP_ENDPT_DATA, r->data.data, r->data.len);
	buf_init(&r->data, SIZE_MAX);
}

int group_answer(const struct job *j, const struct callback *callback, const uint32_t *ranks,
		 uint32_t count, const void *data, size_t len)
{
	struct result *r = calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		server_answer(callback, PMIX_ERR_NOMEM, NULL, 0);
		return 0;
	}
	buf_init(&r->data, SIZE_MAX);
	rc = take_entries(r, data, len);
	if (!rc)
		make_infos(r, j, ranks, count);
	if (rc || r->infos.failed) {
		free_result(r);
		server_answer(callback, rc ? PMIX_ERROR : PMIX_ERR_NOMEM, NULL, 0);
		return rc;
	}
	callback->infos(PMIX_SUCCESS, r->infos.items, r->infos.count, callback->arg,
		    free_result, r);
	return 0;
}
