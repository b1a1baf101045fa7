/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts messages and bytes of nodes and links, and their spread. */
#include <stdlib.h>

#include "sim.h"

struct node_count *stats_node(const struct sim *s, uint32_t phase,
			      uint32_t position)
{
	return &s->node_counts[(size_t)phase * s->nhosts + position];
}

struct link_count *stats_link(const struct sim *s, uint32_t phase,
			      uint32_t position, uint32_t slot)
{
	return &s->link_counts[((size_t)phase * s->nhosts + position) *
			       LINK_SLOTS + slot];
}

static struct link_count *link_to(const struct sim_node *n, uint32_t phase,
				  uint32_t to)
{
	if (n->sim->nodes[to].parent == n->position)
		return stats_link(n->sim, phase, to, 1);
	return stats_link(n->sim, phase, n->position, 0);
}

void stats_memory(struct sim_node *n)
{
	if (n->held > n->held_peak)
		n->held_peak = n->held;
	if (n->queued > n->queued_peak)
		n->queued_peak = n->queued;
}

void stats_sent(struct sim_node *n, struct sim_message *m)
{
	struct node_count *c = stats_node(n->sim, m->phase, n->position);
	struct link_count *l = link_to(n, m->phase, m->to);
	struct phase *p = &n->sim->phases[m->phase];

	c->sent++;
	c->bytes_sent += m->wire;
	l->messages++;
	l->bytes += m->wire;
	p->messages++;
	p->bytes += m->wire;
	m->steps = c->steps + 1;
	n->queued += m->wire;
	stats_memory(n);
}

void stats_received(struct sim_node *n, const struct sim_message *m)
{
	struct node_count *c = stats_node(n->sim, m->phase, n->position);
	struct phase *p = &n->sim->phases[m->phase];

	c->received++;
	c->bytes_received += m->wire;
	if (m->steps > c->steps)
		c->steps = m->steps;
	if (c->steps > p->steps)
		p->steps = c->steps;
}

/* ---- spread ---- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void spread_of(uint64_t *values, uint32_t n, struct spread *out)
{
	qsort(values, n, sizeof(*values), compare);
	out->min = values[0];
	out->median = values[n / 2];
	out->max = values[n - 1];
}

static uint64_t messages(const struct node_count *c)
{
	return (uint64_t)c->sent + c->received;
}

static uint64_t bytes(const struct node_count *c)
{
	return c->bytes_sent + c->bytes_received;
}

static uint64_t sent(const struct node_count *c)
{
	return c->sent;
}

static uint64_t bytes_sent(const struct node_count *c)
{
	return c->bytes_sent;
}

static uint64_t values_sent(const struct node_count *c)
{
	return c->values;
}

static void links_of(const struct sim *s, uint32_t phase,
		     struct phase_stats *out)
{
	size_t n = (size_t)s->nhosts * LINK_SLOTS;
	const struct link_count *l = stats_link(s, phase, 0, 0);

	for (size_t i = 0; i < n; i++) {
		out->links += l[i].messages > 0;
		if (l[i].messages > out->link_max.messages)
			out->link_max.messages = l[i].messages;
		if (l[i].bytes > out->link_max.bytes)
			out->link_max.bytes = l[i].bytes;
	}
}

int stats_phase(const struct sim *s, uint32_t phase, struct phase_stats *out)
{
	const struct phase *p = &s->phases[phase];
	const struct {
		uint64_t (*value)(const struct node_count *c);
		struct spread *spread;
	} wanted[] = {
		{ messages, &out->messages }, { bytes, &out->bytes },
		{ sent, &out->sent }, { bytes_sent, &out->bytes_sent },
		{ values_sent, &out->values },
	};
	uint64_t *values = calloc(s->nhosts, sizeof(*values));

	if (!values)
		return -1;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		for (uint32_t n = 0; n < s->nhosts; n++)
			values[n] = wanted[i].value(stats_node(s, phase, n));
		spread_of(values, s->nhosts, wanted[i].spread);
	}
	free(values);
	out->links = 0;
	out->link_max = (struct link_count){ .bytes = 0 };
	links_of(s, phase, out);
	out->path_steps = path_steps_since(p->path, p->first_entry);
	return 0;
}

int stats_memory_spread(const struct sim *s, struct spread *out)
{
	uint64_t *values = calloc(s->nhosts, sizeof(*values));

	if (!values)
		return -1;
	for (uint32_t n = 0; n < s->nhosts; n++)
		values[n] = s->nodes[n].held_peak;
	spread_of(values, s->nhosts, out);
	free(values);
	return 0;
}

uint64_t stats_queue_max(const struct sim *s)
{
	uint64_t most = 0;

	for (uint32_t n = 0; n < s->nhosts; n++)
		if (s->nodes[n].queued_peak > most)
			most = s->nodes[n].queued_peak;
	return most;
}
