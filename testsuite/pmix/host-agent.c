/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's side that the agents have: collectives and look-ups, in a star. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "libpmi/pmix_nspace.h"

static struct node *node_of_rank(struct host *h, uint32_t rank)
{
	uint32_t position;

	if (rank >= layout_ranks(h->layout))
		return NULL;
	position = layout_rank_position(h->layout, rank);
	return position < h->options->real ? &h->nodes[position] : NULL;
}

/* ---- namespace ---- */

static uint32_t read_apps(const char *text, uint32_t sizes[16])
{
	uint32_t n = 0;

	while (text && *text && n < 16) {
		char *end;

		sizes[n++] = (uint32_t)strtoul(text, &end, 10);
		text = *end == ',' ? end + 1 : end;
	}
	return n;
}

static int send_nspace(struct host *h, struct node *n)
{
	uint32_t sizes[16], napps = read_apps(h->options->apps, sizes);
	const struct pmix_nspace space = {
		.name = NSPACE_NAME,
		.layout = h->layout,
		.position = n->position,
		.node_names = (const char **)h->names,
		.universe_size = layout_ranks(h->layout),
		.app_sizes = napps ? sizes : NULL,
		.napps = napps,
		.uid = getuid(),
		.gid = getgid(),
		.topology = h->options->topology,
	};
	struct pmix_msg m = { .type = PMIX_MSG_NSPACE, .nspace = 1,
			      .rank = PMIX_NO_RANK };
	struct buf b;
	int rc;

	buf_init(&b, SIZE_MAX);
	rc = pmix_nspace_pack(&b, &space);
	m.data = b.data;
	m.len = b.len;
	rc = rc ? rc : link_send(&n->link, &m);
	buf_free(&b);
	return rc;
}

/* ---- collectives ---- */

static bool has_member_at(const struct host *h, const struct gather *g,
			  uint32_t position)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (layout_rank_position(h->layout, g->members[i]) == position)
			return true;
	return !g->members;
}

static bool is_in(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
	uint32_t i = 0;

	while (i < count && ranks[i] != rank)
		i++;
	return i < count;
}

static bool is_same(const struct gather *g, const struct pmix_msg *m,
		    const uint32_t *members, uint32_t count)
{
	return g->op == m->op && strlen(g->name) == m->text_len &&
	       !memcmp(g->name, m->text, m->text_len) && g->count == count &&
	       (!count || !memcmp(g->members, members, count * sizeof(*members)));
}

static struct gather *find_gather(struct host *h, uint32_t position,
				  const struct pmix_msg *m, const uint32_t *members,
				  uint32_t count)
{
	struct gather *g = h->gathers;

	while (g && (g->ids[position] || !is_same(g, m, members, count)))
		g = g->next;
	return g;
}

static struct gather *add_gather(struct host *h, const struct pmix_msg *m,
				 uint32_t *members, uint32_t count)
{
	struct gather *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->op = m->op;
	snprintf(g->name, sizeof(g->name), "%.*s", (int)m->text_len, m->text);
	g->members = members;
	g->count = count;
	g->ids = calloc(h->options->real, sizeof(*g->ids));
	g->given = calloc(h->options->real, sizeof(*g->given));
	if (!g->ids || !g->given)
		abort();
	for (uint32_t p = 0; p < h->options->real; p++) {
		buf_init(&g->given[p], SIZE_MAX);
		g->expected += has_member_at(h, g, p);
	}
	g->next = h->gathers;
	h->gathers = g;
	return g;
}

static void free_gather(struct host *h, struct gather *g)
{
	struct gather **at = &h->gathers;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	for (uint32_t p = 0; p < h->options->real; p++)
		buf_free(&g->given[p]);
	free(g->members);
	free(g->given);
	free(g->ids);
	free(g);
}

