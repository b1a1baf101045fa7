/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of a store: an error that names the limit, and the memory comes back. */
#include "bed.h"

static struct bed b;
static struct bed_client x;

static int teardown(void **state)
{
	bed_hang_up(&x);
	bed_close(&b);
	return 0;
}

static void open_with(struct store_options options)
{
	b.options = options;
	bed_open(&b, 2);
	bed_client(&b, &x, STORE_SYNC);
}

static void assert_refused(enum store_status status, const char *text)
{
	assert_true(bed_answered(&x));
	assert_int_equal(x.status, status);
	assert_non_null(strstr(x.text, text));
}

static void ask_sized(enum store_op op, size_t key, size_t value)
{
	char *room = calloc(1, STORE_VALUE_MAX + 1);
	const struct store_bytes k = { room, key };
	const struct store_request rq = {
		.op = op, .keys = &k, .nkeys = 1, .value = { room, value },
	};

	assert_non_null(room);
	store_ask(x.client, 1, &rq);
	free(room);
}

#define CASE(name) TEST_WITH(name, NULL, teardown)

CASE(long_keys_and_values_are_refused)
{
	open_with((struct store_options){ 0 });
	ask_sized(STORE_SET, STORE_KEY_MAX + 1, 0);
	assert_refused(STORE_INVALID, "8 KiB");
	ask_sized(STORE_SET, 1, STORE_VALUE_MAX + 1);
	assert_refused(STORE_INVALID, "8 MiB");
	ask_sized(STORE_SET, STORE_KEY_MAX, STORE_VALUE_MAX);
	assert_true(bed_answered(&x));
	assert_int_equal(x.status, STORE_OK);
	ask_sized(STORE_APPEND, STORE_KEY_MAX, 1);
	assert_refused(STORE_FULL, "8 MiB");
}

CASE(wrong_numbers_of_keys_are_refused)
{
	open_with((struct store_options){ 0 });
	bed_ask(&x, STORE_SET, "", "1");
	assert_refused(STORE_INVALID, "number of keys");
	bed_ask(&x, STORE_SET, "a b", "1");
	assert_refused(STORE_INVALID, "number of keys");
	bed_ask(&x, STORE_WAIT, "", NULL);
	assert_refused(STORE_INVALID, "number of keys");
	bed_ask(&x, STORE_COUNT, "a", NULL);
	assert_refused(STORE_INVALID, "number of keys");
	bed_ask(&x, STORE_OPS, "a", NULL);
	assert_refused(STORE_INVALID, "unknown");
}

CASE(number_of_keys_is_limited_and_delete_makes_room)
{
	open_with((struct store_options){ .keys = 2 });
	bed_add(&x, "a", 1);
	assert_true(bed_answered(&x));
	bed_add(&x, "b", 1);
	assert_true(bed_answered(&x));
	bed_add(&x, "c", 1);
	assert_refused(STORE_FULL, "2 keys");
	bed_ask(&x, STORE_WAIT, "c", NULL);
	assert_refused(STORE_FULL, "2 keys");
	assert_int_equal(store_pending(x.client), 0);
	bed_ask(&x, STORE_DELETE, "a", NULL);
	assert_true(bed_answered(&x));
	bed_add(&x, "c", 1);
	assert_true(bed_answered(&x));
	assert_int_equal(x.number, 1);
}

CASE(bytes_are_limited_and_come_back)
{
	open_with((struct store_options){ .bytes = 1 << 20 });
	for (int i = 0; i < 10; i++) {
		ask_sized(STORE_SET, 1, 1000000);
		assert_true(bed_answered(&x));
		assert_int_equal(x.status, STORE_OK);
		ask_sized(STORE_SET, 2, 1000000);
		assert_refused(STORE_FULL, "1 MiB");
		ask_sized(STORE_DELETE, 1, 0);
		assert_true(bed_answered(&x));
		assert_int_equal(x.number, 1);
	}
}

CASE(budget_of_the_step_is_a_limit_too)
{
	struct budget budget;

	budget_init(&budget, 1000, "Pmi2xBufferLimit", NULL);
	open_with((struct store_options){ .budget = &budget });
	ask_sized(STORE_SET, 1, 1001);
	assert_refused(STORE_FULL, "Pmi2xBufferLimit");
	bed_ask(&x, STORE_COUNT, "", NULL);
	assert_true(bed_answered(&x));
	assert_int_equal(x.number, 0);
	ask_sized(STORE_SET, 1, 1000);
	assert_true(bed_answered(&x));
	ask_sized(STORE_DELETE, 1, 0);
	assert_true(bed_answered(&x));
	assert_int_equal(budget.used, 0);
}

CASE(waits_of_a_client_take_bytes_and_give_them_back)
{
	open_with((struct store_options){ .bytes = 100000 });
	for (int round = 0; round < 3; round++) {
		uint32_t waits = 0;

		do {
			bed_ask(&x, STORE_WAIT, "a b c", NULL);
			waits++;
		} while (!bed_answered(&x));
		assert_int_equal(x.status, STORE_FULL);
		assert_true(waits > 100 && waits < 1000);
		bed_hang_up(&x);
		bed_client(&b, &x, STORE_SYNC);
	}
}
