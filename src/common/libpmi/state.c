/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire form of a node's state. */
#include "libpmi/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUN_BYTES (4 + 4 + 1 + 1 + 4 * COLL_KINDS)
#define LINK_BYTES (4 + 1 + 1 + 8)

static int pack_run(struct buf *b, const struct state_run *r)
{
	int rc = pack_u32(b, r->first);

	rc = rc ? rc : pack_u32(b, r->last);
	rc = rc ? rc : pack_u8(b, r->phase);
	rc = rc ? rc : pack_u8(b, r->stopped);
	for (int k = 0; !rc && k < COLL_KINDS; k++)
		rc = pack_u32(b, r->entered[k]);
	return rc;
}

static int pack_link(struct buf *b, const struct state_link *l)
{
	int rc = pack_u32(b, l->position);

	rc = rc ? rc : pack_u8(b, l->is_parent);
	rc = rc ? rc : pack_u8(b, l->state);
	return rc ? rc : pack_u64(b, l->queued);
}

int state_pack(struct buf *b, const struct node_state *s)
{
	int rc = pack_u32(b, s->age_ms);

	rc = rc ? rc : pack_u32(b, s->requests);
	for (int k = 0; !rc && k < COLL_KINDS; k++)
		rc = pack_u32(b, s->ended[k]);
	rc = rc ? rc : pack_u32(b, s->nruns);
	for (uint32_t i = 0; !rc && i < s->nruns; i++)
		rc = pack_run(b, &s->runs[i]);
	rc = rc ? rc : pack_u32(b, s->nlinks);
	for (uint32_t i = 0; !rc && i < s->nlinks; i++)
		rc = pack_link(b, &s->links[i]);
	return rc;
}

static void unpack_run(struct cursor *c, struct state_run *r)
{
	r->first = unpack_u32(c);
	r->last = unpack_u32(c);
	r->phase = unpack_u8(c);
	r->stopped = unpack_u8(c);
	for (int k = 0; k < COLL_KINDS; k++)
		r->entered[k] = unpack_u32(c);
	if (r->phase >= STATE_PHASES || r->last < r->first)
		c->failed = true;
}

static void unpack_link(struct cursor *c, struct state_link *l)
{
	l->position = unpack_u32(c);
	l->is_parent = unpack_u8(c);
	l->state = unpack_u8(c);
	l->queued = unpack_u64(c);
	if (l->state >= STATE_LINK_STATES)
		c->failed = true;
}

/* A count of things that are really there; memory for them, or NULL. */
static void *unpack_count(struct cursor *c, uint32_t max, size_t bytes,
			  size_t size, uint32_t *count)
{
	*count = unpack_u32(c);
	if (*count > max || *count > cursor_left(c) / bytes)
		c->failed = true;
	if (!cursor_ok(c)) {
		*count = 0;
		return NULL;
	}
	return calloc(*count + 1, size);
}

int state_unpack(const void *data, size_t len, struct node_state *s)
{
	struct cursor c;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	cursor_init(&c, data, len);
	s->age_ms = unpack_u32(&c);
	s->requests = unpack_u32(&c);
	for (int k = 0; k < COLL_KINDS; k++)
		s->ended[k] = unpack_u32(&c);
	s->runs = unpack_count(&c, STATE_RUNS_MAX, RUN_BYTES,
			       sizeof(*s->runs), &s->nruns);
	for (uint32_t i = 0; s->runs && i < s->nruns; i++)
		unpack_run(&c, &s->runs[i]);
	s->links = s->runs ? unpack_count(&c, STATE_LINKS_MAX, LINK_BYTES,
					  sizeof(*s->links), &s->nlinks) :
			     NULL;
	for (uint32_t i = 0; s->links && i < s->nlinks; i++)
		unpack_link(&c, &s->links[i]);
	if (!cursor_done(&c))
		rc = -EPROTO;
	else if (!s->links)
		rc = -ENOMEM;
	if (rc)
		state_free(s);
	return rc;
}

void state_free(struct node_state *s)
{
	free(s->runs);
	free(s->links);
	memset(s, 0, sizeof(*s));
}

static bool continues(const struct state_run *run, const struct state_run *rank)
{
	return rank->first == run->last + 1 && rank->phase == run->phase &&
	       rank->stopped == run->stopped &&
	       !memcmp(rank->entered, run->entered, sizeof(run->entered));
}

void state_add_rank(struct node_state *s, const struct state_run *rank)
{
	struct state_run *run = s->nruns ? &s->runs[s->nruns - 1] : NULL;

	if (run && continues(run, rank))
		run->last = rank->last;
	else
		s->runs[s->nruns++] = *rank;
}

const char *state_phase_name(enum state_phase phase)
{
	static const char *const names[STATE_PHASES] = {
		[STATE_ABSENT] = "not started",
		[STATE_FRESH] = "before init",
		[STATE_STARTING] = "in init",
		[STATE_ACTIVE] = "active",
		[STATE_FINALIZED] = "finalized",
		[STATE_GONE] = "ended",
	};

	return names[phase];
}

const char *state_link_name(enum state_link_state state)
{
	static const char *const names[STATE_LINK_STATES] = {
		[STATE_LINK_WAITING] = "not connected",
		[STATE_LINK_UP] = "up",
		[STATE_LINK_LEFT] = "has left",
		[STATE_LINK_LOST] = "lost",
	};

	return names[state];
}
