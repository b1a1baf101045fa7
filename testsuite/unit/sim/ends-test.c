/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's reader of ended tasks. */
#include "unit.h"

#include <string.h>

#include "dvm_ends.h"

#define LINE(tasks) "{\"ev\":\"ended\",\"tasks\":[" tasks "]}\n"

TEST(ends_are_read_with_numbers_and_times)
{
	struct dvm_ends ends;
	struct dvm_end e;

	assert_true(dvm_ends_begin(&ends, LINE("{\"id\":7,\"state\":\"done\",\"instance\":2,\"t\":[1.5,2.5,3.5,4.5],\"nodes\":[\"n1\"],\"code\":0},{\"id\":8,\"code\":3}")));
	assert_true(dvm_ends_next(&ends, &e));
	assert_int_equal(e.id, 7);
	assert_int_equal(e.instance, 2);
	assert_int_equal(e.code, 0);
	for (int i = 0; i < 4; i++)
		assert_true(e.t[i] == 1.5 + i);
	assert_true(dvm_ends_next(&ends, &e));
	assert_int_equal(e.id, 8);
	assert_int_equal(e.code, 3);
	assert_false(dvm_ends_next(&ends, &e));
	assert_string_equal(ends.at, "]}\n");
}

TEST(texts_and_objects_in_an_end_are_skipped)
{
	struct dvm_ends ends;
	struct dvm_end e;

	assert_true(dvm_ends_begin(&ends, LINE("{\"why\":\"\\\"id\\\":1,}]\\\\\",\"x\":{\"id\":2,\"y\":[\"]\"]},\"id\":3}")));
	assert_true(dvm_ends_next(&ends, &e));
	assert_int_equal(e.id, 3);
	assert_string_equal(ends.at, "]}\n");
}

TEST(another_event_or_a_torn_line_is_no_end)
{
	static const char whole[] = LINE("{\"id\":7,\"t\":[1,2,3,4],\"why\":\"a\\\"b\"}");
	struct dvm_ends ends;
	struct dvm_end e;

	assert_false(dvm_ends_begin(&ends, "{\"ev\":\"submitted\"}\n"));
	assert_false(dvm_ends_next(&ends, &e));
	for (size_t len = 0; len < strlen(whole) - strlen("]}\n"); len++) {
		char line[sizeof(whole)] = "";

		memcpy(line, whole, len);
		assert_false(dvm_ends_begin(&ends, line) && dvm_ends_next(&ends, &e));
	}
}
