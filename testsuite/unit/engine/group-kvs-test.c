/* SPDX-License-Identifier: BSD-3-Clause */
/* Values between a group's barrier and the fence that brings them again. */
#include "unit.h"

#include <errno.h>

#include "libengine/group_kvs.h"

static int put(struct early *e, const char *key, const char *value,
	       uint32_t fence)
{
	const struct record r = {
		.key = key, .key_len = strlen(key),
		.value = value, .value_len = strlen(value),
	};

	return early_put(e, &r, fence);
}

static const char *get(const struct early *e, const char *key)
{
	const char *value;
	size_t len;

	if (!early_find(e, key, strlen(key), &value, &len))
		return NULL;
	assert_int_equal(strlen(value), len);
	return value;
}

TEST(a_value_is_there_until_its_fence)
{
	struct early e;

	early_init(&e, 1, NULL);
	assert_null(get(&e, "a"));
	assert_int_equal(put(&e, "a", "1", 3), 0);
	assert_int_equal(put(&e, "b", "2", 4), 0);
	early_fenced(&e, 2);
	assert_string_equal(get(&e, "a"), "1");
	early_fenced(&e, 3);
	assert_null(get(&e, "a"));
	assert_string_equal(get(&e, "b"), "2");
	early_free(&e);
	assert_int_equal(e.used, 0);
}

TEST(the_last_value_of_a_key_counts)
{
	struct early e;

	early_init(&e, 1, NULL);
	put(&e, "a", "1", 5);
	put(&e, "a", "22", 3);
	assert_string_equal(get(&e, "a"), "22");
	early_fenced(&e, 4); /* the fence of the first has yet to come */
	assert_string_equal(get(&e, "a"), "22");
	early_free(&e);
}

/* A program that exchanges the same again and again needs no more memory. */
TEST(the_same_again_costs_nothing)
{
	struct early e;
	size_t used;

	early_init(&e, 1, NULL);
	put(&e, "a", "1", 0);
	used = e.used;
	for (uint32_t i = 1; i < 100; i++)
		assert_int_equal(put(&e, "a", i % 2 ? "2" : "1", i), 0);
	assert_int_equal(e.used, used);
	early_free(&e);
}

TEST(group_kvs_has_a_limit)
{
	struct budget budget;
	struct early e;
	char *value = malloc(EARLY_MAX);

	memset(value, 'x', EARLY_MAX - 1);
	value[EARLY_MAX - 1] = '\0';
	early_init(&e, 1, NULL);
	assert_int_equal(put(&e, "a", value, 0), -ENOSPC);
	assert_null(get(&e, "a"));
	early_free(&e);
	budget_init(&budget, 100, "Option", NULL);
	early_init(&e, 1, &budget);
	value[1000] = '\0';
	assert_int_equal(put(&e, "a", value, 0), -ENOMEM);
	assert_int_equal(budget.used, 0);
	early_free(&e);
	free(value);
}
