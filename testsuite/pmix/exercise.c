/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix-exercise: a client of PMIx as MPI libraries are, which knows nothing of pmi2x. What it
 * does is its first argument.
 */
#include <pmix.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size;

static void check(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void check(bool good, const char *format, ...)
{
	va_list args;

	if (good)
		return;
	fprintf(stderr, "rank %u: ", me.rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(5);
}

#define CHECK(call) check((call) == PMIX_SUCCESS, "%s fails", #call)

static pmix_proc_t proc_of(uint32_t rank)
{
	pmix_proc_t p;

	PMIX_LOAD_PROCID(&p, me.nspace, rank);
	return p;
}

static uint32_t get_u32(const pmix_proc_t *p, const char *key)
{
	pmix_value_t *v;
	uint32_t n;
	pmix_status_t rc = PMIx_Get(p, key, NULL, 0, &v);

	check(rc == PMIX_SUCCESS, "get %s of %u: %s", key, p->rank,
	      PMIx_Error_string(rc));
	n = v->type == PMIX_UINT16 ? v->data.uint16 :
	    v->type == PMIX_PROC_RANK ? v->data.rank : v->data.uint32;
	PMIX_VALUE_RELEASE(v);
	return n;
}

static void value_of(char *out, size_t len, uint32_t rank, int round)
{
	snprintf(out, len, "value %d of %u, before key-%d", round, rank, round + 1);
}

static void put(int round)
{
	char key[32], text[64];
	pmix_value_t v = { .type = PMIX_STRING, .data.string = text };

	snprintf(key, sizeof(key), "key-%d", round);
	value_of(text, sizeof(text), me.rank, round);
	CHECK(PMIx_Put(PMIX_GLOBAL, key, &v));
	CHECK(PMIx_Commit());
}

static void get(uint32_t rank, int round)
{
	pmix_proc_t p = proc_of(rank);
	pmix_value_t *v;
	pmix_status_t rc;
	char key[32], text[64];

	snprintf(key, sizeof(key), "key-%d", round);
	value_of(text, sizeof(text), rank, round);
	rc = PMIx_Get(&p, key, NULL, 0, &v);
	check(rc == PMIX_SUCCESS, "get %s of %u: %s", key, rank, PMIx_Error_string(rc));
	check(v->type == PMIX_STRING && !strcmp(v->data.string, text), "%s of %u: %s",
	      key, rank, v->type == PMIX_STRING ? v->data.string : "no text");
	PMIX_VALUE_RELEASE(v);
}

static void fence(const pmix_proc_t procs[], size_t n, bool collect)
{
	pmix_info_t info = { .key = PMIX_COLLECT_DATA,
			     .value = { .type = PMIX_BOOL, .data.flag = collect } };
	pmix_status_t rc = PMIx_Fence(procs, n, &info, 1);

	check(rc == PMIX_SUCCESS, "fence: %s", PMIx_Error_string(rc));
}

static void fence_all(bool collect)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	fence(&all, 1, collect);
}

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

/* ---- what it does ---- */

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

	fence_all(true); /* nobody has put anything */
	for (int i = 0; i < rounds; i++) {
		if (i % 2 || me.rank % 3) /* and not everybody each time */
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
	put(1); /* after the last one has been asked already */
	fence_all(false);
	get((me.rank + size / 2) % size, 1);
	fence_all(false);
}

/* What is put after a fence is not among what it has brought, though it looks so. */
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

/* One dies in the midst of fences: then they fail for the others, in bounded time. */
static void do_die(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	for (int i = 0; PMIx_Fence(&all, 1, NULL, 0) == PMIX_SUCCESS; i++)
		if (i == 3 && me.rank == size - 1)
			raise(SIGKILL);
	_exit(0);
}

/* What is not offered is refused, and does not hang. */
static void do_refused(int argc, char **argv)
{
	pmix_app_t app = { .cmd = "true", .maxprocs = 1 };
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);
	pmix_info_t info = { .key = "published",
			     .value = { .type = PMIX_UINT32, .data.uint32 = 1 } };
	pmix_pdata_t data = { .key = "published" };
	pmix_query_t *query;
	pmix_info_t *results;
	pmix_nspace_t nspace;
	size_t nresults;

	check(PMIx_Publish(&info, 1) != PMIX_SUCCESS, "publish is offered");
	check(PMIx_Lookup(&data, 1, NULL, 0) != PMIX_SUCCESS, "lookup is offered");
	check(PMIx_Spawn(NULL, 0, &app, 1, nspace) != PMIX_SUCCESS, "spawn is offered");
	check(PMIx_Connect(&all, 1, NULL, 0) != PMIX_SUCCESS, "connect is offered");
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
	{ "die", do_die },         { "refused", do_refused },
	{ "fences", do_fences },
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
