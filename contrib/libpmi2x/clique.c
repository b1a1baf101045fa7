/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expands "(vector,(first,n,ppn),...)": ppn consecutive ranks on each of n
 * consecutive nodes from `first` on, block after block; when ranks are left
 * over, the vector starts again.
 */
#include "clique.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/decimal.h"

struct block {
	long first;
	long nodes;
	long per_node;
};

/* Walks over the ranks; knows the node of the current one. */
struct walk {
	const char *blocks; /* text of the first block */
	const char *next;   /* text of the block after the current one */
	struct block block;
	long node;          /* within the block */
	long slot;          /* within the node */
};

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static bool read_char(const char **p, char c)
{
	*p = skip_space(*p);
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static bool read_number(const char **p, long *out)
{
	uint64_t value;

	*p = skip_space(*p);
	if (!decimal_take(p, INT32_MAX, &value))
		return false;
	*out = (long)value;
	return true;
}

static bool read_block(const char **p, struct block *b)
{
	return read_char(p, '(') && read_number(p, &b->first) &&
	       read_char(p, ',') && read_number(p, &b->nodes) &&
	       read_char(p, ',') && read_number(p, &b->per_node) &&
	       read_char(p, ')') && b->nodes > 0 && b->per_node > 0;
}

/* Check the whole text once; the walk then relies on it. */
static bool check_blocks(const char *p)
{
	struct block b;

	do {
		if (!read_block(&p, &b))
			return false;
	} while (read_char(&p, ','));
	return read_char(&p, ')');
}

static void enter_block(struct walk *w)
{
	if (!read_char(&w->next, ','))
		w->next = w->blocks;
	read_block(&w->next, &w->block);
	w->node = 0;
}

static int walk_start(struct walk *w, const char *mapping)
{
	const char *p = mapping;

	if (!read_char(&p, '('))
		return -EPROTO;
	p = skip_space(p);
	if (strncmp(p, "vector", 6))
		return -EPROTO;
	p += 6;
	if (!read_char(&p, ',') || !check_blocks(p))
		return -EPROTO;
	memset(w, 0, sizeof(*w));
	w->blocks = p;
	w->next = p;
	read_block(&w->next, &w->block);
	return 0;
}

static long walk_node(const struct walk *w)
{
	return w->block.first + w->node;
}

static void walk_step(struct walk *w)
{
	if (++w->slot < w->block.per_node)
		return;
	w->slot = 0;
	if (++w->node == w->block.nodes)
		enter_block(w);
}

static int node_of(const char *mapping, int rank, long *node)
{
	struct walk w;
	int rc = walk_start(&w, mapping);

	if (rc)
		return rc;
	while (rank-- > 0)
		walk_step(&w);
	*node = walk_node(&w);
	return 0;
}

int clique_find(const char *mapping, int rank, int size, int ranks[], int max)
{
	struct walk w;
	int count = 0;
	long node;
	int rc = node_of(mapping, rank, &node);

	if (!rc)
		rc = walk_start(&w, mapping);
	if (rc)
		return rc;
	for (int r = 0; r < size; r++, walk_step(&w)) {
		if (walk_node(&w) != node)
			continue;
		if (count < max)
			ranks[count] = r;
		count++;
	}
	return count;
}

static int compare_nodes(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

int clique_nodes(const char *mapping, int size)
{
	long *nodes = calloc(size + 1, sizeof(*nodes));
	struct walk w;
	int count = 0;
	int rc = nodes ? walk_start(&w, mapping) : -ENOMEM;

	for (int r = 0; !rc && r < size; r++, walk_step(&w))
		nodes[r] = walk_node(&w);
	if (!rc)
		qsort(nodes, size, sizeof(*nodes), compare_nodes);
	for (int r = 0; !rc && r < size; r++)
		count += r == 0 || nodes[r] != nodes[r - 1];
	free(nodes);
	return rc ? rc : count;
}
