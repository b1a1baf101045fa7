/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the DVM's nodes, as the head sends them: runs, in order of the positions. */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

void node_names_forget(struct dvm_node *n)
{
	for (size_t i = 0; i < n->nruns; i++)
		free(n->runs[i].name);
	free(n->runs);
	n->runs = NULL;
	n->nruns = n->runs_cap = 0;
}

/* The position behind all known ones. */
static uint32_t end_of(const struct dvm_node *n)
{
	const struct name_run *last = n->nruns ? &n->runs[n->nruns - 1] : NULL;

	return last ? last->first + last->count : 0;
}

static int add_run(struct dvm_node *n, const struct dvm_name_run *r)
{
	struct name_run *run;

	if (array_grow(&n->runs, n->nruns, &n->runs_cap, sizeof(*n->runs)))
		return -ENOMEM;
	run = &n->runs[n->nruns];
	run->name = strndup(r->first.data, r->first.len);
	if (!run->name)
		return -ENOMEM;
	run->first = end_of(n);
	run->count = r->count;
	n->nruns++;
	return 0;
}

int node_names_add(struct dvm_node *n, const struct dvm_nodes *m)
{
	struct dvm_name_run r;
	struct cursor c;
	int rc = 0;

	if (!m->first) /* also of another head, which sends all again */
		node_names_forget(n);
	if (m->first != end_of(n))
		return -EPROTO;
	cursor_init(&c, m->names.data, m->names.len);
	while (!rc && cursor_left(&c)) {
		rc = dvm_name_run_unpack(&c, &r);
		rc = rc ? rc : add_run(n, &r);
	}
	return rc;
}

/* The run of a known position. */
static const struct name_run *find_run(const struct dvm_node *n, uint32_t node)
{
	size_t low = 0, high = n->nruns;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (n->runs[middle].first <= node)
			low = middle;
		else
			high = middle;
	}
	return &n->runs[low];
}

bool dvm_node_name(const struct dvm_node *n, uint32_t node, char out[DVM_TEXT_MAX])
{
	const struct name_run *run = node < end_of(n) ? find_run(n, node) : NULL;
	struct dvm_name_run r;

	if (!run)
		return false;
	r = (struct dvm_name_run){ run->count, { run->name, strlen(run->name) } };
	return dvm_name_of_run(&r, node - run->first, out);
}