/* Adds the data of nodes that are only claimed: the same as the first one. */
static void add_claimed(const struct host *h, const struct gather *g, struct buf *all)
{
	for (uint32_t p = h->options->real; p < h->options->nodes; p++) {
		uint32_t count, i = 0;
		const uint32_t *ranks = layout_ranks_at(h->layout, p, &count);
		struct pmix_entry e;
		struct cursor c;

		cursor_init(&c, g->given[0].data, g->given[0].len);
		while (i < count && pmix_entry_next(&c, &e)) {
			e.rank = ranks[i++];
			if (pmix_entry_pack(all, &e))
				abort();
		}
	}
}

static int end_gather(struct host *h, struct gather *g, int status)
{
	struct pmix_msg m = { .type = PMIX_MSG_ENDED, .nspace = 1,
			      .rank = PMIX_NO_RANK, .status = status };
	struct buf all;
	int rc = 0;

	buf_init(&all, SIZE_MAX);
	for (uint32_t p = 0; p < h->options->real && !status; p++)
		if (buf_append(&all, g->given[p].data, g->given[p].len))
			abort();
	if (!status)
		add_claimed(h, g, &all);
	m.data = all.data;
	m.len = all.len;
	for (uint32_t p = 0; p < h->options->real && !rc; p++) {
		m.id = g->ids[p];
		if (m.id)
			rc = link_send(&h->nodes[p].link, &m);
	}
	buf_free(&all);
	free_gather(h, g);
	h->fences++;
	return rc;
}

/* An entry of each own member there is. Empty ones are not passed on. */
static int take_entries(struct gather *g, uint32_t position, struct cursor *c)
{
	struct pmix_entry e;

	while (pmix_entry_next(c, &e))
		if (e.len && pmix_entry_pack(&g->given[position], &e))
			return -ENOMEM;
	return cursor_done(c) ? 0 : -EPROTO;
}

static bool has_gone_member(const struct host *h, const struct gather *g)
{
	for (uint32_t r = 0; r < layout_ranks(h->layout); r++)
		if (h->ranks[r].gone &&
		    (!g->members || is_in(g->members, g->count, r)))
			return true;
	return false;
}

static int enter(struct host *h, struct node *n, const struct pmix_msg *m)
{
	struct gather *g;
	struct cursor c;
	uint32_t *members, count;
	int rc;

	cursor_init(&c, m->data, m->len);
	rc = pmix_members_unpack(&c, &members, &count, layout_ranks(h->layout));
	if (rc || !m->id || m->op < PMIX_OP_FENCE || m->op >= PMIX_OP_END)
		return -EPROTO;
	g = find_gather(h, n->position, m, members, count);
	if (g)
		free(members);
	else
		g = add_gather(h, m, members, count);
	g->ids[n->position] = m->id;
	rc = take_entries(g, n->position, &c);
	if (rc)
		return rc;
	if (has_gone_member(h, g))
		return end_gather(h, g, -ECONNRESET);
	return ++g->entered == g->expected ? end_gather(h, g, 0) : 0;
}

void agent_rank_gone(struct host *h, uint32_t rank)
{
	const struct pmix_msg m = { .type = PMIX_MSG_GONE, .nspace = 1, .rank = rank,
				    .number = 1 };

	h->ranks[rank].gone = true;
	(void)link_send(&node_of_rank(h, rank)->link, &m);
	while (h->gathers)
		(void)end_gather(h, h->gathers, -ECONNRESET);
}

/* ---- look-ups ---- */

static int answer_not_found(struct node *n, const struct pmix_msg *m)
{
	const struct pmix_msg a = { .type = PMIX_MSG_FETCHED, .nspace = 1, .id = m->id,
				    .rank = m->rank, .status = -ENOENT };

	return link_send(&n->link, &a);
}

