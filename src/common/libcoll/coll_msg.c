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
 *   SERIES:   u8 kind, u32 seq, reason
 *
 * A reason is a u32 length and text without a NUL.
 */
#include "libcoll/fetch.h"

#include <errno.h>
#include <string.h>

#include "libutil/coder.h"

enum down_form { DOWN_RESULT, DOWN_FAILED, DOWN_FORMS };

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

static void code_reason(struct coder *c, struct coll_msg *msg)
{
	code_clean(c, msg->fault.reason, COLL_REASON_MAX);
}

static void code_named(struct coder *c, struct coll_msg *msg)
{
	CODE_ENUM(c, &msg->kind, COLL_KINDS);
	code_u32(c, &msg->seq);
	CODE_CHECK(c, msg->seq != COLL_NEVER);
}

static void code_up(struct coder *c, struct coll_msg *msg)
{
	code_named(c, msg);
	if (msg->kind != COLL_RING) {
		code_flag(c, &msg->more);
		return;
	}
	code_u64(c, &msg->count);
	code_u32(c, &msg->left_len);
}

static void code_result(struct coder *c, struct coll_msg *msg)
{
	enum down_form form = msg->failed ? DOWN_FAILED : DOWN_RESULT;

	CODE_ENUM(c, &form, DOWN_FORMS);
	if (!c->out)
		msg->failed = form == DOWN_FAILED;
	if (form == DOWN_FAILED)
		code_reason(c, msg);
	else
		code_u64(c, &msg->size);
}

static void code_down(struct coder *c, struct coll_msg *msg)
{
	code_named(c, msg);
	if (msg->kind != COLL_RING) {
		code_result(c, msg);
		return;
	}
	code_u64(c, &msg->count);
	code_u64(c, &msg->total);
	code_u32(c, &msg->left_len);
}

/* The message has no form for the ring. */
static void code_rest(struct coder *c, struct coll_msg *msg)
{
	code_named(c, msg);
	CODE_CHECK(c, msg->kind != COLL_RING);
}

static void code_fault(struct coder *c, struct coll_msg *msg)
{
	code_u32s(c, msg->fault.from, COLL_KINDS);
	code_reason(c, msg);
}

static void code_subset_up(struct coder *c, struct coll_subset_msg *m)
{
	uint8_t nabove = (uint8_t)m->nabove;

	code_flag(c, &m->last);
	code_u32(c, &m->members);
	code_u8(c, &nabove);
	CODE_CHECK(c, nabove <= COLL_DEPTH_MAX && (nabove || !m->last));
	if (!c->out)
		m->nabove = cursor_ok(&c->in) ? nabove : 0;
	code_u32s(c, m->above, m->nabove);
}

static void code_subset(struct coder *c, struct coll_msg *msg)
{
	code_raw(c, msg->subset.key, COLL_KEY_SIZE);
	if (msg->type == COLL_MSG_SUB_UP || msg->type == COLL_MSG_SUB_DOWN)
		code_flag(c, &msg->failed);
	else
		code_i32(c, &msg->subset.first);
	if (msg->type == COLL_MSG_SUB_UP)
		code_subset_up(c, &msg->subset);
	if (msg->failed || msg->type == COLL_MSG_SUB_FAIL)
		code_reason(c, msg);
}

static void code_fetch(struct coder *c, struct coll_msg *msg)
{
	code_u32(c, &msg->fetch.id);
	code_u8(c, &msg->fetch.op);
	code_u32(c, &msg->fetch.rank);
	code_u32(c, &msg->fetch.timeout);
}

static void code_series(struct coder *c, struct coll_msg *msg)
{
	code_named(c, msg);
	code_reason(c, msg);
	CODE_CHECK(c, msg->kind == COLL_PMIX && msg->seq && msg->seq % COLL_SERIES == 0);
}

static void code_fetched(struct coder *c, struct coll_msg *msg)
{
	code_u32(c, &msg->fetch.id);
	CODE_ENUM(c, &msg->fetch.status, COLL_FETCH_STATUSES);
	if (msg->fetch.status != COLL_FETCH_FOUND)
		code_reason(c, msg);
}

/* Everything is in the body. */
static void code_nothing(struct coder *c, struct coll_msg *msg)
{
}

/* The fields of each type. */
static void (*const codes[COLL_MSG_TYPES])(struct coder *c, struct coll_msg *msg) = {
	[COLL_MSG_UP] = code_up,
	[COLL_MSG_DOWN] = code_down,
	[COLL_MSG_REST] = code_rest,
	[COLL_MSG_FAULT] = code_fault,
	[COLL_MSG_SUB_UP] = code_subset,
	[COLL_MSG_SUB_DOWN] = code_subset,
	[COLL_MSG_SUB_OPEN] = code_subset,
	[COLL_MSG_SUB_FAIL] = code_subset,
	[COLL_MSG_FETCH] = code_fetch,
	[COLL_MSG_FETCHED] = code_fetched,
	[COLL_MSG_FLOOD] = code_nothing,
	[COLL_MSG_SERIES] = code_series,
};

int coll_msg_pack(struct buf *b, const struct coll_msg *msg)
{
	struct coder c = { .out = b };
	size_t start = b->len;

	c.rc = pack_u8(b, msg->type);
	codes[msg->type](&c, (struct coll_msg *)msg);
	return coder_wrote(&c, start);
}

int coll_msg_unpack(struct cursor *in, struct coll_msg *msg)
{
	uint8_t type = unpack_u8(in);
	struct coder c = { .in = *in };

	memset(msg, 0, sizeof(*msg));
	if (!cursor_ok(in) || type >= COLL_MSG_TYPES)
		return -EPROTO;
	msg->type = type;
	codes[type](&c, msg);
	return coder_leave(&c, in);
}

int coll_msg_read(const void *head, size_t len, struct coll_msg *msg)
{
	struct cursor c;

	cursor_init(&c, head, len);
	return coll_msg_unpack(&c, msg) || !cursor_done(&c) ? -EPROTO : 0;
}
