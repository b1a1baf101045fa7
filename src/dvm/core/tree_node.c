/* SPDX-License-Identifier: BSD-3-Clause */
/* A node in the tree of control: tree_node.h. */
#include "dvm/core/tree_node.h"

#include <errno.h>
#include <string.h>

static void put_data(struct tree_node *t, uint64_t number, const struct dvm_bytes *data)
{
	const struct bundle_item i = {
		.kind = BUNDLE_DATA, .position = t->relay.self, .seq = number,
		.ack = session_ack(&t->session), .data = *data,
	};

	dvm_relay_put(&t->relay, RELAY_UP, &i);
}

static void put_kept(void *arg, uint64_t number, const struct dvm_bytes *data)
{
	put_data(arg, number, data);
}

/* ---- attaching ---- */

int tree_node_up(struct tree_node *t)
{
	static const uint8_t no_ip[16];
	const struct bundle_item i = {
		.kind = BUNDLE_ATTACH, .position = t->relay.self, .attach = ++t->attach,
		.ack = session_ack(&t->session), .data = { no_ip, sizeof(no_ip) },
	};
	int rc = dvm_relay_link_open(&t->relay, RELAY_UP);

	if (rc)
		return rc;
	t->state = TREE_ASKED;
	dvm_relay_put(&t->relay, RELAY_UP, &i);
	dvm_relay_tell_children(&t->relay, BUNDLE_MOVED);
	return 0;
}

void tree_node_down(struct tree_node *t)
{
	t->state = TREE_DETACHED;
	dvm_relay_link_close(&t->relay, RELAY_UP, "", NULL);
}

/* The way of this node is another one: what is on the old one may be lost. */
static void attach_again(struct tree_node *t)
{
	if (t->state != TREE_DETACHED)
		(void)tree_node_up(t); /* the link is there: needs no memory */
}

static void take_attached(struct tree_node *t, const struct bundle_item *i)
{
	if (t->state != TREE_ASKED || i->attach != t->attach)
		return;
	t->state = TREE_ATTACHED;
	session_acked(&t->session, i->ack);
	session_each(&t->session, put_kept, t);
	t->ops.attached(t->arg);
}

/* ---- items of the head ---- */

static void take_data(struct tree_node *t, const struct bundle_item *i)
{
	session_acked(&t->session, i->ack);
	if (i->seq && !session_take(&t->session, i))
		return;
	if (session_owes_ack(&t->session))
		put_data(t, 0, &(struct dvm_bytes){ "", 0 });
	if (i->data.len)
		t->ops.input(t->arg, i->data.data, i->data.len);
}

int tree_ancestor_pack(struct buf *b, const struct tree_ancestor *a)
{
	int rc = pack_u32(b, a->position);

	rc = rc ? rc : buf_append(b, a->where.ip, sizeof(a->where.ip));
	return rc ? rc : pack_u16(b, a->where.port);
}

static void take_parents(struct tree_node *t, const struct bundle_item *i)
{
	struct tree_ancestor list[TREE_ANCESTORS_MAX];
	uint32_t count = 0;
	struct cursor c;

	cursor_init(&c, i->data.data, i->data.len);
	while (cursor_left(&c) && count < TREE_ANCESTORS_MAX) {
		struct tree_ancestor *a = &list[count++];
		const void *ip;

		a->position = unpack_u32(&c);
		ip = unpack_raw(&c, sizeof(a->where.ip));
		a->where.port = unpack_u16(&c);
		if (!cursor_ok(&c))
			return;
		memcpy(a->where.ip, ip, sizeof(a->where.ip));
	}
	t->ops.parents(t->arg, list, count);
}

static void on_take(void *arg, uint32_t link, const struct bundle_item *i)
{
	struct tree_node *t = arg;

	switch (i->kind) {
	case BUNDLE_ATTACHED: take_attached(t, i); break;
	case BUNDLE_DATA: take_data(t, i); break;
	case BUNDLE_PARENTS: take_parents(t, i); break;
	case BUNDLE_LEAVING: t->ops.leaving(t->arg); break;
	case BUNDLE_MOVED: attach_again(t); break;
	default: break;
	}
}

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct tree_node *t = arg;

	t->ops.send(t->arg, link, data, len);
}

static void on_fail(void *arg, uint32_t link)
{
	struct tree_node *t = arg;

	t->ops.fail(t->arg, link);
}

/* ---- what the host says ---- */

int tree_node_child(struct tree_node *t, uint32_t child)
{
	return dvm_relay_link_open(&t->relay, child);
}

void tree_node_child_lost(struct tree_node *t, uint32_t child, const char *why)
{
	dvm_relay_link_close(&t->relay, child, why, NULL);
}

void tree_node_child_gone(struct tree_node *t, uint32_t child)
{
	static const char gone = DVM_GONE;
	const struct bundle_item i = {
		.kind = BUNDLE_DATA, .position = child, .data = { &gone, 1 },
	};

	dvm_relay_put(&t->relay, RELAY_UP, &i);
}

void tree_node_leave(struct tree_node *t)
{
	dvm_relay_tell_children(&t->relay, BUNDLE_LEAVING);
}

int tree_node_input(struct tree_node *t, uint32_t link, const void *data, size_t len,
		    const uint8_t ip[16])
{
	return dvm_relay_input(&t->relay, link, data, len, ip);
}

int tree_node_send(struct tree_node *t, const void *data, size_t len)
{
	const struct dvm_bytes bytes = { data, len };
	bool lease = dvm_msg_is_lease(data, len);
	uint64_t number = lease ? 0 : session_keep(&t->session, data, len);

	if (!lease && !number)
		return -ENOMEM;
	if (t->state == TREE_ATTACHED)
		put_data(t, number, &bytes);
	return 0;
}

void tree_node_turn(struct tree_node *t)
{
	dvm_relay_turn(&t->relay);
}

/* ---- life ---- */

void tree_node_init(struct tree_node *t, uint32_t position, const struct tree_node_ops *ops,
		    void *arg)
{
	static const struct dvm_relay_ops relay_ops = {
		.send = on_send, .take = on_take, .fail = on_fail,
	};

	*t = (struct tree_node){ .ops = *ops, .arg = arg };
	dvm_relay_init(&t->relay, position, &relay_ops, t);
}

void tree_node_free(struct tree_node *t)
{
	dvm_relay_free(&t->relay);
	session_free(&t->session);
}
