/* SPDX-License-Identifier: BSD-3-Clause */
/* The head in the tree of control: tree_head.h. */
#include "dvm/core/tree_head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#define WHY_BYTES 128

enum member_state { MEMBER_ABSENT, MEMBER_ATTACHED, MEMBER_DETACHED, MEMBER_LOST };

struct tree_member {
	uint32_t position;
	enum member_state state;
	bool gone;         /* its last message: no rank is left */
	bool ended;        /* the host has given it up */
	uint64_t until_ms; /* of DETACHED */
	char *why;
	struct session session;
	struct tree_member *prev, *next; /* of those that are detached */
	UT_hash_handle hh;
};

static struct tree_member *find(const struct tree_head *t, uint32_t position)
{
	struct tree_member *m;

	HASH_FIND(hh, t->members, &position, sizeof(position), m);
	return m;
}

static struct tree_member *find_or_make(struct tree_head *t, uint32_t position)
{
	struct tree_member *m = find(t, position);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->position = position;
	HASH_ADD(hh, t->members, position, sizeof(m->position), m);
	if (m->hh.tbl)
		return m;
	free(m);
	return NULL;
}

static void set_state(struct tree_head *t, struct tree_member *m, enum member_state state)
{
	if (m->state == MEMBER_DETACHED)
		DL_DELETE(t->detached, m);
	if (state == MEMBER_DETACHED)
		DL_APPEND(t->detached, m);
	m->state = state;
}

/* ---- sending ---- */

static void put_data(struct tree_head *t, struct tree_member *m, uint64_t number,
		     const struct dvm_bytes *data)
{
	const struct bundle_item i = {
		.kind = BUNDLE_DATA, .position = m->position, .seq = number,
		.ack = session_ack(&m->session), .data = *data,
	};

	(void)dvm_relay_put_to(&t->relay, m->position, &i);
}

static void put_end(struct tree_head *t, struct tree_member *m)
{
	static const char stop[] = { DVM_STOP, true };

	put_data(t, m, 0, &(struct dvm_bytes){ stop, sizeof(stop) });
}

int tree_head_send(struct tree_head *t, uint32_t position, const void *data, size_t len)
{
	struct tree_member *m = find_or_make(t, position);
	bool lease = dvm_msg_is_lease(data, len);
	uint64_t number;

	if (!m)
		return -ENOMEM;
	if (m->state == MEMBER_LOST || m->ended)
		return 0;
	number = lease ? 0 : session_keep(&m->session, data, len);
	if (!lease && !number)
		return -ENOMEM;
	if (m->state == MEMBER_ATTACHED)
		put_data(t, m, number, &(struct dvm_bytes){ data, len });
	return 0;
}

void tree_head_parents(struct tree_head *t, uint32_t position,
		       const struct tree_ancestor *list, uint32_t count)
{
	struct bundle_item i = { .kind = BUNDLE_PARENTS, .position = position };
	struct buf b;
	int rc = 0;

	buf_init(&b, TREE_ANCESTORS_MAX * sizeof(*list));
	for (uint32_t k = 0; !rc && k < count; k++)
		rc = tree_ancestor_pack(&b, &list[k]);
	i.data = (struct dvm_bytes){ b.data, b.len };
	if (!rc)
		(void)dvm_relay_put_to(&t->relay, position, &i);
	buf_free(&b);
}

/* ---- nodes that come and go ---- */

struct sending {
	struct tree_head *head;
	struct tree_member *member;
};

static void put_kept(void *arg, uint64_t number, const struct dvm_bytes *data)
{
	const struct sending *s = arg;

	put_data(s->head, s->member, number, data);
}

static void take_attach(struct tree_head *t, struct tree_member *m, const struct bundle_item *i)
{
	const struct bundle_item answer = {
		.kind = BUNDLE_ATTACHED, .position = m->position, .attach = i->attach,
		.ack = session_ack(&m->session),
	};
	struct sending s = { t, m };
	bool first = m->state == MEMBER_ABSENT;

	if (m->state == MEMBER_LOST || m->ended) {
		put_end(t, m);
		return;
	}
	set_state(t, m, MEMBER_ATTACHED);
	if (first)
		t->ops.attached(t->arg, m->position, i->data.data);
	(void)dvm_relay_put_to(&t->relay, m->position, &answer);
	session_acked(&m->session, i->ack);
	session_each(&m->session, put_kept, &s);
}

static void detach(struct tree_head *t, struct tree_member *m, const char *why, size_t len)
{
	if (m->state != MEMBER_ATTACHED)
		return;
	free(m->why);
	m->why = strndup(why, len < WHY_BYTES ? len : WHY_BYTES);
	m->until_ms = m->gone || m->ended ? 0 : t->now_ms + TREE_REATTACH_MS;
	set_state(t, m, MEMBER_DETACHED);
}

static void on_route_lost(void *arg, uint32_t position)
{
	struct tree_head *t = arg;
	struct tree_member *m = find(t, position);

	if (m)
		detach(t, m, t->link_why, strlen(t->link_why));
}

static void lose(struct tree_head *t, struct tree_member *m)
{
	set_state(t, m, MEMBER_LOST);
	session_free(&m->session);
}

void tree_head_end(struct tree_head *t, uint32_t position, const char *why)
{
	struct tree_member *m = find_or_make(t, position);

	if (!m || m->state == MEMBER_LOST || m->ended)
		return;
	m->ended = true;
	put_end(t, m);
	detach(t, m, why, strlen(why));
	m->until_ms = 0;
}