static int fetch(struct host *h, struct node *n, const struct pmix_msg *m)
{
	struct node *owner = node_of_rank(h, m->rank);
	struct look_up *l = calloc(1, sizeof(*l));
	struct pmix_msg ask = *m;

	if (!l)
		return -ENOMEM;
	if (++h->look_ups_made > h->options->look_ups_max) {
		printf("too many look-ups\n");
		host_end(h, 4);
	}
	if (!owner) {
		free(l);
		return answer_not_found(n, m);
	}
	*l = (struct look_up){ h->look_ups, ++h->last_id, m->id, n->position };
	h->look_ups = l;
	ask.id = l->id;
	return link_send(&owner->link, &ask);
}

static int fetched(struct host *h, const struct pmix_msg *m)
{
	struct look_up **at = &h->look_ups, *l;
	struct pmix_msg answer = *m;
	int rc;

	while (*at && (*at)->id != m->id)
		at = &(*at)->next;
	l = *at;
	if (!l)
		return -EPROTO;
	*at = l->next;
	answer.id = l->asker_id;
	rc = link_send(&h->nodes[l->asker].link, &answer);
	free(l);
	return rc;
}

/* ---- names ---- */

int agent_answer_names(void *arg, const struct name_asker *to,
		       const struct names_answer *a)
{
	struct node *n = to->link;
	struct pmix_msg m = { .type = PMIX_MSG_NAMED, .nspace = 1, .id = to->id,
			      .rank = PMIX_NO_RANK };
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	if (names_pack_answer(&b, a))
		abort();
	m.data = b.data;
	m.len = b.len;
	(void)link_send(&n->link, &m);
	buf_free(&b);
	return 0;
}

static int names(struct host *h, struct node *n, const struct pmix_msg *m)
{
	const struct name_asker who = {
		.link = n,
		.id = (uint32_t)m->id,
		.proc = { NSPACE_NAME, h->names[n->position], m->rank },
	};

	return name_store_ask(h->name_store, &who, m->data, m->len);
}

/* Nobody is here who could. */
static int refuse_spawn(struct node *n, const struct pmix_msg *m)
{
	const struct pmix_msg a = { .type = PMIX_MSG_SPAWNED, .nspace = 1, .id = m->id,
				    .rank = PMIX_NO_RANK, .status = -ENOTSUP };

	return link_send(&n->link, &a);
}

/* ---- */

static int tell_others(struct host *h, const struct node *from,
		       const struct pmix_msg *m)
{
	int rc = 0;

	for (uint32_t p = 0; p < h->options->real && !rc; p++)
		if (p != from->position)
			rc = link_send(&h->nodes[p].link, m);
	return rc;
}

static int aborted(struct host *h, struct node *n, const struct pmix_msg *m)
{
	const struct pmix_msg a = { .type = PMIX_MSG_ABORTED, .id = m->id };

	printf("rank %u aborts with %d: %.*s\n", m->rank, m->status,
	       (int)m->text_len, m->text);
	host_end(h, m->status & 0xff ? m->status & 0xff : 1);
	return link_send(&n->link, &a);
}

int agent_message(struct host *h, struct node *n, const struct pmix_msg *m)
{
	switch (m->type) {
	case PMIX_MSG_HELLO:
		return send_nspace(h, n);
	case PMIX_MSG_READY:
		n->ready = true;
		return 0;
	case PMIX_MSG_REFUSED:
		printf("refused: %.*s\n", (int)m->text_len, m->text);
		host_end(h, 3);
		return 0;
	case PMIX_MSG_CONNECTED:
		return 0;
	case PMIX_MSG_FINALIZED:
		h->ranks[m->rank].finalized = true;
		return 0;
	case PMIX_MSG_ENTER:
		return enter(h, n, m);
	case PMIX_MSG_FETCH:
		return fetch(h, n, m);
	case PMIX_MSG_FETCHED:
		return fetched(h, m);
	case PMIX_MSG_NAMES:
		return names(h, n, m);
	case PMIX_MSG_SPAWN:
		return refuse_spawn(n, m);
	case PMIX_MSG_ABORT:
		return aborted(h, n, m);
	case PMIX_MSG_EVENT:
		return tell_others(h, n, m);
	default:
		return -EPROTO;
	}
}
