/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix-exercise: a client of PMIx as MPI libraries are, which knows nothing of pmi2x. What it
 * does is its first argument.
 */
#include <fcntl.h>
#include <pmix.h>
#include <pthread.h>
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

/* Nor is a rank waited for that does not exist, also without a limit. */
static void get_of_nobody(uint32_t rank)
{
	pmix_proc_t p = proc_of(rank);
	pmix_value_t *v;

	check(PMIx_Get(&p, "no-such-key", NULL, 0, &v) != PMIX_SUCCESS,
	      "a key of a rank that does not exist is found");
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
	get_of_nobody(size);
	get_of_nobody(size + 70000);
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

/* ---- groups ---- */

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

/* What members of one have got is the same, and no other group's. */
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

static void do_groups(int argc, char **argv)
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

/* ---- events ---- */

enum { TO_SESSION, TO_NAMESPACE, TO_ONE, EVENTS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned seen[EVENTS];

static pmix_status_t code_of(int event)
{
	return PMIX_EXTERNAL_ERR_BASE - 1 - event;
}

static uint32_t sender_of(int event)
{
	return event == TO_NAMESPACE ? size - 1 : 0;
}

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source,
		     pmix_info_t info[], size_t ninfo, pmix_info_t results[],
		     size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		     void *done_arg)
{
	int event = code_of(0) - code;
	uint32_t said = 0;

	for (size_t i = 0; i < ninfo; i++)
		if (!strcmp(info[i].key, "said"))
			said = info[i].value.data.uint32;
	check(said == (uint32_t)event + 1 && source->rank == sender_of(event),
	      "event %d of %u says %u", event, source->rank, said);
	pthread_mutex_lock(&lock);
	seen[event]++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static void notify(int event, pmix_data_range_t range)
{
	pmix_proc_t last = proc_of(size - 1);
	pmix_data_array_t array = { .type = PMIX_PROC, .size = 1, .array = &last };
	const pmix_info_t infos[] = {
		{ .key = "said", .value = { .type = PMIX_UINT32,
					    .data.uint32 = (uint32_t)event + 1 } },
		{ .key = PMIX_EVENT_CUSTOM_RANGE,
		  .value = { .type = PMIX_DATA_ARRAY, .data.darray = &array } },
	};
	pmix_status_t rc;

	if (me.rank != sender_of(event))
		return;
	rc = PMIx_Notify_event(code_of(event), &me, range, infos,
			       range == PMIX_RANGE_CUSTOM ? 2 : 1, NULL, NULL);
	check(rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED, "notify: %s",
	      PMIx_Error_string(rc));
}

static void wait_for(int event)
{
	pthread_mutex_lock(&lock);
	while (!seen[event])
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void do_events(int argc, char **argv)
{
	pmix_status_t codes[EVENTS];

	for (int i = 0; i < EVENTS; i++)
		codes[i] = code_of(i);
	PMIx_Register_event_handler(codes, EVENTS, NULL, 0, on_event, NULL, NULL);
	fence_all(false);
	notify(TO_ONE, PMIX_RANGE_CUSTOM);
	notify(TO_SESSION, PMIX_RANGE_SESSION);
	notify(TO_NAMESPACE, PMIX_RANGE_NAMESPACE);
	wait_for(TO_SESSION);
	wait_for(TO_NAMESPACE);
	if (me.rank == size - 1)
		wait_for(TO_ONE);
	fence_all(false);
	for (int i = 0; i < EVENTS; i++)
		check(seen[i] == (i != TO_ONE || me.rank == size - 1),
		      "event %d has come %u times", i, seen[i]);
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

/* ---- names ---- */

static void publish_one(const char *key, pmix_value_t value, pmix_data_range_t range,
			pmix_persistence_t persistence, pmix_status_t expected)
{
	pmix_info_t info[] = {
		{ .value = value },
		{ .key = PMIX_RANGE,
		  .value = { .type = PMIX_DATA_RANGE, .data.range = range } },
		{ .key = PMIX_PERSISTENCE,
		  .value = { .type = PMIX_PERSIST, .data.persist = persistence } },
	};
	pmix_status_t rc;

	PMIX_LOAD_KEY(info[0].key, key);
	rc = PMIx_Publish(info, 3);
	check(rc == expected, "publish %s: %s", key, PMIx_Error_string(rc));
}

static void unpublish_one(const char *key, pmix_status_t expected)
{
	char *keys[] = { (char *)key, NULL };
	pmix_status_t rc = PMIx_Unpublish(keys, NULL, 0);

	check(rc == expected, "unpublish %s: %s", key, PMIx_Error_string(rc));
}

/* The client's library has copied the value; it is not freed. */
static pmix_pdata_t look_up(const char *key, pmix_data_range_t range,
			    pmix_status_t expected)
{
	pmix_info_t info = { .key = PMIX_RANGE,
			     .value = { .type = PMIX_DATA_RANGE, .data.range = range } };
	pmix_pdata_t data = {};
	pmix_status_t rc;

	PMIX_LOAD_KEY(data.key, key);
	rc = PMIx_Lookup(&data, 1, &info, 1);
	check(rc == expected, "look up %s: %s", key, PMIx_Error_string(rc));
	return data;
}

static char BYTES[] = "a\0b";
static uint64_t NUMBERS[] = { 1, UINT64_MAX, 3 };
static pmix_data_array_t ARRAY = { PMIX_UINT64, 3, NUMBERS };

/* Several keys in a call, of several types. */
static void publish_several(void)
{
	pmix_info_t info[] = {
		{ .key = "text",
		  .value = { .type = PMIX_STRING, .data.string = "tag#0$p;q=1" } },
		{ .key = "bytes",
		  .value = { .type = PMIX_BYTE_OBJECT,
			     .data.bo = { BYTES, sizeof(BYTES) } } },
		{ .key = "array",
		  .value = { .type = PMIX_DATA_ARRAY, .data.darray = &ARRAY } },
		{ .key = "process", .value = { .type = PMIX_PROC, .data.proc = &me } },
	};

	CHECK(PMIx_Publish(info, 4));
}

static void check_several(pmix_pdata_t d[4])
{
	for (int i = 0; i < 4; i++)
		check(!d[i].proc.rank && !strcmp(d[i].proc.nspace, me.nspace),
		      "%s is published by %s.%u", d[i].key, d[i].proc.nspace,
		      d[i].proc.rank);
	check(d[0].value.type == PMIX_STRING &&
		      !strcmp(d[0].value.data.string, "tag#0$p;q=1"),
	      "the wrong text");
	check(d[1].value.type == PMIX_BYTE_OBJECT &&
		      d[1].value.data.bo.size == sizeof(BYTES) &&
		      !memcmp(d[1].value.data.bo.bytes, BYTES, sizeof(BYTES)),
	      "the wrong bytes");
	check(d[2].value.type == PMIX_DATA_ARRAY && d[2].value.data.darray->size == 3 &&
		      !memcmp(d[2].value.data.darray->array, NUMBERS, sizeof(NUMBERS)),
	      "the wrong array");
	check(d[3].value.type == PMIX_PROC && !d[3].value.data.proc->rank,
	      "the wrong process");
}

static void look_up_several(int wait)
{
	pmix_info_t info = { .key = PMIX_WAIT,
			     .value = { .type = PMIX_INT, .data.integer = 0 } };
	pmix_pdata_t d[4] = { { .key = "text" }, { .key = "bytes" },
			      { .key = "array" }, { .key = "process" } };
	pmix_status_t rc = PMIx_Lookup(d, 4, &info, wait ? 1 : 0);

	check(rc == PMIX_SUCCESS, "look up several: %s", PMIx_Error_string(rc));
	check_several(d);
}

static const pmix_value_t ONE = { .type = PMIX_UINT32, .data.uint32 = 1 };

/* The first publishes; the last, of another node, waits for that, and all find it. */
static void do_names(int argc, char **argv)
{
	bool first = !me.rank, last = me.rank == size - 1;

	if (last)
		look_up("text", PMIX_RANGE_SESSION, PMIX_ERR_NOT_FOUND);
	fence_all(false);
	if (last)
		look_up_several(true);
	if (first)
		publish_several();
	fence_all(false);
	look_up_several(false);
	if (last) {
		publish_one("text", ONE, PMIX_RANGE_SESSION, PMIX_PERSIST_APP,
			    PMIX_ERR_DUPLICATE_KEY);
		unpublish_one("text", PMIX_ERR_NOT_FOUND); /* another's */
		look_up("text", PMIX_RANGE_NAMESPACE, PMIX_SUCCESS);
		look_up("text", PMIX_RANGE_PROC_LOCAL, PMIX_ERR_NOT_FOUND);
	}
	fence_all(false);
	if (first) {
		unpublish_one("text", PMIX_SUCCESS);
		look_up("text", PMIX_RANGE_SESSION, PMIX_ERR_NOT_FOUND);
		look_up("bytes", PMIX_RANGE_SESSION, PMIX_SUCCESS);
		CHECK(PMIx_Unpublish(NULL, NULL, 0));
	}
	fence_all(false);
	look_up("text", PMIX_RANGE_SESSION, PMIX_ERR_NOT_FOUND);
	look_up("bytes", PMIX_RANGE_SESSION, PMIX_ERR_NOT_FOUND);
	fence_all(false);
}

/* Who may see it, and how long it stays. */
static void do_ranges(int argc, char **argv)
{
	bool first = !me.rank, last = me.rank == size - 1;

	publish_one("each has one", ONE, PMIX_RANGE_PROC_LOCAL, PMIX_PERSIST_APP,
		    PMIX_SUCCESS);
	check(look_up("each has one", PMIX_RANGE_SESSION, PMIX_SUCCESS).proc.rank ==
		      me.rank,
	      "another's is found");
	if (first) {
		publish_one("of the node", ONE, PMIX_RANGE_LOCAL, PMIX_PERSIST_APP,
			    PMIX_SUCCESS);
		publish_one("of the job", ONE, PMIX_RANGE_NAMESPACE,
			    PMIX_PERSIST_FIRST_READ, PMIX_SUCCESS);
		publish_one("of some", ONE, PMIX_RANGE_CUSTOM, PMIX_PERSIST_APP,
			    PMIX_ERR_NOT_SUPPORTED);
	}
	fence_all(false);
	if (last) {
		look_up("of the node", PMIX_RANGE_SESSION, PMIX_ERR_NOT_FOUND);
		look_up("of the job", PMIX_RANGE_SESSION, PMIX_SUCCESS);
		look_up("of the job", PMIX_RANGE_SESSION, PMIX_ERR_NOT_FOUND);
	}
	if (first)
		look_up("of the node", PMIX_RANGE_LOCAL, PMIX_SUCCESS);
	fence_all(false);
}

/* For what nobody publishes; so many seconds, 0: without limit. */
static void do_wait(int argc, char **argv)
{
	pmix_info_t info[] = {
		{ .key = PMIX_WAIT, .value = { .type = PMIX_INT, .data.integer = 1 } },
		{ .key = PMIX_TIMEOUT,
		  .value = { .type = PMIX_INT,
			     .data.integer = argc > 0 ? atoi(argv[0]) : 0 } },
	};
	pmix_pdata_t data = { .key = "nobody's" };
	pmix_status_t rc;

	printf("waits %u %ld\n", me.rank, (long)getpid());
	fflush(stdout);
	rc = PMIx_Lookup(&data, 1, info, 2);
	check(rc == PMIX_ERR_TIMEOUT, "look up what is nobody's: %s",
	      PMIx_Error_string(rc));
	fence_all(false);
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

static void do_die_in_group(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	for (int i = 0; make_and_end_group(&all); i++)
		if (i == 3 && me.rank == size - 1)
			raise(SIGKILL);
	_exit(0);
}

/* All of the job, and some of it, twice. */
static void do_connect(int argc, char **argv)
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

/* ---- limits of time ---- */

static pmix_status_t enter_limited(int which, int seconds)
{
	pmix_info_t info = { .key = PMIX_TIMEOUT,
			     .value = { .type = PMIX_INT, .data.integer = seconds } };
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	return which ? PMIx_Connect(&all, 1, &info, 1) : PMIx_Fence(&all, 1, &info, 1);
}

/* What this rank publishes when it has waited long enough. */
static void name_wait(char *name, size_t len, int which, uint32_t rank)
{
	snprintf(name, len, "waited %d %u", which, rank);
}

static void wait_for_others(int which)
{
	pmix_info_t info = { .key = PMIX_WAIT,
			     .value = { .type = PMIX_INT, .data.integer = 0 } };

	for (uint32_t r = 0; r < size - 1; r++) {
		pmix_pdata_t d = {};

		name_wait(d.key, sizeof(d.key), which, r);
		CHECK(PMIx_Lookup(&d, 1, &info, 1));
	}
}

/* All but the last, which comes when they have given up; a fence goes well after that. */
static void do_limits(int argc, char **argv)
{
	bool last = me.rank == size - 1;
	char name[64];

	for (int i = 0; i < 2; i++) {
		pmix_status_t rc;

		if (last)
			wait_for_others(i);
		rc = enter_limited(i, last ? 60 : 1);
		check(rc == (last ? PMIX_SUCCESS : PMIX_ERR_TIMEOUT),
		      "what is limited ends with %s", PMIx_Error_string(rc));
		name_wait(name, sizeof(name), i, me.rank);
		if (!last)
			publish_one(name, ONE, PMIX_RANGE_SESSION, PMIX_PERSIST_APP,
				    PMIX_SUCCESS);
		put(i);
		fence_all(true);
		get((me.rank + 1) % size, i);
	}
}

static void on_death(size_t id, pmix_status_t code, const pmix_proc_t *source,
		     pmix_info_t info[], size_t ninfo, pmix_info_t results[],
		     size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		     void *done_arg)
{
	check(source->rank == size - 1, "%u is told to be dead", source->rank);
	pthread_mutex_lock(&lock);
	seen[TO_ONE]++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/* One dies: the others, who have asked for it, are told, and end well. */
static void do_outlive(int argc, char **argv)
{
	pmix_status_t code = PMIX_ERR_PROC_ABORTED;

	PMIx_Register_event_handler(&code, 1, NULL, 0, on_death, NULL, NULL);
	fence_all(false);
	if (me.rank == size - 1)
		raise(SIGKILL);
	wait_for(TO_ONE);
	printf("outlived\n");
}

/* As the parents of those that a fifo holds: until these are let go they run. */
static void do_held(int argc, char **argv)
{
	char byte;

	(void)!read(open(argv[0], O_RDONLY), &byte, 1);
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

static void let_go(const char *fifo)
{
	close(open(fifo, O_WRONLY));
}

/*
 * Spawns the command of argv[1], of which processes end, and others are held by the fifo
 * argv[0], if it is one: who waits to connect with those is told, also when it has asked
 * for their data.
 */
static void do_deserted(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 2 };
	pmix_proc_t both[] = { me, { .rank = PMIX_RANK_WILDCARD } }, child = { 0 };
	pmix_value_t *v;

	if (!me.rank) {
		CHECK(PMIx_Spawn(NULL, 0, &app, 1, both[1].nspace));
		PMIX_LOAD_PROCID(&child, both[1].nspace, 0);
		check(PMIx_Get(&child, "early", NULL, 0, &v) != PMIX_SUCCESS,
		      "there is something of a process that has not connected");
		check(PMIx_Connect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
		      "somebody is waited for who has died");
		check(PMIx_Disconnect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
		      "somebody is waited for again");
		let_go(argv[0]);
	}
	fence_all(false);
	printf("deserted\n");
}

/* The same with a first process that ends badly: none has been spawned. */
static void do_unspawned(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 2 };
	pmix_nspace_t nspace;

	if (!me.rank) {
		check(PMIx_Spawn(NULL, 0, &app, 1, nspace) != PMIX_SUCCESS,
		      "who has ended is spawned");
		let_go(argv[0]);
	}
	fence_all(false);
	printf("unspawned\n");
}

/* Spawns the command of argv[1], and goes; the others are held by the fifo argv[0]. */
static void do_forsake(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 1 };
	pmix_nspace_t nspace;

	if (me.rank)
		do_held(argc, argv);
	else
		CHECK(PMIx_Spawn(NULL, 0, &app, 1, nspace));
}

/* Who is spawned so, and wants to connect with who has spawned it. */
static void do_forsaken(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD), both[2] = { me };
	pmix_value_t *v;

	CHECK(PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v));
	both[1] = *v->data.proc;
	PMIX_VALUE_RELEASE(v);
	check(PMIx_Connect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
	      "a parent is waited for that has ended");
	let_go(argv[0]);
	printf("forsaken\n");
}

/*
 * The others of this step go. Who has spawned the command of argv[1] would connect with it,
 * and all of its own step; then it is held by the fifo argv[0].
 */
static void do_strand(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 1 };
	pmix_proc_t both[] = { proc_of(PMIX_RANK_WILDCARD),
			       { .rank = PMIX_RANK_WILDCARD } };

	if (me.rank)
		return;
	CHECK(PMIx_Spawn(NULL, 0, &app, 1, both[1].nspace));
	check(PMIx_Connect(both, 2, NULL, 0) != PMIX_SUCCESS,
	      "who has gone takes part in a connection");
	do_held(argc, argv);
}

/* Who is spawned so, and would connect with all of that step. */
static void do_stranded(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD), both[2] = { all };
	pmix_value_t *v;

	CHECK(PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v));
	PMIX_LOAD_PROCID(&both[1], v->data.proc->nspace, PMIX_RANK_WILDCARD);
	PMIX_VALUE_RELEASE(v);
	check(PMIx_Connect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
	      "parents are waited for that do not meet");
	let_go(argv[0]);
	printf("stranded\n");
}

/* What is not offered is refused, and does not hang. */
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
