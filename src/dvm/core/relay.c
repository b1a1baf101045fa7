/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and bundles of a process in the tree of control: relay.h. */
#include "dvm/core/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#define FULL ((size_t)8 << 20) /* bytes of a bundle that is sent before the end of a turn */

struct relay_link {
	uint32_t name;
	bool failed;
	bool has_items;
	struct bundle out;
	struct relay_link *prev, *next; /* of those with items */
	UT_hash_handle hh;
};

struct relay_route {
	uint32_t position;
	uint32_t attach; /* number of the ATTACH */
	uint32_t link;
	UT_hash_handle hh;
};

void dvm_relay_init(struct dvm_relay *r, uint32_t self, const struct dvm_relay_ops *ops, void *arg)
{
	*r = (struct dvm_relay){ .ops = *ops, .arg = arg, .self = self };
}

/* ---- links ---- */

static struct relay_link *find_link(const struct dvm_relay *r, uint32_t link)
{
	struct relay_link *l;

	HASH_FIND(hh, r->links, &link, sizeof(link), l);
	return l;
}

bool dvm_relay_has_link(const struct dvm_relay *r, uint32_t link)
{
	return find_link(r, link);
}

int dvm_relay_link_open(struct dvm_relay *r, uint32_t link)
{
	struct relay_link *l = find_link(r, link);

	if (l)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->name = link;
	bundle_init(&l->out);
	HASH_ADD(hh, r->links, name, sizeof(l->name), l);
	if (l->hh.tbl)
		return 0;
	free(l);
	return -ENOMEM;
}

static void drop_link(struct dvm_relay *r, struct relay_link *l)
{
	if (l->has_items)
		DL_DELETE(r->ready, l);
	HASH_DEL(r->links, l);
	bundle_free(&l->out);
	free(l);
}

uint32_t dvm_relay_children(const struct dvm_relay *r)
{
	return HASH_COUNT(r->links) - (r->self != TREE_HEAD && dvm_relay_has_link(r, RELAY_UP));
}

/* ---- routes ---- */

static struct relay_route *find_route(const struct dvm_relay *r, uint32_t position)
{
	struct relay_route *at;

	HASH_FIND(hh, r->routes, &position, sizeof(position), at);
	return at;
}

bool dvm_relay_route(const struct dvm_relay *r, uint32_t position, uint32_t *link)
{
	const struct relay_route *at = find_route(r, position);

	if (at)
		*link = at->link;
	return at;
}

static void drop_route(struct dvm_relay *r, struct relay_route *at)
{
	HASH_DEL(r->routes, at);
	free(at);
}

void dvm_relay_forget(struct dvm_relay *r, uint32_t position)
{
	struct relay_route *at = find_route(r, position);

	if (at)
		drop_route(r, at);
}

/* False: a later one has come before, or there is no memory. */
static bool learn(struct dvm_relay *r, uint32_t link, const struct bundle_item *i)
{
	struct relay_route *at = find_route(r, i->position);

	if (at && at->attach >= i->attach)
		return false;
	if (!at) {
		at = calloc(1, sizeof(*at));
		if (!at)
			return false;
		at->position = i->position;
		HASH_ADD(hh, r->routes, position, sizeof(at->position), at);
		if (!at->hh.tbl) {
			free(at);
			return false;
		}
	}
	at->attach = i->attach;
	at->link = link;
	return true;
}

void dvm_relay_link_close(struct dvm_relay *r, uint32_t link, const char *why,
		      void (*lost)(void *arg, uint32_t position))
{
	struct relay_link *l = find_link(r, link);
	struct relay_route *at, *next;

	if (l)
		drop_link(r, l);
	HASH_ITER(hh, r->routes, at, next) {
		const struct bundle_item i = {
			.kind = BUNDLE_DETACHED, .position = at->position, .attach = at->attach,
			.data = { why, strlen(why) },
		};

		if (at->link != link)
			continue;
		drop_route(r, at);
		if (lost)
			lost(r->arg, i.position);
		else
			dvm_relay_put(r, RELAY_UP, &i);
	}
}

/* ---- items ---- */

static void flush(struct dvm_relay *r, struct relay_link *l)
{
	DL_DELETE(r->ready, l);
	l->has_items = false;
	r->ops.send(r->arg, l->name, l->out.bytes.data, l->out.bytes.len);
	bundle_clear(&l->out);
}

