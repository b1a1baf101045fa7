/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire form of messages between neighbours:
 *
 *   u8 type
 *   UP:    u8 kind, u32 seq; ring: u64 count, u32 left_len; others: u8 more
 *   DOWN:  u8 kind, u32 seq; ring: u64 count, u64 total, u32 left_len;
 *          others: u8 form; 0, the result: u64 size; 1, failed: reason
 *   REST:  u8 kind, u32 seq
 *   FAULT: u32 from for each kind, reason
 *   SUB:   16 bytes key; then
 *   SUB_UP:   u8 failed, u8 last, u32 members, u8 nodes above, u32 for each
 *             of them; failed: reason
 *   SUB_DOWN: u8 failed; failed: reason
 *   SUB_OPEN: i32 first
 *   SUB_FAIL: i32 first, reason
 *   FETCH:    u32 id, u8 op, u32 rank, u32 timeout
 *   FETCHED:  u32 id, u8 status; not found: reason
 *
 * A reason is a u32 length and text without a NUL.
 */
#include "libcoll/fetch.h"

#include <errno.h>
#include <string.h>

enum down_form { DOWN_RESULT, DOWN_FAILED };

const char *coll_kind_name(enum coll_kind kind)
{
	static const char *const names[COLL_KINDS] = {
		[COLL_FENCE] = "fence",
		[COLL_GATHER] = "allgather",
		[COLL_RING] = "ring",
		[COLL_PMIX] = "PMIx fence",
	};

	return (unsigned int)kind < COLL_KINDS ? names[kind] : "collective";
}

static int pack_named(struct buf *b, const struct coll_msg *msg)
{
	int rc = pack_u8(b, msg->kind);

	return rc ? rc : pack_u32(b, msg->seq);
}

static int pack_up(struct buf *b, const struct coll_msg *msg)
{
	int rc = pack_named(b, msg);

	if (!rc && msg->kind != COLL_RING)
		return pack_u8(b, msg->more);
	if (!rc)
		rc = pack_u64(b, msg->count);
	if (!rc)
		rc = pack_u32(b, msg->left_len);
	return rc;
}

static int pack_ring_down(struct buf *b, const struct coll_msg *msg)
{
	int rc = pack_u64(b, msg->count);

	if (!rc)
		rc = pack_u64(b, msg->total);
	if (!rc)
		rc = pack_u32(b, msg->left_len);
	return rc;
}

static int pack_down(struct buf *b, const struct coll_msg *msg)
{
	int rc = pack_named(b, msg);

	if (rc)
		return rc;
	if (msg->kind == COLL_RING)
		return pack_ring_down(b, msg);
	rc = pack_u8(b, msg->failed ? DOWN_FAILED : DOWN_RESULT);
	if (rc)
		return rc;
	return msg->failed ? pack_str(b, msg->fault.reason) :
			     pack_u64(b, msg->size);
}

static int pack_fault(struct buf *b, const struct coll_msg *msg)
{
	int rc = 0;

	for (int kind = 0; !rc && kind < COLL_KINDS; kind++)
		rc = pack_u32(b, msg->fault.from[kind]);
	return rc ? rc : pack_str(b, msg->fault.reason);
}

static int pack_subset_up(struct buf *b, const struct coll_msg *msg)
{
	const struct coll_subset_msg *m = &msg->subset;
	int rc = pack_u8(b, m->last);

	if (!rc)
		rc = pack_u32(b, m->members);
	if (!rc)
		rc = pack_u8(b, m->nabove);
	for (uint32_t i = 0; !rc && i < m->nabove; i++)
		rc = pack_u32(b, m->above[i]);
	return rc;
}

static int pack_subset(struct buf *b, const struct coll_msg *msg)
{
	bool ends = msg->type == COLL_MSG_SUB_UP ||
		    msg->type == COLL_MSG_SUB_DOWN;
	int rc = buf_append(b, msg->subset.key, COLL_KEY_SIZE);

	if (!rc)
		rc = ends ? pack_u8(b, msg->failed) :
			    pack_u32(b, msg->subset.first);
	if (!rc && msg->type == COLL_MSG_SUB_UP)
		rc = pack_subset_up(b, msg);
	if (!rc && (msg->failed || msg->type == COLL_MSG_SUB_FAIL))
		rc = pack_str(b, msg->fault.reason);
	return rc;
}

static int pack_fetch(struct buf *b, const struct coll_msg *msg)
{
	const struct coll_fetch_msg *m = &msg->fetch;
	int rc = pack_u32(b, m->id);

	if (!rc)
		rc = pack_u8(b, m->op);
	if (!rc)
		rc = pack_u32(b, m->rank);
	return rc ? rc : pack_u32(b, m->timeout);
}

static int pack_fetched(struct buf *b, const struct coll_msg *msg)
{
	int rc = pack_u32(b, msg->fetch.id);

	if (!rc)
		rc = pack_u8(b, msg->fetch.status);
	if (rc || msg->fetch.status == COLL_FETCH_FOUND)
		return rc;
	return pack_str(b, msg->fault.reason);
}

static void unpack_ring(struct cursor *c, struct coll_msg *msg)
{
	msg->count = unpack_u64(c);
	if (msg->type == COLL_MSG_DOWN)
		msg->total = unpack_u64(c);
	msg->left_len = unpack_u32(c);
}

/* The text may reach a terminal: it must not control it or split a line. */
static void unpack_reason(struct cursor *c, struct coll_fault *fault)
{
	size_t len;
	const char *text = unpack_bytes(c, COLL_REASON_MAX - 1, &len);

	for (size_t i = 0; i < len; i++) {
		bool printable = text[i] >= ' ' && text[i] <= '~';

		fault->reason[i] = printable ? text[i] : '?';
	}
	fault->reason[len] = '\0';
}