bool tree_head_has(const struct tree_head *t, uint32_t position)
{
	const struct tree_member *m = find(t, position);

	return m && !m->ended && (m->state == MEMBER_ATTACHED || m->state == MEMBER_DETACHED);
}

bool tree_head_leads_nowhere(const struct tree_head *t, uint32_t link)
{
	const struct tree_member *m;
	uint32_t by;

	for (m = t->members; m; m = m->hh.next)
		if (m->position != link && dvm_relay_route(&t->relay, m->position, &by) && by == link)
			return false;
	return true;
}

/* ---- items of nodes ---- */

static void take_messages(struct tree_head *t, struct tree_member *m,
			  const struct bundle_item *i)
{
	if (!i->data.len)
		return;
	if (i->data.len == 1 && *(const uint8_t *)i->data.data == DVM_GONE) {
		m->gone = true;
		m->until_ms = 0;
	}
	t->ops.input(t->arg, m->position, i->data.data, i->data.len);
}

static void take_data(struct tree_head *t, struct tree_member *m, const struct bundle_item *i)
{
	if ((m->state != MEMBER_ATTACHED && m->state != MEMBER_DETACHED) || m->ended)
		return;
	session_acked(&m->session, i->ack);
	if (i->seq && !session_take(&m->session, i))
		return;
	if (session_owes_ack(&m->session))
		put_data(t, m, 0, &(struct dvm_bytes){ "", 0 });
	take_messages(t, m, i);
}

static void on_take(void *arg, uint32_t link, const struct bundle_item *i)
{
	struct tree_head *t = arg;
	struct tree_member *m = find_or_make(t, i->position);

	if (!m)
		t->ops.fail(t->arg, link);
	else if (i->kind == BUNDLE_ATTACH)
		take_attach(t, m, i);
	else if (i->kind == BUNDLE_DETACHED)
		detach(t, m, i->data.data, i->data.len);
	else
		take_data(t, m, i);
}

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct tree_head *t = arg;

	t->ops.send(t->arg, link, data, len);
}

static void on_fail(void *arg, uint32_t link)
{
	struct tree_head *t = arg;

	t->ops.fail(t->arg, link);
}

/* ---- what the host says ---- */

int tree_head_link(struct tree_head *t, uint32_t link)
{
	return dvm_relay_link_open(&t->relay, link);
}

void tree_head_link_lost(struct tree_head *t, uint32_t link, const char *why, uint64_t now_ms)
{
	t->now_ms = now_ms;
	t->link_why = why;
	dvm_relay_link_close(&t->relay, link, why, on_route_lost);
	t->link_why = NULL;
}

void tree_head_gone(struct tree_head *t, uint32_t link)
{
	static const char gone = DVM_GONE;
	const struct bundle_item i = { .kind = BUNDLE_DATA, .data = { &gone, 1 } };
	struct tree_member *m = find(t, link);

	if (m)
		take_data(t, m, &i);
}

int tree_head_input(struct tree_head *t, uint32_t link, const void *data, size_t len,
		    const uint8_t ip[16], uint64_t now_ms)
{
	t->now_ms = now_ms;
	return dvm_relay_input(&t->relay, link, data, len, ip);
}

/* ---- turns ---- */

uint64_t tree_head_deadline(const struct tree_head *t)
{
	const struct tree_member *m;
	uint64_t first = UINT64_MAX;

	DL_FOREACH(t->detached, m)
		if (m->until_ms < first)
			first = m->until_ms;
	return first;
}

static struct tree_member *first_late(const struct tree_head *t)
{
	struct tree_member *m;

	DL_FOREACH(t->detached, m)
		if (m->until_ms <= t->now_ms)
			return m;
	return NULL;
}

/* A callback may change the list. */
void tree_head_turn(struct tree_head *t, uint64_t now_ms)
{
	struct tree_member *m;

	t->now_ms = now_ms;
	while ((m = first_late(t))) {
		lose(t, m);
		t->ops.lost(t->arg, m->position, m->why && *m->why ? m->why : "its daemon has ended");
	}
}

void tree_head_flush(struct tree_head *t)
{
	dvm_relay_turn(&t->relay);
}

/* ---- life ---- */

void tree_head_init(struct tree_head *t, const struct tree_head_ops *ops, void *arg)
{
	static const struct dvm_relay_ops relay_ops = {
		.send = on_send, .take = on_take, .fail = on_fail,
	};

	*t = (struct tree_head){ .ops = *ops, .arg = arg };
	dvm_relay_init(&t->relay, TREE_HEAD, &relay_ops, t);
}

static void drop_member(struct tree_head *t, struct tree_member *m)
{
	set_state(t, m, MEMBER_LOST);
	HASH_DEL(t->members, m);
	session_free(&m->session);
	free(m->why);
	free(m);
}

void tree_head_forget(struct tree_head *t, uint32_t position)
{
	struct tree_member *m = find(t, position);

	if (m)
		drop_member(t, m);
	dvm_relay_forget(&t->relay, position);
}

void tree_head_free(struct tree_head *t)
{
	struct tree_member *m, *next;

	HASH_ITER(hh, t->members, m, next)
		drop_member(t, m);
	dvm_relay_free(&t->relay);
}
