/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ordered set of waiting items, as a treap: a search tree whose shape depends on random
 * numbers alone, so that it is flat in all likelihood. Adding, removing and searching take
 * O(log n) steps. The set allocates no memory and calls no system function. One thread at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A member of a set. The fields are not changed while it is one. */
struct order_node {
	struct order_node *left, *right;
	uint64_t number;    /* unique in the set */
	uint64_t since_ms;
	uint64_t oldest_ms; /* the least since_ms of this node and all nodes below it */
	uint32_t limit_s;
	uint32_t weight;    /* of the treap: no node below has a larger one */
};

/* True: `a` is before `b`. They differ. */
typedef bool order_fn(const struct order_node *a, const struct order_node *b);

struct order {
	struct order_node *root;
	order_fn *before;
};

/* Longest limit first, then by number. */
bool order_by_limit(const struct order_node *a, const struct order_node *b);

void order_add(struct order *o, struct order_node *n);
/* Remove a member. */
void order_remove(struct order *o, struct order_node *n);
/* The first member. NULL: the set is empty. */
struct order_node *order_first(const struct order *o);
/* The first member that is not before `at`, which need not be a member; or NULL. */
struct order_node *order_from(const struct order *o, const struct order_node *at);
/* The first member that has waited since `ms` or longer; or NULL. */
struct order_node *order_first_since(const struct order *o, uint64_t ms);
/* The number of members before `at`. O(n). */
size_t order_count_before(const struct order *o, const struct order_node *at);
