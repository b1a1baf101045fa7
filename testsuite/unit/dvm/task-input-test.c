/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input of a task, as JSON. */
#include "unit.h"


#include "dvm/core/dvm_msg.h"
#include "dvm/json/text.h"

TEST(every_byte_arrives)
{
	char bytes[256], *back;
	json_t *text;
	size_t len;

	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	text = text_of_bytes(bytes, sizeof(bytes));
	assert_true(text_take_bytes(text, &back, &len));
	assert_int_equal(len, sizeof(bytes));
	assert_memory_equal(back, bytes, len);
	free(back);
	json_decref(text);
}

static void assert_rejected(json_t *value)
{
	char *data = NULL;
	size_t len;

	assert_false(text_take_bytes(value, &data, &len));
	free(data);
	json_decref(value);
}

TEST(other_values_are_rejected)
{
	char *large = calloc(1, DVM_INPUT_MAX + 1);

	assert_rejected(json_integer(7));
	assert_rejected(json_string("\xe2\x82\xac"));
	assert_rejected(text_of_bytes(large, DVM_INPUT_MAX + 1));
	free(large);
}