static void unpack_down(struct cursor *c, struct coll_msg *msg)
{
	uint8_t form = unpack_u8(c);

	msg->failed = form == DOWN_FAILED;
	if (msg->failed)
		unpack_reason(c, &msg->fault);
	else
		msg->size = unpack_u64(c);
	if (form > DOWN_FAILED)
		c->failed = true;
}

static void unpack_named(struct cursor *c, struct coll_msg *msg)
{
	uint8_t kind = unpack_u8(c);

	msg->seq = unpack_u32(c);
	if (kind >= COLL_KINDS || msg->seq == COLL_NEVER)
		c->failed = true;
	else
		msg->kind = kind;
}

/* Only messages of which there is a ring form know that kind. */
static void unpack_no_ring(struct cursor *c, struct coll_msg *msg)
{
	unpack_named(c, msg);
	if (msg->kind == COLL_RING)
		c->failed = true;
}

static void unpack_collective(struct cursor *c, struct coll_msg *msg)
{
	unpack_named(c, msg);
	if (msg->kind == COLL_RING)
		unpack_ring(c, msg);
	else if (msg->type == COLL_MSG_DOWN)
		unpack_down(c, msg);
	else
		msg->more = unpack_u8(c) != 0;
}

static void unpack_fault(struct cursor *c, struct coll_msg *msg)
{
	for (int kind = 0; kind < COLL_KINDS; kind++)
		msg->fault.from[kind] = unpack_u32(c);
	unpack_reason(c, &msg->fault);
}

static void unpack_subset_up(struct cursor *c, struct coll_subset_msg *m)
{
	m->last = unpack_u8(c) != 0;
	m->members = unpack_u32(c);
	m->nabove = unpack_u8(c);
	if (m->nabove > COLL_DEPTH_MAX || (m->last && !m->nabove)) {
		c->failed = true;
		m->nabove = 0;
	}
	for (uint32_t i = 0; i < m->nabove; i++)
		m->above[i] = unpack_u32(c);
}

static void unpack_subset(struct cursor *c, struct coll_msg *msg)
{
	const void *key = unpack_raw(c, COLL_KEY_SIZE);

	if (key)
		memcpy(msg->subset.key, key, COLL_KEY_SIZE);
	if (msg->type == COLL_MSG_SUB_UP || msg->type == COLL_MSG_SUB_DOWN)
		msg->failed = unpack_u8(c) != 0;
	else
		msg->subset.first = (int32_t)unpack_u32(c);
	if (msg->type == COLL_MSG_SUB_UP)
		unpack_subset_up(c, &msg->subset);
	if (msg->failed || msg->type == COLL_MSG_SUB_FAIL)
		unpack_reason(c, &msg->fault);
}

static void unpack_fetch(struct cursor *c, struct coll_msg *msg)
{
	msg->fetch.id = unpack_u32(c);
	msg->fetch.op = unpack_u8(c);
	msg->fetch.rank = unpack_u32(c);
	msg->fetch.timeout = unpack_u32(c);
}

static void unpack_fetched(struct cursor *c, struct coll_msg *msg)
{
	msg->fetch.id = unpack_u32(c);
	msg->fetch.status = unpack_u8(c);
	if (msg->fetch.status >= COLL_FETCH_STATUSES)
		c->failed = true;
	else if (msg->fetch.status != COLL_FETCH_FOUND)
		unpack_reason(c, &msg->fault);
}

/* It is all in the body. */
static int pack_nothing(struct buf *b, const struct coll_msg *msg)
{
	return 0;
}

static void unpack_nothing(struct cursor *c, struct coll_msg *msg)
{
}

static const struct {
	int (*pack)(struct buf *b, const struct coll_msg *msg);
	void (*unpack)(struct cursor *c, struct coll_msg *msg);
} forms[COLL_MSG_TYPES] = {
	[COLL_MSG_UP] = { pack_up, unpack_collective },
	[COLL_MSG_DOWN] = { pack_down, unpack_collective },
	[COLL_MSG_REST] = { pack_named, unpack_no_ring },
	[COLL_MSG_FAULT] = { pack_fault, unpack_fault },
	[COLL_MSG_SUB_UP] = { pack_subset, unpack_subset },
	[COLL_MSG_SUB_DOWN] = { pack_subset, unpack_subset },
	[COLL_MSG_SUB_OPEN] = { pack_subset, unpack_subset },
	[COLL_MSG_SUB_FAIL] = { pack_subset, unpack_subset },
	[COLL_MSG_FETCH] = { pack_fetch, unpack_fetch },
	[COLL_MSG_FETCHED] = { pack_fetched, unpack_fetched },
	[COLL_MSG_FLOOD] = { pack_nothing, unpack_nothing },
};

int coll_msg_pack(struct buf *b, const struct coll_msg *msg)
{
	size_t start = b->len;
	int rc = pack_u8(b, msg->type);

	if (!rc)
		rc = forms[msg->type].pack(b, msg);
	if (rc)
		b->len = start;
	return rc;
}

int coll_msg_unpack(struct cursor *c, struct coll_msg *msg)
{
	uint8_t type = unpack_u8(c);

	memset(msg, 0, sizeof(*msg));
	if (!cursor_ok(c) || type >= COLL_MSG_TYPES)
		return -EPROTO;
	msg->type = type;
	forms[type].unpack(c, msg);
	return cursor_ok(c) ? 0 : -EPROTO;
}

int coll_msg_read(const void *head, size_t len, struct coll_msg *msg)
{
	struct cursor c;

	cursor_init(&c, head, len);
	return coll_msg_unpack(&c, msg) || !cursor_done(&c) ? -EPROTO : 0;
}
