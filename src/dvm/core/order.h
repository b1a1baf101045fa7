/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ordered set of things that wait, as a treap: a search tree whose shape depends on
 * numbers alone, so that it is flat in all likelihood. Adding, removing and searching take
 * O(log n) steps. It allocates nothing. Calls no system function; one thread at a time.
 */
#ifndef PMI2X_DVM_ORDER_H
#define PMI2X_DVM_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of what is in the set. The fields are not changed while it is. */
struct order_node {
	struct order_node *left, *right;
	uint64_t number;    /* no two in a set have the same */
	uint64_t since_ms;
	uint64_t oldest_ms; /* the least since_ms of this node and all below it */
	uint32_t limit_s;
	uint32_t weight;    /* of the treap: no node below has a larger one */
};

/* Is `a` before `b`? They differ. */
typedef bool order_fn(const struct order_node *a, const struct order_node *b);

struct order {
	struct order_node *root;
	order_fn *before;
};

/* Longest limit first, then by number. */
bool order_by_limit(const struct order_node *a, const struct order_node *b);

void order_add(struct order *o, struct order_node *n);
/* One that is in the set. */
void order_remove(struct order *o, struct order_node *n);
/* NULL: the set is empty. */
struct order_node *order_first(const struct order *o);
/* The first that is not before `at`, which need not be in the set; or NULL. */
struct order_node *order_from(const struct order *o, const struct order_node *at);
/* The first that has waited since `ms` or longer; or NULL. */
struct order_node *order_first_since(const struct order *o, uint64_t ms);
/* How many there are before `at`. O(n). */
size_t order_count_before(const struct order *o, const struct order_node *at);

#endif
