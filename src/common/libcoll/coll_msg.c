/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire form of messages between neighbours:
 *
 *   u8 type
 *   UP:    u8 kind, u32 seq; ring: u64 count, u32 left_len; others: u8 more
 *   DOWN:  u8 kind, u32 seq; ring: u64 count, u64 total, u32 left_len;
 *          others: u8 form; 0, the result: u64 size; 1, failed: reason;
 *          2, packed: u64 size, u64 bytes of the result
 *   REST:  u8 kind, u32 seq
 *   FAULT: u32 from for each kind, reason
 *
 * A reason is a u32 length and text without a NUL.
 */
#include "libcoll/coll.h"

#include <errno.h>
#include <string.h>

enum down_form { DOWN_RESULT, DOWN_FAILED, DOWN_PACKED };

const char *coll_kind_name(enum coll_kind kind)
{
	static const char *const names[COLL_KINDS] = {
		[COLL_FENCE] = "fence",
		[COLL_GATHER] = "allgather",
		[COLL_RING] = "ring",
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
	rc = pack_u8(b, msg->failed ? DOWN_FAILED :
			msg->raw ? DOWN_PACKED : DOWN_RESULT);
	if (!rc && msg->failed)
		return pack_str(b, msg->fault.reason);
	rc = rc ? rc : pack_u64(b, msg->size);
	return rc || !msg->raw ? rc : pack_u64(b, msg->raw);
}

static int pack_fault(struct buf *b, const struct coll_msg *msg)
{
	int rc = 0;

	for (int kind = 0; !rc && kind < COLL_KINDS; kind++)
		rc = pack_u32(b, msg->fault.from[kind]);
	return rc ? rc : pack_str(b, msg->fault.reason);
}

static void unpack_ring(struct cursor *c, struct coll_msg *msg)
{
	msg->count = unpack_u64(c);
	if (msg->type == COLL_MSG_DOWN)
		msg->total = unpack_u64(c);
	msg->left_len = unpack_u32(c);
}

/* What a person may get to see must not steer a terminal or split a line. */
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
	if (form == DOWN_PACKED)
		msg->raw = unpack_u64(c);
	if (form > DOWN_PACKED || (form == DOWN_PACKED && !msg->raw))
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

static const struct {
	int (*pack)(struct buf *b, const struct coll_msg *msg);
	void (*unpack)(struct cursor *c, struct coll_msg *msg);
} forms[COLL_MSG_TYPES] = {
	[COLL_MSG_UP] = { pack_up, unpack_collective },
	[COLL_MSG_DOWN] = { pack_down, unpack_collective },
	[COLL_MSG_REST] = { pack_named, unpack_no_ring },
	[COLL_MSG_FAULT] = { pack_fault, unpack_fault },
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
