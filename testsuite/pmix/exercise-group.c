/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of PMIx, and connections of a job's own processes. */
#include "exercise.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct group {
	const char *name;
	uint32_t first, step, end; /* the members are these ranks */
	bool context;
};

static bool is_member(const struct group *g, uint32_t rank)
{
	return rank >= g->first && rank < g->end && (rank - g->first) % g->step == 0;
}

static size_t list_members(const struct group *g, pmix_proc_t *procs)
{
	size_t n = 0;

	for (uint32_t r = 0; r < size; r++)
		if (is_member(g, r))
			procs[n++] = proc_of(r);
	return n;
}

/* Clients of libpmix 4 and 5 are told SIZE_MAX where there is none. */
static size_t context_of(const pmix_info_t *results, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(results[i].key, PMIX_GROUP_CONTEXT_ID))
			return results[i].value.data.size;
	return SIZE_MAX;
}

/* Each gives the others its rank, which has to do with this group only. */
static size_t construct(const struct group *g)
{
	pmix_info_t mine = { .key = "mine", .value = { .type = PMIX_UINT32,
						       .data.uint32 = me.rank } };
	pmix_data_array_t array = { .type = PMIX_INFO, .size = 1, .array = &mine };
	pmix_info_t infos[] = {
		{ .key = PMIX_GROUP_ASSIGN_CONTEXT_ID,
		  .value = { .type = PMIX_BOOL, .data.flag = g->context } },
		{ .key = PMIX_GROUP_INFO,
		  .value = { .type = PMIX_DATA_ARRAY, .data.darray = &array } },
	};
	pmix_proc_t *procs = calloc(size, sizeof(*procs));
	size_t context, n = list_members(g, procs), nresults = 0;
	pmix_info_t *results = NULL;
	pmix_status_t rc = PMIx_Group_construct(g->name, procs, n, infos,
						g->context ? 2 : 1, &results,
						&nresults);

	check(rc == PMIX_SUCCESS, "group %s: %s", g->name, PMIx_Error_string(rc));
	context = context_of(results, nresults);
	check((context != SIZE_MAX) == g->context, "the wrong context id of group %s",
	      g->name);
	PMIX_INFO_FREE(results, nresults);
	free(procs);
	return context;
}

static void get_mine(const struct group *g, size_t context)
{
	pmix_info_t of = { .key = PMIX_GROUP_CONTEXT_ID, .flags = PMIX_INFO_QUALIFIER,
			   .value = { .type = PMIX_SIZE, .data.size = context } };

	for (uint32_t r = 0; r < size; r++) {
		pmix_proc_t p = proc_of(r);
		pmix_value_t *v;
		pmix_status_t rc;

		if (!is_member(g, r))
			continue;
		rc = PMIx_Get(&p, "mine", &of, 1, &v);
		check(rc == PMIX_SUCCESS, "what %u gave group %s: %s", r, g->name,
		      PMIx_Error_string(rc));
		check(v->data.uint32 == r, "%u gave group %s something else", r,
		      g->name);
		PMIX_VALUE_RELEASE(v);
	}
}

/* Members of one group have got the same context, and no other group's. */
static void compare_contexts(const struct group *groups, size_t n)
{
	size_t contexts[8];

	fence_all(true);
	for (size_t i = 0; i < n; i++)
		for (uint32_t r = 0; r < size; r++) {
			pmix_proc_t p = proc_of(r);
			pmix_value_t *v;

			if (!is_member(&groups[i], r))
				continue;
			CHECK(PMIx_Get(&p, groups[i].name, NULL, 0, &v));
			check(r == groups[i].first || v->data.size == contexts[i],
			      "members of group %s differ", groups[i].name);
			contexts[i] = v->data.size;
			PMIX_VALUE_RELEASE(v);
		}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			check(contexts[i] != contexts[k] || !groups[i].context,
			      "%s and %s have one context id", groups[i].name,
			      groups[k].name);
}

void do_groups(int argc, char **argv)
{
	const struct group groups[] = {
		{ "front", 0, 1, size / 2, true },
		{ "back", size / 2, 1, size, true },
		{ "both", 0, 1, size / 2 + 1, true }, /* shares members with them */
		{ "all", 0, 1, size, true },
		{ "plain", 0, 3, size, false },
		{ "all, plain", 0, 1, size, false },
	};
	const size_t n = sizeof(groups) / sizeof(*groups);

	for (size_t i = 0; i < n; i++) {
		pmix_value_t v = { .type = PMIX_SIZE };

		if (!is_member(&groups[i], me.rank))
			continue;
		v.data.size = construct(&groups[i]);
		if (groups[i].context)
			get_mine(&groups[i], v.data.size);
		CHECK(PMIx_Put(PMIX_GLOBAL, groups[i].name, &v));
	}
	for (size_t i = n; i--;)
		if (is_member(&groups[i], me.rank))
			CHECK(PMIx_Group_destruct(groups[i].name, NULL, 0));
	CHECK(PMIx_Commit());
	compare_contexts(groups, n);
	if (is_member(&groups[2], me.rank))
		construct(&groups[2]); /* once more */
}

static bool make_and_end_group(const pmix_proc_t *all)
{
	pmix_info_t *results = NULL;
	size_t n = 0;
	bool good = PMIx_Group_construct("g", all, 1, NULL, 0, &results, &n) ==
			    PMIX_SUCCESS &&
		    PMIx_Group_destruct("g", NULL, 0) == PMIX_SUCCESS;

	PMIX_INFO_FREE(results, n);
	return good;
}

void do_die_in_group(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	for (int i = 0; make_and_end_group(&all); i++)
		if (i == 3 && me.rank == size - 1)
			raise(SIGKILL);
	_exit(0);
}

/* All of the job, and some of it, twice. */
void do_connect(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);
	pmix_proc_t *odd = calloc(size, sizeof(*odd));
	size_t n = 0;

	for (uint32_t r = 1; r < size; r += 2)
		odd[n++] = proc_of(r);
	for (int i = 0; i < 2; i++) {
		CHECK(PMIx_Connect(&all, 1, NULL, 0));
		if (me.rank % 2)
			CHECK(PMIx_Connect(odd, n, NULL, 0));
		fence_all(false);
		if (me.rank % 2)
			CHECK(PMIx_Disconnect(odd, n, NULL, 0));
		CHECK(PMIx_Disconnect(&all, 1, NULL, 0));
	}
	free(odd);
}
