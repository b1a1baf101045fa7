/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of forming the ring: first values over PMI, then connections. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "join.h"

#define WAIT_MS 100 /* at once, for connections */

void join_bad(struct join *j, bool group, const char *fmt, ...)
{
	struct pmi2x_ring *r = j->ring;
	va_list args;
	int n;

	if (j->bad[0])
		return;
	j->bad_group = group;
	n = snprintf(j->bad, sizeof(j->bad), "rank %d on node %s: ", r->rank,
		     r->node);
	va_start(args, fmt);
	vsnprintf(j->bad + n, sizeof(j->bad) - n, fmt, args);
	va_end(args);
}

int join_open(struct join *j, int index, char *why)
{
	struct transport_params params = {
		.events = { j->ring, ring_on_message, ring_on_broken },
	};
	const struct transport_ops *ops;

	if (j->open[index])
		return 0;
	ops = transport_find(transport_names[index]);
	if (!ops) {
		snprintf(why, TRANSPORT_REASON_MAX, "not in this build");
		return -ENODEV;
	}
	memcpy(params.nonce, j->nonce, sizeof(params.nonce));
	return ops->open(&j->open[index], &params, why);
}

void join_close(struct join *j, int keep)
{
	for (int i = 0; transport_names[i]; i++) {
		if (!j->open[i] || i == keep)
			continue;
		transport_find(transport_names[i])->close(j->open[i]);
		j->open[i] = NULL;
	}
}

/* ---- the value of the element ---- */

static int find_index(const char *name)
{
	int i = 0;

	while (strcmp(transport_names[i], name))
		i++;
	return i;
}

static void own_value(struct join *j, const char *name, char *value)
{
	struct pmi2x_ring *r = j->ring;
	struct element_value v = { .rank = r->rank };
	char why[TRANSPORT_REASON_MAX] = "";
	int index = find_index(name);

	if (join_open(j, index, why)) {
		join_bad(j, false, "%s: %s", name, why);
		return;
	}
	r->ops = transport_find(name);
	r->transport = j->open[index];
	snprintf(v.transport, sizeof(v.transport), "%s", name);
	memcpy(v.node, r->node, sizeof(v.node));
	memcpy(v.nonce, j->nonce, sizeof(v.nonce));
	r->ops->address(r->transport, v.address);
	value_print(&v, value);
}

/* A dead rank of the node will not be heard of in any other way. */
static bool group_is_well(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	int dead = group_dead(r->group);

	if (dead >= 0)
		join_bad(j, true, "rank %d of the node has exited",
			 r->ranks[dead]);
	return dead < 0;
}

static void leaders_value(struct join *j, char *value)
{
	struct pmi2x_ring *r = j->ring;
	int64_t deadline = clock_ms() + j->connect_ms;

	if (!r->group)
		return;
	while (group_wait_value(r->group, j->round, value) == -EAGAIN) {
		if (!group_is_well(j))
			return;
		if (clock_ms() < deadline)
			continue;
		join_bad(j, true, "rank %d, which leads the node, does not "
			 "join", r->ranks[0]);
		return;
	}
}

/* The value of an element that cannot join, until it is known that it can. */
static void find_value(struct join *j, const char *name, char *value)
{
	struct pmi2x_ring *r = j->ring;

	value_print_absent(r->ranks[0], value);
	if (r->index > 0) {
		leaders_value(j, value);
		return;
	}
	if (name)
		own_value(j, name, value);
	if (r->group)
		group_give_value(r->group, j->round, value);
}

/* ---- the neighbours' values ---- */

static int ring_by_keys(struct join *j, const char *value, char *sides[])
{
	struct pmi2x_ring *r = j->ring;
	int ranks[SIDES] = { (r->rank + r->size - 1) % r->size,
			     (r->rank + 1) % r->size };
	char key[64];
	int len;

	snprintf(key, sizeof(key), "%s-%u-r%u-%d", r->use.keys,
		 r->use.sequence, j->round, r->rank);
	if (r->pmi.put(key, value) || r->pmi.fence())
		return -EIO;
	for (int i = 0; i < SIDES; i++) {
		snprintf(key, sizeof(key), "%s-%u-r%u-%d", r->use.keys,
			 r->use.sequence, j->round, ranks[i]);
		if (r->pmi.get(NULL, ranks[i], key, sides[i], GROUP_VALUE_MAX,
			       &len))
			return -EIO;
	}
	return 0;
}

