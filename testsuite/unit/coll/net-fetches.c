/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetches in the step in memory: what hosts are asked, and what they are told. */
#include "net.h"

#include <stdio.h>

#include "libcoll/coll_private.h"
#include "unit.h"

#define VALUE_MAX 48

static const char *key_of(char out[VALUE_MAX], uint32_t position, uint32_t rank)
{
	snprintf(out, VALUE_MAX, "%u of %u", rank, position);
	return out;
}

int net_fetch(struct net *net, uint32_t position, uint32_t rank)
{
	uint32_t i = net->nfetches;
	char key[VALUE_MAX];
	const struct coll_fetch what = {
		.op = 3, .rank = rank, .timeout = position,
		.key = key_of(key, position, rank), .key_len = strlen(key),
	};
	int rc;

	assert_true(i < NET_FETCHES_MAX);
	net->fetches[i] = (struct net_fetch){ position, rank, NET_WAITING };
	net->nfetches++;
	net_inside(net, true);
	rc = coll_fetch(net->nodes[position].coll, &what, i);
	net_inside(net, false);
	if (rc)
		net->nfetches--;
	return rc;
}

int net_fetch_asked(void *arg, uint64_t token, const struct coll_fetch *what)
{
	struct net_node *node = arg;
	struct net *net = node->net;
	char key[VALUE_MAX];

	net_inside(net, false);
	assert_true(net->nasked < NET_FETCHES_MAX);
	assert_int_equal(what->op, 3);
	assert_int_equal(layout_rank_position(net->layout, what->rank),
			 node->position);
	key_of(key, what->timeout, what->rank);
	assert_int_equal(what->key_len, strlen(key));
	assert_memory_equal(what->key, key, what->key_len);
	net->asked[net->nasked++] = (struct net_asked){
		node->position, what->timeout, what->rank, token
	};
	net_inside(net, true);
	return 0;
}

/* The value is the key: whom it is for, and whose it is. */
int net_answer(struct net *net, uint32_t i, enum coll_fetch_status status)
{
	struct net_asked a = net->asked[i];
	struct coll_fetched end = { .status = status, .why = "it has its reasons" };
	char key[VALUE_MAX];
	int rc;

	net->asked[i] = net->asked[--net->nasked];
	key_of(key, a.from, a.rank);
	if (status == COLL_FETCH_FOUND)
		end.value = payload_copy(key, strlen(key));
	net_inside(net, true);
	rc = coll_fetch_answer(net->nodes[a.position].coll, a.token, &end);
	net_inside(net, false);
	payload_unref(end.value);
	return rc;
}

void net_fetched(void *arg, uint64_t id, const struct coll_fetched *end)
{
	struct net *net = ((struct net_node *)arg)->net;
	struct net_fetch *f = &net->fetches[id];
	bool found = end->status == COLL_FETCH_FOUND;
	char key[VALUE_MAX];

	net_inside(net, false);
	assert_int_equal(f->outcome, NET_WAITING);
	f->outcome = found ? NET_DONE : NET_FAILED;
	if (found) {
		key_of(key, f->position, f->rank);
		assert_int_equal(end->value->len, strlen(key));
		assert_memory_equal(end->value->data, key, strlen(key));
	} else {
		assert_null(end->value);
		assert_true(end->why[0] != '\0');
		strcpy(net->reason, end->why);
	}
	net_inside(net, true);
}

void net_fetches_assert_settled(const struct net *net)
{
	for (uint32_t i = 0; i < net->nfetches; i++)
		assert_int_not_equal(net->fetches[i].outcome, NET_WAITING);
	for (uint32_t p = 0; p < net->nnodes; p++) {
		const struct coll *c = net->nodes[p].coll;

		assert_int_equal(coll_fetches_pending(c), 0);
		assert_null(c->fetches);
		for (uint32_t i = 0; i <= c->place.children; i++)
			assert_int_equal(c->peers[i].fetches, 0);
	}
}
