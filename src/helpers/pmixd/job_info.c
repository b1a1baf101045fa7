/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's data, in the keys of PMIx. */
#include "helpers/pmixd/job_info.h"

#include <errno.h>
#include <stdlib.h>

#include "libpmi/mapping.h"

/* ---- maps ---- */

static const char *node_name(const struct pmix_nspace *n, uint32_t position)
{
	return n->node_names[layout_node_id(n->layout, position)];
}

static void print_ranks(struct buf *b, const struct pmix_nspace *n,
			uint32_t position)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(n->layout, position, &count);

	for (uint32_t i = 0; i < count; i++)
		(void)buf_printf(b, "%s%u", i ? "," : "", ranks[i]);
}

static void add_text(struct info_list *l, const char *key, struct buf *b)
{
	const char *text = buf_cstr(b);

	l->failed |= !text;
	info_add_string(l, key, text);
	buf_free(b);
}

/* "n1,n2"; libpmix takes a plain list as well as one that it has shortened. */
static void add_node_map(struct info_list *l, const struct pmix_nspace *n)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	for (uint32_t p = 0; p < layout_nodes(n->layout); p++)
		(void)buf_printf(&b, "%s%s", p ? "," : "", node_name(n, p));
	add_text(l, PMIX_NODE_MAP, &b);
}

/* "0,1;2,3" */
static void add_proc_map(struct info_list *l, const struct pmix_nspace *n)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	for (uint32_t p = 0; p < layout_nodes(n->layout); p++) {
		(void)buf_puts(&b, p ? ";" : "");
		print_ranks(&b, n, p);
	}
	add_text(l, PMIX_PROC_MAP, &b);
}

static void add_local_peers(struct info_list *l, const struct pmix_nspace *n)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	print_ranks(&b, n, n->position);
	add_text(l, PMIX_LOCAL_PEERS, &b);
}

/* How MPICH asks for which ranks share a node. */
static void add_mapping(struct info_list *l, const struct pmix_nspace *n)
{
	char *mapping = mapping_create(n->layout);

	info_add_string(l, PMIX_ANL_MAP, mapping);
	free(mapping);
}

static void add_maps(struct info_list *l, const struct pmix_nspace *n)
{
	add_node_map(l, n);
	add_proc_map(l, n);
	add_local_peers(l, n);
	add_mapping(l, n);
}

/* ---- applications ---- */

/* Consecutive ranks of one application, which may have several such runs. */
static uint32_t runs(const struct pmix_nspace *n)
{
	return n->app_sizes ? n->napps : 1;
}

static uint32_t run_size(const struct pmix_nspace *n, uint32_t run)
{
	return n->app_sizes ? n->app_sizes[run] : layout_ranks(n->layout);
}

static uint32_t run_app(const struct pmix_nspace *n, uint32_t run)
{
	return n->app_numbers ? n->app_numbers[run] : run;
}

/* Ranks that an application has in the first `end` runs. */
static uint32_t ranks_before(const struct pmix_nspace *n, uint32_t app, uint32_t end)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < end; i++)
		if (run_app(n, i) == app)
			ranks += run_size(n, i);
	return ranks;
}

/* The application of `rank`, and which of its ranks that is. */
static uint32_t app_of(const struct pmix_nspace *n, uint32_t rank, uint32_t *app_rank)
{
	uint32_t run = 0, app;

	while (run + 1 < runs(n) && rank >= run_size(n, run))
		rank -= run_size(n, run++);
	app = run_app(n, run);
	*app_rank = ranks_before(n, app, run) + rank;
	return app;
}

static void add_app(struct info_list *l, const struct pmix_nspace *n, uint32_t app,
		    uint32_t leader)
{
	struct info_list inner = {};

	info_add_u32(&inner, PMIX_APPNUM, app);
	info_add_u32(&inner, PMIX_APP_SIZE, ranks_before(n, app, runs(n)));
	info_add_rank(&inner, PMIX_APPLDR, leader);
	info_add_list(l, PMIX_APP_INFO_ARRAY, &inner);
}

static void add_apps(struct info_list *l, const struct pmix_nspace *n)
{
	uint32_t first = 0, apps = 0;

	for (uint32_t run = 0; run < runs(n); first += run_size(n, run++)) {
		if (ranks_before(n, run_app(n, run), run))
			continue;
		add_app(l, n, run_app(n, run), first);
		apps++;
	}
	info_add_u32(l, PMIX_JOB_NUM_APPS, apps);
}

/* ---- ranks of this node ---- */

static void add_rank(struct info_list *l, const struct pmix_nspace *n, uint32_t rank)
{
	struct info_list inner = {};
	uint32_t app_rank, app = app_of(n, rank, &app_rank);

	info_add_rank(&inner, PMIX_RANK, rank); /* has to be the first */
	info_add_u32(&inner, PMIX_APPNUM, app);
	info_add_rank(&inner, PMIX_APP_RANK, app_rank);
	info_add_rank(&inner, PMIX_GLOBAL_RANK, rank);
	info_add_list(l, PMIX_PROC_DATA, &inner);
}

int job_info_make_ranks(struct info_list *l, const struct pmix_nspace *n)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(n->layout, n->position, &count);

	for (uint32_t i = 0; i < count; i++)
		add_rank(l, n, ranks[i]);
	return l->failed ? -ENOMEM : 0;
}

/* ---- */

static void add_sizes(struct info_list *l, const struct pmix_nspace *n)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(n->layout, n->position, &here);

	info_add_u32(l, PMIX_JOB_SIZE, layout_ranks(n->layout));
	info_add_u32(l, PMIX_UNIV_SIZE, n->universe_size);
	info_add_u32(l, PMIX_MAX_PROCS, n->universe_size);
	info_add_u32(l, PMIX_NUM_NODES, layout_nodes(n->layout));
	info_add_u32(l, PMIX_LOCAL_SIZE, here);
	info_add_u32(l, PMIX_NODE_SIZE, here);
	info_add_rank(l, PMIX_LOCALLDR, ranks[0]);
}

static void add_directory(struct info_list *l, const char *dir)
{
	info_add_string(l, PMIX_TMPDIR, dir);
	info_add_string(l, PMIX_NSDIR, dir);
	info_add_bool(l, PMIX_TDIR_RMCLEAN, true); /* the host removes it */
}

int job_info_make(struct info_list *l, const struct pmix_nspace *n, const char *dir)
{
	info_add_string(l, PMIX_JOBID, n->name);
	info_add_u32(l, PMIX_USERID, n->uid);
	info_add_u32(l, PMIX_GRPID, n->gid);
	add_sizes(l, n);
	add_maps(l, n);
	add_apps(l, n);
	add_directory(l, dir);
	info_add_bool(l, PMIX_SPAWNED, n->parent != NULL);
	if (n->parent)
		info_add_proc(l, PMIX_PARENT_ID, n->parent, n->parent_rank);
	return l->failed ? -ENOMEM : 0;
}