void dvm_relay_put(struct dvm_relay *r, uint32_t link, const struct bundle_item *i)
{
	struct relay_link *l = find_link(r, link);

	if (!l || l->failed)
		return;
	l->failed = bundle_add(&l->out, i);
	if (l->failed) {
		r->ops.fail(r->arg, link);
		return;
	}
	r->items++;
	if (!l->has_items)
		DL_APPEND(r->ready, l);
	l->has_items = true;
	if (l->out.bytes.len >= FULL)
		flush(r, l);
}

bool dvm_relay_put_to(struct dvm_relay *r, uint32_t position, const struct bundle_item *i)
{
	const struct relay_route *at = find_route(r, position);

	if (at)
		dvm_relay_put(r, at->link, i);
	return at;
}

void dvm_relay_tell_children(struct dvm_relay *r, enum bundle_kind kind)
{
	const struct bundle_item i = { .kind = kind };
	struct relay_link *l, *next;

	HASH_ITER(hh, r->links, l, next)
		if (l->name != RELAY_UP)
			dvm_relay_put(r, l->name, &i);
}

void dvm_relay_turn(struct dvm_relay *r)
{
	while (r->ready)
		flush(r, r->ready);
}

/* ---- input ---- */

/* The node has another way meanwhile if this is not about the last ATTACH. */
static bool forget_detached(struct dvm_relay *r, uint32_t link, const struct bundle_item *i)
{
	struct relay_route *at = find_route(r, i->position);

	if (!at || at->link != link || at->attach != i->attach)
		return false;
	drop_route(r, at);
	return true;
}

static void pass_up(struct dvm_relay *r, uint32_t link, const struct bundle_item *i)
{
	if (r->self == TREE_HEAD)
		r->ops.take(r->arg, link, i);
	else
		dvm_relay_put(r, RELAY_UP, i);
}

static int take_attach(struct dvm_relay *r, uint32_t link, const struct bundle_item *i,
		       const uint8_t ip[16])
{
	static const uint8_t none[16];
	struct bundle_item mine = *i;

	if (i->data.len != sizeof(none) || i->position == r->self)
		return -EPROTO;
	if (i->position == link && !memcmp(i->data.data, none, sizeof(none)))
		mine.data.data = ip;
	if (learn(r, link, i))
		pass_up(r, link, &mine);
	return 0;
}

static int take_up(struct dvm_relay *r, uint32_t link, const struct bundle_item *i,
		   const uint8_t ip[16])
{
	switch (i->kind) {
	case BUNDLE_ATTACH:
		return take_attach(r, link, i, ip);
	case BUNDLE_DETACHED:
		if (forget_detached(r, link, i))
			pass_up(r, link, i);
		return 0;
	case BUNDLE_DATA:
		pass_up(r, link, i);
		return 0;
	default:
		return -EPROTO;
	}
}

static int take_down(struct dvm_relay *r, const struct bundle_item *i)
{
	if (i->kind == BUNDLE_ATTACH || i->kind == BUNDLE_DETACHED)
		return -EPROTO;
	if (i->kind == BUNDLE_MOVED || i->kind == BUNDLE_LEAVING || i->position == r->self)
		r->ops.take(r->arg, RELAY_UP, i);
	else
		(void)dvm_relay_put_to(r, i->position, i); /* it has just been lost, or has moved */
	return 0;
}

int dvm_relay_input(struct dvm_relay *r, uint32_t link, const void *data, size_t len,
		const uint8_t ip[16])
{
	struct bundle_reader in;
	struct bundle_item i;
	int rc;

	bundle_reader_init(&in, data, len);
	while ((rc = bundle_next(&in, &i)) > 0) {
		rc = link == RELAY_UP ? take_down(r, &i) : take_up(r, link, &i, ip);
		if (rc)
			break;
	}
	bundle_reader_free(&in);
	return rc;
}

/* ---- life ---- */

void dvm_relay_free(struct dvm_relay *r)
{
	struct relay_link *l, *next_link;
	struct relay_route *at, *next;

	HASH_ITER(hh, r->links, l, next_link)
		drop_link(r, l);
	HASH_ITER(hh, r->routes, at, next)
		drop_route(r, at);
}
