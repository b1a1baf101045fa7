/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of a store: what each operation answers, and who is woken. */
#include "bed.h"

static struct bed b;
static struct bed_client x, y, z;

static int setup(void **state)
{
	bed_open(&b, 4);
	bed_client(&b, &x, STORE_TORCH);
	bed_client(&b, &y, STORE_TORCH);
	bed_client(&b, &z, STORE_SYNC);
	return 0;
}

static int teardown(void **state)
{
	bed_hang_up(&x);
	bed_hang_up(&y);
	bed_hang_up(&z);
	bed_close(&b);
	return 0;
}

static void assert_answer(struct bed_client *c, int64_t number)
{
	assert_true(bed_answered(c));
	assert_int_equal(c->status, STORE_OK);
	assert_int_equal(c->number, number);
}

static void set(struct bed_client *c, const char *key, const char *value)
{
	bed_ask(c, STORE_SET, key, value);
	assert_true(bed_answered(c));
	assert_int_equal(c->status, STORE_OK);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(value_is_what_was_set_last)
{
	assert_string_equal(bed_get(&x, "a"), "-");
	set(&x, "a", "1");
	set(&y, "a", "two");
	assert_string_equal(bed_get(&x, "a"), "two");
	set(&y, "a", "");
	assert_string_equal(bed_get(&x, "a"), "");
}

CASE(spaces_have_their_own_keys)
{
	set(&x, "a", "1");
	assert_string_equal(bed_get(&z, "a"), "-");
	bed_ask(&z, STORE_COUNT, "", NULL);
	assert_answer(&z, 0);
	bed_ask(&x, STORE_COUNT, "", NULL);
	assert_answer(&x, 1);
}

CASE(keys_of_a_node_are_not_those_of_the_step)
{
	const struct store_bytes key = { "a", 1 };
	struct store_request rq = {
		.op = STORE_SET, .local = true, .keys = &key, .nkeys = 1,
	};

	store_ask(x.client, 7, &rq);
	assert_answer(&x, 0);
	assert_int_equal(x.token, 7);
	assert_string_equal(bed_get(&x, "a"), "-");
	rq.op = STORE_CHECK;
	store_ask(x.client, 8, &rq);
	assert_answer(&x, 1);
}

CASE(several_values_come_in_the_order_of_their_keys)
{
	set(&x, "a", "1");
	set(&x, "c", "3");
	bed_ask(&y, STORE_GET, "c b a", NULL);
	assert_true(bed_answered(&y));
	assert_int_equal(y.nvalues, 3);
	assert_string_equal(y.values[0], "3");
	assert_string_equal(y.values[1], "-");
	assert_string_equal(y.values[2], "1");
}

CASE(compare_set_answers_the_value_that_is_there_then)
{
	bed_compare_set(&x, "a", "old", "new");
	assert_answer(&x, 0);
	assert_string_equal(x.values[0], "old"); /* as PyTorch's server answers */
	assert_string_equal(bed_get(&x, "a"), "-");
	bed_compare_set(&x, "a", "", "new");
	assert_answer(&x, 0);
	assert_string_equal(x.values[0], "new");
	bed_compare_set(&x, "a", "old", "newer");
	assert_answer(&x, 0);
	assert_string_equal(x.values[0], "new");
	bed_compare_set(&x, "a", "new", "newer");
	assert_answer(&x, 0);
	assert_string_equal(x.values[0], "newer");
}

CASE(add_counts_from_nothing_and_keeps_text)
{
	bed_add(&x, "a", 5);
	assert_answer(&x, 5);
	bed_add(&y, "a", -7);
	assert_answer(&y, -2);
	assert_string_equal(bed_get(&x, "a"), "-2");
	set(&x, "a", "40");
	bed_add(&x, "a", 2);
	assert_answer(&x, 42);
}

CASE(add_refuses_what_is_no_number)
{
	static const char *const values[] = { "", "-", "x", "1 ", "0x1", "1.5",
		"9223372036854775808", "99999999999999999999999" };

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		set(&x, "a", values[i]);
		bed_add(&x, "a", 1);
		assert_true(bed_answered(&x));
		assert_int_equal(x.status, STORE_INVALID);
		assert_string_equal(bed_get(&x, "a"), values[i]);
	}
}

CASE(sum_over_64_bits_is_refused)
{
	set(&x, "a", "9223372036854775807");
	bed_add(&x, "a", 1);
	assert_true(bed_answered(&x));
	assert_int_equal(x.status, STORE_INVALID);
	set(&x, "a", "-9223372036854775808");
	bed_add(&x, "a", 1);
	assert_answer(&x, -INT64_MAX);
}

