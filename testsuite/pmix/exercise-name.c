/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that are published and looked up; also to tell others that a wait was long
 * enough.
 */
#include "exercise.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
void do_names(int argc, char **argv)
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

/* The ranges of names: who may see a name, and how long it stays. */
void do_ranges(int argc, char **argv)
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

/* Waits for a name that nobody publishes; for the given seconds, 0: without limit. */
void do_wait(int argc, char **argv)
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

static pmix_status_t enter_limited(int which, int seconds)
{
	pmix_info_t info = { .key = PMIX_TIMEOUT,
			     .value = { .type = PMIX_INT, .data.integer = seconds } };
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	return which ? PMIx_Connect(&all, 1, &info, 1) : PMIx_Fence(&all, 1, &info, 1);
}

/* The name that this rank publishes when it has waited long enough. */
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
void do_limits(int argc, char **argv)
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
