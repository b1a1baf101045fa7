/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordered sets, as treaps. */
#include "dvm/core/order.h"

bool order_by_limit(const struct order_node *a, const struct order_node *b)
{
	return a->limit_s != b->limit_s ? a->limit_s > b->limit_s :
					  a->number < b->number;
}

static uint64_t least(const struct order_node *n, uint64_t ms)
{
	return n && n->oldest_ms < ms ? n->oldest_ms : ms;
}

static struct order_node *updated(struct order_node *n)
{
	n->oldest_ms = least(n->left, least(n->right, n->since_ms));
	return n;
}

/* Numbers that follow each other give weights in no order (splitmix64). */
static uint32_t weight_of(uint64_t number)
{
	uint64_t z = number + UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(z >> 32);
}

/* ---- adding ---- */

/* Nodes before `at` come to *left, the rest to *right. */
static void split(order_fn *before, struct order_node *t, const struct order_node *at,
		  struct order_node **left, struct order_node **right)
{
	if (!t) {
		*left = *right = NULL;
	} else if (before(t, at)) {
		split(before, t->right, at, &t->right, right);
		*left = updated(t);
	} else {
		split(before, t->left, at, left, &t->left);
		*right = updated(t);
	}
}

static struct order_node *add(order_fn *before, struct order_node *t, struct order_node *n)
{
	if (!t || n->weight > t->weight) {
		split(before, t, n, &n->left, &n->right);
		return updated(n);
	}
	if (before(n, t))
		t->left = add(before, t->left, n);
	else
		t->right = add(before, t->right, n);
	return updated(t);
}

void order_add(struct order *o, struct order_node *n)
{
	n->weight = weight_of(n->number);
	o->root = add(o->before, o->root, n);
}

/* ---- removing ---- */

/* All of `left` is before all of `right`. */
static struct order_node *merge(struct order_node *left, struct order_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->weight > right->weight) {
		left->right = merge(left->right, right);
		return updated(left);
	}
	right->left = merge(left, right->left);
	return updated(right);
}

static struct order_node *without(order_fn *before, struct order_node *t,
				  const struct order_node *n)
{
	if (t == n)
		return merge(t->left, t->right);
	if (before(n, t))
		t->left = without(before, t->left, n);
	else
		t->right = without(before, t->right, n);
	return updated(t);
}

void order_remove(struct order *o, struct order_node *n)
{
	o->root = without(o->before, o->root, n);
}

/* ---- searching ---- */

struct order_node *order_first(const struct order *o)
{
	struct order_node *n = o->root;

	while (n && n->left)
		n = n->left;
	return n;
}

struct order_node *order_from(const struct order *o, const struct order_node *at)
{
	struct order_node *n = o->root, *found = NULL;

	while (n)
		if (n != at && o->before(n, at)) {
			n = n->right;
		} else {
			found = n;
			n = n->left;
		}
	return found;
}

struct order_node *order_first_since(const struct order *o, uint64_t ms)
{
	struct order_node *n = o->root;

	if (!n || n->oldest_ms > ms)
		return NULL;
	for (;;)
		if (n->left && n->left->oldest_ms <= ms)
			n = n->left;
		else if (n->since_ms <= ms)
			return n;
		else
			n = n->right;
}

static size_t count_before(const struct order *o, const struct order_node *t,
			   const struct order_node *at)
{
	if (!t)
		return 0;
	if (t != at && o->before(t, at))
		return 1 + count_before(o, t->left, at) + count_before(o, t->right, at);
	return count_before(o, t->left, at);
}

size_t order_count_before(const struct order *o, const struct order_node *at)
{
	return count_before(o, o->root, at);
}
