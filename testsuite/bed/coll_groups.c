/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of ranks of the bed, and the results that they expect. */
#include "coll.h"

#include <stdlib.h>
#include <string.h>

uint32_t bed_group(struct bed *b, const uint32_t *ranks, uint32_t count)
{
	struct bed_group *g = &b->groups[b->ngroups];

	bed_must(b, b->ngroups < b->o.groups_max, "too many groups for the bed");
	g->count = count;
	g->ranks = calloc(count, sizeof(*g->ranks));
	memcpy(g->ranks, ranks, count * sizeof(*ranks));
	g->entered = calloc(count, sizeof(*g->entered));
	g->outcome = calloc(count, sizeof(*g->outcome));
	return b->ngroups++;
}

uint32_t bed_group_any(struct bed *b, uint32_t sparse)
{
	uint32_t *ranks = calloc(b->nranks, sizeof(*ranks)), count = 0;
	uint32_t one = bed_random(b, b->nranks), group;

	for (uint32_t r = 0; r < b->nranks; r++)
		if (r == one || bed_random(b, sparse) == 0)
			ranks[count++] = r;
	group = bed_group(b, ranks, count);
	free(ranks);
	return group;
}

uint32_t bed_group_index(const struct bed_group *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->count && g->ranks[i] != rank)
		i++;
	return i;
}

static const char *value_of(const struct bed *b, char out[BED_VALUE_MAX],
			    uint32_t group, uint32_t rank, uint32_t seq)
{
	return bed_value(b, out, (const char[2]){ 'A' + group % 26 }, rank, seq);
}

static void check_result(const struct bed *b, uint32_t group, uint32_t seq,
			 const struct payload *result)
{
	const struct bed_group *g = &b->groups[group];
	char value[BED_VALUE_MAX];
	struct buf all;

	for (uint32_t i = 0; i < g->count; i++)
		bed_must(b, g->entered[i] > seq,
			 "success before all of a group have entered");
	buf_init(&all, SIZE_MAX);
	for (uint32_t i = 0; i < b->nranks; i++) {
		uint32_t rank = layout_order(b->layout)[i];

		if (bed_group_index(g, rank) < g->count)
			buf_puts(&all, value_of(b, value, group, rank, seq));
	}
	bed_must(b, bed_is_text(result, buf_cstr(&all)),
		 "a rank got a wrong result of a group");
	buf_free(&all);
}

/* `id`: which collective of which group. */
void bed_complete_subset(void *arg, uint32_t slot, uint64_t id,
			 struct payload *result, const char *why)
{
	struct bed_node *n = arg;
	struct bed *b = n->bed;
	struct bed_group *g = &b->groups[id >> 32];
	uint32_t seq = (uint32_t)id, count, i;
	const uint32_t *ranks = layout_ranks_at(b->layout, n->position, &count);

	bed_inside(b, false);
	bed_must(b, b->ready && slot < count && !result == !!why,
		 "a collective of a group ended without result and reason");
	i = bed_group_index(g, ranks[slot]);
	bed_must(b, i < g->count && g->outcome[i][seq] == BED_WAITING,
		 "a collective of a group ended that was not entered");
	if (result && !b->o.alone)
		check_result(b, id >> 32, seq, result);
	g->outcome[i][seq] = result ? BED_DONE : BED_FAILED;
	if (why)
		bed_note_reason(b, why);
	bed_inside(b, true);
}

int bed_enter_group(struct bed *b, uint32_t group, uint32_t i)
{
	struct bed_group *g = &b->groups[group];
	const struct coll_subset_name name = {
		.op = 1, .tag = &group, .tag_len = sizeof(group),
		.ranks = g->ranks, .count = g->count,
	};
	uint32_t slot, seq = g->entered[i];
	struct coll *c = bed_coll_of(b, g->ranks[i], &slot);
	char text[BED_VALUE_MAX];
	struct payload *value;
	int rc;

	bed_must(b, seq < BED_GROUP_SEQ_MAX, "too many collectives of a group");
	value = bed_payload(value_of(b, text, group, g->ranks[i], seq));
	g->outcome[i][seq] = BED_WAITING;
	g->entered[i]++;
	bed_inside(b, true);
	rc = coll_enter_subset(c, slot, &name, value, (uint64_t)group << 32 | seq);
	bed_inside(b, false);
	payload_unref(value);
	if (rc) {
		g->outcome[i][seq] = BED_NONE;
		g->entered[i]--;
	}
	return rc;
}

enum bed_outcome bed_group_outcome(const struct bed *b, uint32_t group, uint32_t i,
				   uint32_t seq)
{
	return b->groups[group].outcome[i][seq];
}

void bed_groups_free(struct bed *b)
{
	for (uint32_t g = 0; g < b->ngroups; g++) {
		free(b->groups[g].ranks);
		free(b->groups[g].entered);
		free(b->groups[g].outcome);
	}
	free(b->groups);
}