CASE(append_goes_to_the_end)
{
	bed_ask(&x, STORE_APPEND, "a", "one");
	assert_answer(&x, 0);
	bed_ask(&y, STORE_APPEND, "a", "two");
	assert_answer(&y, 0);
	assert_string_equal(bed_get(&x, "a"), "onetwo");
}

CASE(delete_says_whether_the_key_was_there)
{
	set(&x, "a", "1");
	bed_ask(&x, STORE_DELETE, "a", NULL);
	assert_answer(&x, 1);
	bed_ask(&x, STORE_DELETE, "a", NULL);
	assert_answer(&x, 0);
	assert_string_equal(bed_get(&x, "a"), "-");
	bed_ask(&x, STORE_COUNT, "", NULL);
	assert_answer(&x, 0);
}

CASE(check_is_true_when_all_keys_exist)
{
	set(&x, "a", "1");
	bed_ask(&x, STORE_CHECK, "a b", NULL);
	assert_answer(&x, 0);
	set(&x, "b", "");
	bed_ask(&x, STORE_CHECK, "a b", NULL);
	assert_answer(&x, 1);
}

CASE(wait_ends_when_the_last_key_exists)
{
	bed_ask(&x, STORE_WAIT, "a b c", NULL);
	set(&y, "c", "3");
	set(&y, "a", "1");
	assert_false(bed_answered(&x));
	assert_int_equal(store_waiting(b.store), 1);
	bed_ask(&y, STORE_APPEND, "b", "2");
	assert_answer(&x, 0);
	assert_int_equal(store_waiting(b.store), 0);
	bed_ask(&x, STORE_WAIT, "b", NULL);
	assert_answer(&x, 0);
}

CASE(wait_does_not_end_by_a_key_that_was_deleted)
{
	bed_ask(&x, STORE_WAIT, "a b", NULL);
	set(&y, "a", "1");
	bed_ask(&y, STORE_DELETE, "a", NULL);
	assert_true(bed_answered(&y));
	set(&y, "b", "1");
	assert_false(bed_answered(&x));
	set(&y, "a", "1");
	assert_answer(&x, 0);
}

CASE(key_that_is_waited_for_does_not_exist)
{
	bed_ask(&x, STORE_WAIT, "a", NULL);
	bed_ask(&y, STORE_COUNT, "", NULL);
	assert_answer(&y, 0);
	bed_ask(&y, STORE_CHECK, "a", NULL);
	assert_answer(&y, 0);
	assert_string_equal(bed_get(&y, "a"), "-");
	bed_compare_set(&y, "a", "", "1");
	assert_answer(&y, 0);
	assert_answer(&x, 0);
}

CASE(fetch_waits_and_brings_the_values)
{
	bed_ask(&x, STORE_FETCH, "a b", NULL);
	bed_add(&y, "b", 2);
	assert_answer(&y, 2);
	assert_false(bed_answered(&x));
	bed_add(&y, "a", 1);
	assert_answer(&x, 0);
	assert_string_equal(x.values[0], "1");
	assert_string_equal(x.values[1], "2");
}

CASE(cancelled_wait_is_not_answered)
{
	bed_ask(&x, STORE_WAIT, "a", NULL);
	assert_true(store_cancel(x.client, x.token));
	assert_false(store_cancel(x.client, x.token));
	set(&y, "a", "1");
	assert_false(bed_answered(&x));
	assert_int_equal(store_pending(x.client), 0);
}

CASE(client_that_ends_waits_no_more)
{
	bed_ask(&x, STORE_WAIT, "a", NULL);
	bed_ask(&y, STORE_WAIT, "a", NULL);
	bed_hang_up(&x);
	bed_client(&b, &x, STORE_TORCH);
	set(&x, "a", "1");
	assert_answer(&y, 0);
	assert_false(bed_answered(&x));
}

CASE(keys_of_any_bytes_differ)
{
	static const struct store_bytes keys[] = { { "a\0b", 3 }, { "a\0c", 3 }, { "a", 1 }, { "", 0 } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct store_request rq = {
			.op = STORE_ADD, .keys = &keys[i], .nkeys = 1, .number = 1,
		};

		store_ask(x.client, i, &rq);
		assert_answer(&x, 1);
	}
}

/* The request misses its second key; connections of PyTorch have no rank. */
CASE(missing_key_and_connections_of_pytorch_are_told)
{
	char text[STORE_TEXT_MAX];

	set(&x, "a", "1");
	bed_ask(&x, STORE_WAIT, "a b c", NULL);
	bed_ask(&y, STORE_WAIT, "a b", NULL);
	store_tell_wait(b.store, 3, text);
	assert_string_equal(text, "key b (of 3 keys): 3 s, 2 connections of PyTorch wait for it, and it has no value");
}
