/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a task with PMI. */
#include "dvm/node/task_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"
#include "libutil/buf.h"

#define NAMES_MAX ((size_t)1 << 30) /* bytes of all names of a task */

struct task_run {
	uint32_t first; /* index of its first node */
	struct dvm_run run;
};

/* ---- reading ---- */

static int add_run(struct task_nodes *t, size_t *cap, const struct dvm_run *r)
{
	int rc = array_grow(&t->runs, t->nruns, cap, sizeof(*t->runs));

	if (rc)
		return rc;
	t->runs[t->nruns++] = (struct task_run){ t->count, *r };
	t->count += r->count;
	return 0;
}

/* The position in the DVM of a task's only node is not needed. */
static int read_runs(struct task_nodes *t, const struct dvm_launch *m)
{
	struct dvm_run r = { 0, 1, m->ranks };
	struct cursor c;
	size_t cap = 0;
	int rc;

	cursor_init(&c, m->runs.data, m->runs.len);
	if (m->nodes == 1)
		return add_run(t, &cap, &r);
	do {
		rc = dvm_run_unpack(&c, &r);
		rc = rc ? rc : add_run(t, &cap, &r);
	} while (!rc && cursor_left(&c));
	return rc ? rc : t->count == m->nodes ? 0 : -EPROTO;
}

static int read_neighbours(struct task_nodes *t, const struct dvm_bytes *bytes)
{
	size_t cap = 0;
	struct cursor c;
	int rc = 0;

	cursor_init(&c, bytes->data, bytes->len);
	while (!rc && cursor_left(&c)) {
		rc = array_grow(&t->neighbours, t->nneighbours, &cap, sizeof(*t->neighbours));
		rc = rc ? rc : dvm_neighbour_unpack(&c, &t->neighbours[t->nneighbours]);
		t->nneighbours += !rc;
	}
	return rc;
}

/* All names, each with its NUL. */
static int put_names(const struct task_nodes *t, const struct dvm_launch *m, const char *own,
		     task_nodes_name_fn *name, void *arg, struct buf *out)
{
	char text[DVM_TEXT_MAX];
	int rc = 0;

	if (m->nodes == 1)
		return buf_append(out, own, strlen(own) + 1);
	for (uint32_t i = 0; !rc && i < t->count; i++) {
		rc = name(arg, task_nodes_node(t, i), text) ? 0 : -EPROTO;
		rc = rc ? rc : buf_append(out, text, strlen(text) + 1);
	}
	return rc;
}

static int read_names(struct task_nodes *t, const struct dvm_launch *m, const char *own,
		      task_nodes_name_fn *name, void *arg)
{
	struct buf out;
	char *at;
	int rc;

	buf_init(&out, NAMES_MAX);
	rc = put_names(t, m, own, name, arg, &out);
	t->texts = at = out.data;
	t->names = calloc(t->count, sizeof(*t->names));
	if (!t->names)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < t->count; i++, at += strlen(at) + 1)
		t->names[i] = at;
	return rc;
}

static uint32_t ranks_of(const struct task_nodes *t, size_t run)
{
	return t->runs[run].run.ranks;
}

/* Lists of ranks by node; *all has the numbers of all ranks, in order. */
static int fill_layout(struct task_nodes *t, uint32_t ranks, uint32_t *all, uint32_t *counts,
		       const uint32_t **lists)
{
	uint32_t first = 0, n = 0;

	for (uint32_t i = 0; i < ranks; i++)
		all[i] = i;
	for (size_t r = 0; r < t->nruns; r++)
		for (uint32_t i = 0; i < t->runs[r].run.count; i++) {
			if (ranks_of(t, r) > ranks - first)
				return -EPROTO;
			counts[n] = ranks_of(t, r);
			lists[n++] = all + first;
			first += ranks_of(t, r);
		}
	return layout_create(&t->layout, t->count, ranks, counts, lists);
}

static int make_layout(struct task_nodes *t, uint32_t ranks)
{
	uint32_t *all = calloc(ranks, sizeof(*all));
	uint32_t *counts = calloc(t->count, sizeof(*counts));
	const uint32_t **lists = calloc(t->count, sizeof(*lists));
	int rc = all && counts && lists ? fill_layout(t, ranks, all, counts, lists) : -ENOMEM;

	free(all);
	free(counts);
	free(lists);
	return rc;
}

int task_nodes_read(struct task_nodes *t, const struct dvm_launch *m, const char *own,
		    task_nodes_name_fn *name, void *arg)
{
	int rc = read_runs(t, m);

	rc = rc ? rc : read_neighbours(t, &m->neighbours);
	rc = rc ? rc : read_names(t, m, own, name, arg);
	rc = rc ? rc : make_layout(t, m->ranks);
	return rc ? rc : m->node < t->count ? 0 : -EPROTO;
}

void task_nodes_free(struct task_nodes *t)
{
	layout_destroy(t->layout);
	free(t->names);
	free(t->texts);
	free(t->neighbours);
	free(t->runs);
}

/* ---- questions ---- */

uint32_t task_nodes_node(const struct task_nodes *t, uint32_t index)
{
	size_t low = 0, high = t->nruns;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (t->runs[middle].first <= index)
			low = middle;
		else
			high = middle;
	}
	return t->runs[low].run.node + index - t->runs[low].first;
}

uint32_t task_nodes_index(const struct task_nodes *t, uint32_t node)
{
	for (size_t i = 0; i < t->nruns; i++) {
		const struct dvm_run *r = &t->runs[i].run;

		if (node >= r->node && node - r->node < r->count)
			return t->runs[i].first + node - r->node;
	}
	return UINT32_MAX;
}

const struct dvm_address *task_nodes_address(const struct task_nodes *t, uint32_t index)
{
	for (size_t i = 0; i < t->nneighbours; i++)
		if (t->neighbours[i].index == index)
			return &t->neighbours[i].address;
	return NULL;
}
