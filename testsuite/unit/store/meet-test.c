/* SPDX-License-Identifier: BSD-3-Clause */
/* Meetings of ranks: who is waited for, and how they fail. */
#include "bed.h"

#define RANKS 3

static struct bed b;
static struct bed_client c[RANKS];

static int setup(void **state)
{
	bed_open(&b, RANKS);
	for (int i = 0; i < RANKS; i++)
		bed_client(&b, &c[i], STORE_SYNC);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < RANKS; i++)
		bed_hang_up(&c[i]);
	bed_close(&b);
	return 0;
}

static void enter(uint32_t rank, const char *name)
{
	bed_meet(&c[rank], name, rank, NULL);
}

static void assert_ok(uint32_t rank)
{
	assert_true(bed_answered(&c[rank]));
	assert_int_equal(c[rank].status, STORE_OK);
}

static void assert_failed(uint32_t rank, enum store_status status, const char *text)
{
	assert_true(bed_answered(&c[rank]));
	assert_int_equal(c[rank].status, status);
	assert_string_equal(c[rank].text, text);
}

static void missing(uint32_t rank, const char *name, const char *text)
{
	bed_ask(&c[rank], STORE_MISSING, name, NULL);
	assert_true(bed_answered(&c[rank]));
	assert_string_equal(c[rank].text, text);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(barrier_ends_with_the_last_rank_again_and_again)
{
	for (int i = 0; i < 3; i++) {
		enter(2, "b");
		enter(0, "b");
		assert_false(bed_answered(&c[0]) || bed_answered(&c[2]));
		enter(1, "b");
		for (uint32_t rank = 0; rank < RANKS; rank++)
			assert_ok(rank);
	}
}

CASE(names_are_apart)
{
	enter(0, "a");
	enter(1, "b");
	enter(2, "a");
	missing(1, "a", "rank 1 (node n0)");
	missing(1, "b", "ranks 0, 2 (node n0)");
	missing(1, "c", "ranks 0-2 (node n0)");
}

CASE(gather_brings_values_in_rank_order)
{
	bed_meet(&c[2], "g", 2, "two");
	bed_meet(&c[0], "g", 0, "");
	bed_meet(&c[1], "g", 1, "one");
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		assert_ok(rank);
		assert_int_equal(c[rank].nvalues, RANKS);
		assert_string_equal(c[rank].values[0], "");
		assert_string_equal(c[rank].values[1], "one");
		assert_string_equal(c[rank].values[2], "two");
	}
}

CASE(barrier_does_not_end_by_a_client_that_has_gone)
{
	enter(0, "b");
	bed_hang_up(&c[0]);
	bed_client(&b, &c[0], STORE_SYNC);
	enter(1, "b");
	enter(2, "b");
	assert_false(bed_answered(&c[1]) || bed_answered(&c[2]));
	missing(0, "b", "rank 0 (node n0)");
	enter(0, "b");
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_ok(rank);
}

CASE(rank_enters_once)
{
	enter(0, "b");
	bed_meet(&c[1], "b", 0, NULL);
	assert_failed(1, STORE_INVALID, "another process of rank 0 is in barrier b already: give one of the two another name");
	bed_meet(&c[1], "b", RANKS, NULL);
	assert_failed(1, STORE_INVALID, "rank 3 does not run in this step");
	missing(1, "b", "ranks 1-2 (node n0)");
}

CASE(rank_that_ends_fails_the_barriers_that_miss_it)
{
	enter(0, "b");
	bed_meet(&c[1], "g\n", 1, "value");
	store_rank_gone(b.store, 1, "exited with exit code 5");
	assert_failed(0, STORE_FAILED, "barrier b cannot end: rank 1 (node n0) exited with exit code 5 and is not in it");
	assert_false(bed_answered(&c[1]));
	store_rank_gone(b.store, 2, "exited");
	assert_failed(1, STORE_FAILED, "allgather g? cannot end: rank 2 (node n0) exited and is not in it");
	enter(0, "later");
	assert_failed(0, STORE_FAILED, "barrier later cannot end: rank 1 (node n0) exited with exit code 5 and is not in it");
}

CASE(rank_that_ends_in_a_barrier_is_missing)
{
	enter(0, "b");
	enter(1, "b");
	store_rank_gone(b.store, 1, "exited");
	assert_false(bed_answered(&c[0]));
	bed_hang_up(&c[1]); /* its process has ended, too */
	bed_client(&b, &c[1], STORE_SYNC);
	assert_failed(0, STORE_FAILED, "barrier b cannot end: rank 1 (node n0) exited and is not in it");
}

CASE(many_different_ends_are_remembered_in_bounded_memory)
{
	char how[32];

	bed_hang_up(&c[0]);
	bed_hang_up(&c[1]);
	bed_hang_up(&c[2]);
	bed_close(&b);
	bed_open(&b, 1000);
	for (int i = 0; i < RANKS; i++)
		bed_client(&b, &c[i], STORE_SYNC);
	for (uint32_t rank = 999; rank > 0; rank--) {
		snprintf(how, sizeof(how), "exited with exit code %u", rank);
		store_rank_gone(b.store, rank, how);
	}
	enter(0, "b");
	assert_failed(0, STORE_FAILED, "barrier b cannot end: rank 1 (node n0) has ended and is not in it");
}
