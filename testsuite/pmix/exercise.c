/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix-exercise: a client of PMIx as MPI libraries are, which knows nothing of pmi2x. Its
 * first argument names what it does.
 */
#include "exercise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A key that nobody has put ends in an error, in bounded time. */
static void get_absent(uint32_t rank)
{
	pmix_info_t info = { .key = PMIX_TIMEOUT,
			     .value = { .type = PMIX_INT, .data.integer = 1 } };
	pmix_proc_t p = proc_of(rank);
	pmix_value_t *v;

	check(PMIx_Get(&p, "no-such-key", &info, 1, &v) != PMIX_SUCCESS,
	      "a key that nobody has put is found");
}

/* Nor is a rank waited for that does not exist, also without a limit. */
static void get_of_nobody(uint32_t rank)
{
	pmix_proc_t p = proc_of(rank);
	pmix_value_t *v;

	check(PMIx_Get(&p, "no-such-key", NULL, 0, &v) != PMIX_SUCCESS,
	      "a key of a rank that does not exist is found");
}

static void do_job(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD), self = me;
	uint32_t app = argc > 0 ? (uint32_t)(me.rank >= (uint32_t)atoi(argv[0])) : 0;
	pmix_value_t *v;

	check(get_u32(&self, PMIX_APPNUM) == app, "the wrong application number");
	check(get_u32(&self, PMIX_LOCAL_RANK) < get_u32(&all, PMIX_LOCAL_SIZE),
	      "the wrong local rank");
	check(get_u32(&all, PMIX_UNIV_SIZE) >= size, "the wrong universe");
	CHECK(PMIx_Get(&self, PMIX_HOSTNAME, NULL, 0, &v));
	check(!strcmp(v->data.string, getenv("PMIX_HOSTNAME")), "the wrong host name");
	for (uint32_t r = 0; r < size; r++) {
		pmix_proc_t other = proc_of(r);

		(void)get_u32(&other, PMIX_LOCAL_RANK);
		CHECK(PMIx_Get(&other, PMIX_HOSTNAME, NULL, 0, &v));
		check(v->data.string[0] == 'n', "the wrong host name");
		PMIX_VALUE_RELEASE(v);
	}
}

static void do_exchange(int argc, char **argv)
{
	int rounds = argc > 0 ? atoi(argv[0]) : 3;

	fence_all(true); /* no rank has put a value */
	for (int i = 0; i < rounds; i++) {
		if (i % 2 || me.rank % 3) /* not every rank each time */
			put(i);
		fence_all(true);
		for (uint32_t k = 0; k < size; k++) {
			uint32_t r = (me.rank + k) % size;

			if (i % 2 || r % 3)
				get(r, i);
		}
	}
	get_absent((me.rank + 1) % size);
	get_absent((me.rank + size / 2) % size);
	fence_all(false);
}

/* Without any data in the fence: each asks the owner. */
static void do_direct(int argc, char **argv)
{
	put(0);
	fence_all(false);
	for (uint32_t k = 1; k < size; k++)
		get((me.rank + k) % size, 0);
	get_absent((me.rank + size / 2) % size);
	get_of_nobody(size);
	get_of_nobody(size + 70000);
	put(1); /* after the last one has been asked already */
	fence_all(false);
	get((me.rank + size / 2) % size, 1);
	fence_all(false);
}

/*
 * Values that are put after a fence are not among those that it has brought, though
 * they look so.
 */
static void do_later(int argc, char **argv)
{
	uint32_t other = (me.rank + size / 2) % size;

	put(0);
	fence_all(true);
	get(other, 0);
	put(1);
	fence_all(false);
	get(other, 1);
	fence_all(false);
}

static void do_subset(int argc, char **argv)
{
	pmix_proc_t *odd = calloc(size, sizeof(*odd));
	size_t n = 0;

	for (uint32_t r = 0; r < size; r++)
		if (r % 2)
			odd[n++] = proc_of(r);
	put(0);
	for (int i = 0; i < 3 && me.rank % 2; i++)
		fence(odd, n, i != 1);
	for (uint32_t r = 1; r < size && me.rank % 2; r += 2)
		get(r, 0);
	fence_all(true);
	get((me.rank + 1) % size, 0);
	free(odd);
}