static int exchange(struct join *j, const char *value, char *sides[])
{
	struct pmi2x_ring *r = j->ring;
	int rank, size;

	if (!r->pmi.ring)
		return ring_by_keys(j, value, sides);
	return r->pmi.ring(value, &rank, &size, sides[SIDE_LEFT],
			   sides[SIDE_RIGHT], GROUP_VALUE_MAX) ? -EIO : 0;
}

/* Tell the leader what this rank has seen at the edges of the node. */
static void meet_in_group(struct join *j, const char *value, char *sides[])
{
	struct pmi2x_ring *r = j->ring;
	struct group_edges edges = { NULL, NULL };
	int64_t deadline = clock_ms() + j->connect_ms;

	if (strcmp(sides[SIDE_LEFT], value))
		edges.left = sides[SIDE_LEFT];
	if (strcmp(sides[SIDE_RIGHT], value))
		edges.right = sides[SIDE_RIGHT];
	group_join(r->group, &edges);
	while (r->index == 0 && group_wait_joined(r->group, j->round)) {
		if (!group_is_well(j))
			return;
		if (clock_ms() > deadline) {
			join_bad(j, true, "not all ranks of the node join");
			return;
		}
	}
}

/* ---- connections ---- */

static void bad_neighbour(struct join *j, enum ring_side side,
			  const char *reason)
{
	const struct neighbour *n = &j->ring->neighbours[side];

	if (!j->bad[0])
		j->blamed = n->rank;
	if (n->rank < 0)
		join_bad(j, false, "%s neighbour: %s", ring_side_name(side),
			 reason);
	else
		join_bad(j, false, "%s neighbour rank %d on node %s: %s",
			 ring_side_name(side), n->rank, n->node, reason);
}

static void late_neighbour(struct join *j, enum ring_side side)
{
	j->late |= !j->bad[0];
	bad_neighbour(j, side, "no connection in time");
}

static void connect_side(struct join *j, const char *name,
			 enum ring_side side, const char *value)
{
	struct pmi2x_ring *r = j->ring;
	struct neighbour *n = &r->neighbours[side];
	char why[TRANSPORT_REASON_MAX] = "";
	struct transport_peer peer;
	struct element_value v;
	int rc = value_parse(&v, value, why);

	memset(n, 0, sizeof(*n));
	n->rank = v.rank;
	memcpy(n->node, v.node, sizeof(n->node));
	if (!rc && strcmp(v.transport, name)) {
		snprintf(why, sizeof(why), "uses %s instead of %s",
			 v.transport, name);
		rc = -EPROTO;
	}
	if (!rc) {
		peer.address = v.address;
		memcpy(peer.nonce, v.nonce, sizeof(peer.nonce));
		rc = r->ops->connect(r->transport, side, &peer, why);
	}
	if (rc)
		bad_neighbour(j, side, why);
}

static bool all_connected(const struct pmi2x_ring *r)
{
	return r->ops->connected(r->transport, SIDE_LEFT) &&
	       r->ops->connected(r->transport, SIDE_RIGHT);
}

static void wait_connected(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	int64_t deadline = clock_ms() + j->connect_ms;

	while (!j->bad[0] && !all_connected(r)) {
		if (!r->ops->progress(r->transport))
			r->ops->wait(r->transport, WAIT_MS);
		for (int side = 0; side < SIDES; side++) {
			struct neighbour *n = &r->neighbours[side];

			if (n->broken)
				bad_neighbour(j, side, n->reason);
			else if (clock_ms() > deadline &&
				 !r->ops->connected(r->transport, side))
				late_neighbour(j, side);
		}
	}
}

static void connect_both(struct join *j, const char *name, char *sides[])
{
	struct pmi2x_ring *r = j->ring;
	const char *left = sides[SIDE_LEFT], *right = sides[SIDE_RIGHT];

	if (r->group) {
		left = group_left(r->group);
		right = group_right(r->group);
	}
	if (!left || !right) {
		join_bad(j, true, "the ranks of the node do not follow each "
			 "other in the ring");
		return;
	}
	connect_side(j, name, SIDE_LEFT, left);
	connect_side(j, name, SIDE_RIGHT, right);
	wait_connected(j);
}

int join_round(struct join *j, const char *name)
{
	struct pmi2x_ring *r = j->ring;
	char value[GROUP_VALUE_MAX];
	char left[GROUP_VALUE_MAX] = "", right[GROUP_VALUE_MAX] = "";
	char *sides[SIDES] = { left, right };
	int rc;

	find_value(j, name, value);
	rc = name ? exchange(j, value, sides) : 0;
	if (!rc && r->group)
		meet_in_group(j, name ? value : "", sides);
	if (!rc && name && r->index == 0 && !j->bad[0])
		connect_both(j, name, sides);
	return rc;
}
