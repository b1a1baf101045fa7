/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI_Barrier_group with servers that know groups, and with others. */
#include "unit.h"

#include <pthread.h>

#include "server.h"
#include "pmi.h"

#define TAG_A "468965076" /* of "a", on the wire */

/* FAKE_RANK and another one. */
static const int pair[] = { FAKE_RANK, 3 };

static void stop(void *fake)
{
	assert_int_equal(PMI_Finalize(), 0);
	fake_stop(fake);
}

static struct fake *start(const struct fake_options *options)
{
	struct fake *f = unit_at_end(stop, fake_start(options));
	int spawned;

	assert_int_equal(PMI_Init(&spawned), 0);
	return f;
}

/* A test in a session with a server of these options. */
#define SESSION_TEST(name, ...) \
	TEST_ON(name, struct fake *f, start(&(struct fake_options){ __VA_ARGS__ }))

static void put(const char *key, const char *value)
{
	char name[256];

	assert_int_equal(PMI_KVS_Get_my_name(name, sizeof(name)), 0);
	assert_int_equal(PMI_KVS_Put(name, key, value), 0);
}

static void get(const char *key, const char *want)
{
	char name[256], text[64];

	assert_int_equal(PMI_KVS_Get_my_name(name, sizeof(name)), 0);
	assert_int_equal(PMI_KVS_Get(name, key, text, sizeof(text)),
			 want ? 0 : PMI_ERR_INVALID_KEY);
	if (want)
		assert_string_equal(text, want);
}

TEST(alone_waits_for_nobody)
{
	int spawned, own = 0, other = 1;

	assert_int_equal(PMI_Barrier_group(PMI_GROUP_SELF, 0, NULL),
			 PMI_ERR_INIT);
	assert_int_equal(PMI_Init(&spawned), 0);
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_SELF, 0, NULL), 0);
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_WORLD, 0, NULL), 0);
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_NODE, 0, "t"), 0);
	assert_int_equal(PMI_Barrier_group(&own, 1, "t"), 0);
	assert_int_equal(PMI_Barrier_group(&other, 1, "t"),
			 PMI_ERR_INVALID_ARG);
	assert_int_equal(PMI_Finalize(), 0);
}

static void names_groups_as_the_wire_does(struct fake *f)
{
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_SELF, 0, NULL), 0);
	assert_string_equal(fake_group(f), "");
	assert_int_equal(PMI_Barrier_group(pair, 2, NULL), 0);
	assert_string_equal(fake_group(f), "1,3:0");
	assert_int_equal(PMI_Barrier_group(pair, 1, "leaders"), 0);
	assert_string_equal(fake_group(f), "1:148503115");
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_NODE, -1, NULL), 0);
	assert_string_equal(fake_group(f), "NODE:0");
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_WORLD, 0, "a"), 0);
	assert_string_equal(fake_group(f), "WORLD:" TAG_A);
}

SESSION_TEST(goes_over_the_extension, .extended = true, .groups = true)
{
	names_groups_as_the_wire_does(f);
	assert_int_equal(fake_seen(f, "pmi2x-barrier"), 4);
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_WORLD, 0, NULL), 0);
	assert_int_equal(fake_seen(f, "pmi2x-fence"), 1);
}

SESSION_TEST(goes_over_pmi1, .pmi1_only = true, .groups = true)
{
	names_groups_as_the_wire_does(f);
	put("k", "v");
	assert_int_equal(PMI_Barrier(), 0);
	get("k", "v");
}

/*
 * Values that a group's barrier has brought are with the server until the next fence.
 */
SESSION_TEST(gets_what_members_put, .extended = true, .groups = true)
{
	put("k", "old");
	assert_int_equal(PMI_Barrier(), 0);
	get("k", "old");
	get("none", NULL);
	assert_int_equal(fake_seen(f, "kvs-get"), 0);
	put("k", "new");
	assert_int_equal(PMI_Barrier_group(pair, 2, NULL), 0);
	get("k", "new");
	assert_int_equal(fake_seen(f, "kvs-get"), 1);
	assert_int_equal(PMI_Barrier(), 0);
	get("k", "new");
	assert_int_equal(fake_seen(f, "kvs-get"), 1);
	get("none", NULL);
	assert_int_equal(fake_seen(f, "kvs-get"), 2);
}

SESSION_TEST(fails_when_what_was_put_is_refused, .extended = true, .groups = true, .refuse_puts = true)
{
	put("k", "v");
	assert_int_not_equal(PMI_Barrier_group(pair, 2, NULL), 0);
}

static void has_no_groups(const struct fake_options *options)
{
	struct fake *f = start(options);

	assert_int_equal(PMI_Barrier_group(PMI_GROUP_SELF, 0, NULL), PMI_FAIL);
	assert_int_equal(PMI_Barrier_group(pair, 2, NULL), PMI_FAIL);
	assert_string_equal(fake_group(f), "");
	assert_int_equal(PMI_Barrier_group(PMI_GROUP_WORLD, 0, NULL), 0);
	unit_end(f);
}

TEST(says_when_the_server_has_no_groups)
{
	has_no_groups(&(struct fake_options){ .extended = true });
	has_no_groups(&(struct fake_options){ .pmi1_only = true });
	has_no_groups(&(struct fake_options){ .groups = true }); /* plain PMI-2 */
}

TEST(refuses_what_is_no_group)
{
	static const int twice[] = { 1, 2, 1 }, unknown[] = { 1, FAKE_SIZE },
			 negative[] = { 1, -1 }, foreign[] = { 0, 2 };
	struct fake *f = start(&(struct fake_options){ .extended = true,
						       .groups = true });

	assert_int_equal(PMI_Barrier_group(pair, 0, NULL), PMI_ERR_INVALID_ARG);
	assert_int_equal(PMI_Barrier_group(pair, -1, NULL),
			 PMI_ERR_INVALID_ARG);
	assert_int_equal(PMI_Barrier_group(twice, 3, NULL),
			 PMI_ERR_INVALID_ARG);
	assert_int_equal(PMI_Barrier_group(unknown, 2, NULL),
			 PMI_ERR_INVALID_ARG);
	assert_int_equal(PMI_Barrier_group(negative, 2, NULL),
			 PMI_ERR_INVALID_ARG);
	assert_int_equal(PMI_Barrier_group(foreign, 2, NULL),
			 PMI_ERR_INVALID_ARG);
	assert_string_equal(fake_group(f), "");
}

/* ---- threads ---- */

static void *enter(void *tag)
{
	return PMI_Barrier_group(pair, 2, tag) ? tag : NULL;
}

/* Both are under way at once; the server answers in any order, one with an error. */
static void threads_are_in_different_groups(const struct fake_options *options)
{
	char *tags[] = { "a", "b" };
	struct fake *f = start(options);
	pthread_t threads[2];
	void *failed;

	put("k", "v");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, enter, tags[i]);
	fake_await(f, 2);
	if (options->pmi1_only)
		get("k", "v");
	fake_release(f, 2);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed);
		assert_ptr_equal(failed, i == 0 && options->refuse_tag ?
					 tags[0] : NULL);
	}
	unit_end(f);
}

TEST(serves_threads)
{
	threads_are_in_different_groups(&(struct fake_options){
		.extended = true, .groups = true, .hold_fences = true });
	threads_are_in_different_groups(&(struct fake_options){
		.pmi1_only = true, .groups = true, .hold_fences = true,
		.refuse_tag = TAG_A });
	threads_are_in_different_groups(&(struct fake_options){
		.pmi1_only = true, .groups = true, .hold_fences = true,
		.refuse_tag = TAG_A, .reverse = true });
}
