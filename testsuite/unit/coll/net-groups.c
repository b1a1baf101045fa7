/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of ranks of the step in memory, and what they check. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcoll/coll_private.h"
#include "unit.h"

#define VALUE_MAX 48

uint32_t net_group(struct net *net, const uint32_t *ranks, uint32_t count)
{
	struct net_group *g = &net->groups[net->ngroups];

	assert_true(net->ngroups < NET_GROUPS_MAX);
	g->count = count;
	g->ranks = calloc(count, sizeof(*g->ranks));
	memcpy(g->ranks, ranks, count * sizeof(*ranks));
	g->entered = calloc(count, sizeof(*g->entered));
	g->outcome = calloc(count, sizeof(*g->outcome));
	return net->ngroups++;
}

uint32_t net_group_any(struct net *net, uint32_t sparse)
{
	uint32_t *ranks = calloc(net->nranks, sizeof(*ranks)), count = 0;
	uint32_t one = net_random(net, net->nranks), group;

	for (uint32_t r = 0; r < net->nranks; r++)
		if (r == one || net_random(net, sparse) == 0)
			ranks[count++] = r;
	group = net_group(net, ranks, count);
	free(ranks);
	return group;
}

/* Some have nothing to say. */
static const char *value_of(char out[VALUE_MAX], uint32_t group, uint32_t rank,
			    uint32_t seq)
{
	if ((rank + seq) % 5 == 4)
		out[0] = '\0';
	else
		snprintf(out, VALUE_MAX, "%u.%u.%u;", group, rank, seq);
	return out;
}

static uint32_t index_of(const struct net_group *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->count && g->ranks[i] != rank)
		i++;
	return i;
}

static void check_result(const struct net *net, uint32_t group, uint32_t seq,
			 const struct payload *result)
{
	const struct net_group *g = &net->groups[group];
	char value[VALUE_MAX];
	struct buf all;

	buf_init(&all, SIZE_MAX);
	for (uint32_t i = 0; i < net->nranks; i++) {
		uint32_t rank = layout_order(net->layout)[i];

		if (index_of(g, rank) < g->count)
			buf_puts(&all, value_of(value, group, rank, seq));
	}
	assert_int_equal(result->len, all.len);
	if (all.len)
		assert_memory_equal(result->data, all.data, all.len);
	buf_free(&all);
}

void net_complete_subset(void *arg, uint32_t slot, uint64_t id,
			 struct payload *result, const char *why)
{
	struct net_node *node = arg;
	struct net *net = node->net;
	struct net_group *g = &net->groups[id >> 32];
	uint32_t seq = (uint32_t)id, count;
	uint32_t rank = layout_ranks_at(net->layout, node->position,
					&count)[slot];
	uint8_t *outcome = &g->outcome[index_of(g, rank)][seq];

	net_inside(net, false);
	assert_true(!result == !!why);
	assert_int_equal(*outcome, NET_WAITING);
	*outcome = result ? NET_DONE : NET_FAILED;
	if (result && !net->lenient)
		check_result(net, id >> 32, seq, result);
	if (why) {
		assert_true(why[0] != '\0');
		strcpy(net->reason, why);
	}
	net_inside(net, true);
}

int net_enter_group(struct net *net, uint32_t group, uint32_t i)
{
	struct net_group *g = &net->groups[group];
	const struct coll_subset_name name = {
		.op = 1, .tag = &group, .tag_len = sizeof(group),
		.ranks = g->ranks, .count = g->count,
	};
	uint32_t slot, seq = g->entered[i];
	struct coll *c = net_coll_of(net, g->ranks[i], &slot);
	char text[VALUE_MAX];
	struct payload *value = NULL;
	int rc;

	assert_true(seq < NET_GROUP_SEQ_MAX);
	if (*value_of(text, group, g->ranks[i], seq))
		value = payload_copy(text, strlen(text));
	g->outcome[i][seq] = NET_WAITING;
	net_inside(net, true);
	rc = coll_enter_subset(c, slot, &name, value,
			       (uint64_t)group << 32 | seq);
	net_inside(net, false);
	payload_unref(value);
	if (rc)
		g->outcome[i][seq] = NET_NONE;
	else
		g->entered[i]++;
	return rc;
}

enum net_outcome net_group_outcome(const struct net *net, uint32_t group,
				   uint32_t i, uint32_t seq)
{
	return net->groups[group].outcome[i][seq];
}

void net_groups_assert_settled(const struct net *net)
{
	for (uint32_t g = 0; g < net->ngroups; g++)
		for (uint32_t i = 0; i < net->groups[g].count; i++)
			for (uint32_t s = 0; s < net->groups[g].entered[i]; s++)
				assert_true(net_group_outcome(net, g, i, s) >=
					    NET_DONE);
	/* Nobody remembers anything. */
	for (uint32_t p = 0; p < net->nnodes; p++) {
		const struct coll *c = net->nodes[p].coll;

		assert_int_equal(coll_subsets_pending(c), 0);
		assert_null(c->subsets);
		for (uint32_t i = 0; i <= c->place.children; i++)
			assert_int_equal(c->peers[i].subset_ups, 0);
	}
}

void net_groups_free(struct net *net)
{
	for (uint32_t g = 0; g < net->ngroups; g++) {
		free(net->groups[g].ranks);
		free(net->groups[g].entered);
		free(net->groups[g].outcome);
	}
}
