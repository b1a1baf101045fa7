/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a task is, and names of nodes, as bytes. */
#include "dvm/core/dvm_places.h"

#include <stdio.h>
#include <string.h>

#include "libcoll/tree.h"

#define DIGITS_MAX 9 /* of a name's number: it fits 32 bits */

/* ---- runs of nodes ---- */

static void code_run(struct coder *c, struct dvm_run *r)
{
	code_u32(c, &r->node);
	code_u32(c, &r->count);
	code_u32(c, &r->ranks);
	CODE_CHECK(c, r->count && r->ranks && r->count <= LEDGER_NODES_MAX &&
		      r->node < LEDGER_NODES_MAX);
}

static int pack_run(struct buf *b, const struct dvm_run *r)
{
	struct coder c = { .out = b };

	code_run(&c, (struct dvm_run *)r);
	return c.rc;
}

int dvm_run_unpack(struct cursor *in, struct dvm_run *r)
{
	struct coder c = { .in = *in };

	code_run(&c, r);
	return coder_leave(&c, in);
}

/* The longest run from a part of the placement on. */
static struct dvm_run run_from(const struct ledger_placement *p, uint32_t i)
{
	const struct ledger_part *first = &p->parts[i];
	struct dvm_run r = { first->node, 1, first->ranks };

	while (r.count < p->count - i && first[r.count].node == r.node + r.count &&
	       first[r.count].ranks == r.ranks)
		r.count++;
	return r;
}

int dvm_runs_pack(struct buf *b, const struct ledger_placement *p)
{
	struct dvm_run r;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->count; i += r.count) {
		r = run_from(p, i);
		rc = pack_run(b, &r);
	}
	return rc;
}

bool dvm_runs_ok(const struct dvm_bytes *runs, uint32_t nodes, uint32_t ranks)
{
	uint64_t all_nodes = 0, all_ranks = 0;
	struct dvm_run r;
	struct cursor c;

	cursor_init(&c, runs->data, runs->len);
	while (cursor_left(&c)) {
		if (dvm_run_unpack(&c, &r) || r.ranks > ranks)
			return false;
		all_nodes += r.count;
		all_ranks += (uint64_t)r.count * r.ranks;
		if (all_nodes > nodes || all_ranks > ranks)
			return false;
	}
	return all_nodes == nodes && all_ranks == ranks;
}

/* ---- neighbours ---- */

static void code_neighbour(struct coder *c, struct dvm_neighbour *n)
{
	code_u32(c, &n->index);
	code_raw(c, n->address.ip, sizeof(n->address.ip));
	code_u16(c, &n->address.port);
}

int dvm_neighbour_pack(struct buf *b, const struct dvm_neighbour *n)
{
	struct coder c = { .out = b };

	code_neighbour(&c, (struct dvm_neighbour *)n);
	return c.rc;
}

int dvm_neighbour_unpack(struct cursor *in, struct dvm_neighbour *n)
{
	struct coder c = { .in = *in };

	code_neighbour(&c, n);
	return coder_leave(&c, in);
}

uint32_t dvm_neighbours(uint32_t nodes, uint32_t ranks, uint32_t index,
			uint32_t out[DVM_NEIGHBOURS_MAX])
{
	const struct tree_place place = tree_place(nodes, tree_width(ranks), index);
	uint32_t n = 0;

	if (place.parent != TREE_NONE)
		out[n++] = place.parent;
	for (uint32_t i = 0; i < place.children && n < DVM_NEIGHBOURS_MAX; i++)
		out[n++] = tree_child(&place, i).first;
	return n;
}

/* ---- names ---- */

/* The number of digits at the end of a name that are counted up. */
static size_t digits_of(const struct dvm_bytes *name)
{
	const char *text = name->data;
	size_t n = 0;

	while (n < name->len && n < DIGITS_MAX && text[name->len - n - 1] >= '0' &&
	       text[name->len - n - 1] <= '9')
		n++;
	return n;
}

/* These digits as a number. */
static uint32_t number_of(const struct dvm_bytes *name, size_t digits)
{
	const char *text = (const char *)name->data + name->len - digits;
	uint32_t number = 0;

	for (size_t i = 0; i < digits; i++)
		number = 10 * number + (uint32_t)(text[i] - '0');
	return number;
}

bool dvm_name_of_run(const struct dvm_name_run *r, uint32_t i, char out[DVM_TEXT_MAX])
{
	size_t digits = digits_of(&r->first);
	int prefix = (int)(r->first.len - digits), n;

	if (i >= r->count || (i && !digits) || r->first.len >= DVM_TEXT_MAX)
		return false;
	if (!digits)
		n = snprintf(out, DVM_TEXT_MAX, "%.*s", prefix,
			     prefix ? (const char *)r->first.data : "");
	else
		n = snprintf(out, DVM_TEXT_MAX, "%.*s%0*u", prefix,
			     (const char *)r->first.data, (int)digits,
			     number_of(&r->first, digits) + i);
	return n < DVM_TEXT_MAX;
}

static bool run_ok(const struct dvm_name_run *r)
{
	char last[DVM_TEXT_MAX];

	return r->count && r->count <= LEDGER_NODES_MAX &&
	       (!r->first.len || !memchr(r->first.data, '\0', r->first.len)) &&
	       dvm_name_of_run(r, r->count - 1, last);
}

static void code_name_run(struct coder *c, struct dvm_name_run *r)
{
	code_u32(c, &r->count);
	dvm_code_bytes(c, &r->first, DVM_TEXT_MAX);
	CODE_CHECK(c, run_ok(r));
}

int dvm_name_run_pack(struct buf *b, const struct dvm_name_run *r)
{
	struct coder c = { .out = b };

	code_name_run(&c, (struct dvm_name_run *)r);
	return c.rc;
}

int dvm_name_run_unpack(struct cursor *in, struct dvm_name_run *r)
{
	struct coder c = { .in = *in };

	code_name_run(&c, r);
	return coder_leave(&c, in);
}

uint32_t dvm_names_count(const struct dvm_bytes *names)
{
	struct dvm_name_run r;
	uint64_t count = 0;
	struct cursor c;

	cursor_init(&c, names->data, names->len);
	while (cursor_left(&c)) {
		if (dvm_name_run_unpack(&c, &r))
			return 0;
		count += r.count;
		if (count > LEDGER_NODES_MAX)
			return 0;
	}
	return (uint32_t)count;
}