static void do_abort(int argc, char **argv)
{
	if (me.rank == size - 1) {
		PMIx_Abort(7, "I do not want to", NULL, 0);
		pause(); /* until it is killed */
	}
	fence_all(true);
	check(false, "a fence ends that one has not entered");
}

/* One rank dies during fences: they fail for the others, in bounded time. */
static void do_die(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	for (int i = 0; PMIx_Fence(&all, 1, NULL, 0) == PMIX_SUCCESS; i++)
		if (i == 3 && me.rank == size - 1)
			raise(SIGKILL);
	_exit(0);
}

/*
 * Once the fence is over, the first, whom the fifo holds, gets the data of the second half
 * of them.
 */
static void do_get_held(int argc, char **argv)
{
	put(0);
	fence_all(true);
	printf("fenced\n");
	fflush(stdout);
	if (me.rank)
		return;
	do_held(argc, argv);
	for (uint32_t r = size / 2; r < size; r++)
		get(r, 0);
	fprintf(stderr, "got\n");
}

/* Requests that are not offered are refused, and do not hang. */
static void do_refused(int argc, char **argv)
{
	pmix_app_t app = { .cmd = "true", .maxprocs = 1 };
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);
	pmix_info_t info = { .key = "published",
			     .value = { .type = PMIX_UINT32, .data.uint32 = 1 } };
	pmix_query_t *query;
	pmix_info_t *results;
	pmix_nspace_t nspace;
	size_t nresults;

	check(PMIx_Spawn(NULL, 0, &app, 1, nspace) != PMIX_SUCCESS, "spawn is offered");
	(void)PMIx_Log(&info, 1, NULL, 0);
	(void)PMIx_Job_control(&all, 1, &info, 1, &results, &nresults);
	PMIX_QUERY_CREATE(query, 1);
	PMIX_ARGV_APPEND(nspace[0], query->keys, PMIX_QUERY_JOB_STATUS);
	check(PMIx_Query_info(query, 1, &results, &nresults) != PMIX_SUCCESS,
	      "query of the job's status is offered");
	fence_all(true);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void do_fences(int argc, char **argv)
{
	int rounds = argc > 0 ? atoi(argv[0]) : 10;
	double start;

	put(-1);
	start = now();
	for (int i = 0; i < rounds; i++) {
		put(i);
		fence_all(true);
	}
	if (!me.rank && rounds)
		printf("%.2f ms a fence\n", (now() - start) * 1000 / rounds);
}

static const struct {
	const char *name;
	void (*run)(int argc, char **argv);
} actions[] = {
	{ "job", do_job },         { "exchange", do_exchange },
	{ "direct", do_direct },   { "subset", do_subset },
	{ "later", do_later },     { "abort", do_abort },
	{ "die", do_die },         { "die-in-group", do_die_in_group },
	{ "refused", do_refused }, { "fences", do_fences },
	{ "groups", do_groups },   { "names", do_names },
	{ "ranges", do_ranges },   { "wait", do_wait },
	{ "connect", do_connect }, { "deserted", do_deserted },
	{ "held", do_held },       { "unspawned", do_unspawned },
	{ "get-held", do_get_held },
	{ "forsake", do_forsake }, { "forsaken", do_forsaken },
	{ "strand", do_strand },   { "stranded", do_stranded },
	{ "events", do_events },   { "outlive", do_outlive },
	{ "limits", do_limits },
};

static void act(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (!strcmp(actions[i].name, argv[0])) {
			actions[i].run(argc - 1, argv + 1);
			return;
		}
	check(false, "no action %s", argv[0]);
}

int main(int argc, char **argv)
{
	pmix_status_t rc = PMIx_Init(&me, NULL, 0);
	pmix_proc_t all;

	check(argc > 1, "no action");
	check(rc == PMIX_SUCCESS, "init: %s", PMIx_Error_string(rc));
	all = proc_of(PMIX_RANK_WILDCARD);
	size = get_u32(&all, PMIX_JOB_SIZE);
	act(argc - 1, argv + 1);
	CHECK(PMIx_Finalize(NULL, 0));
	return 0;
}
