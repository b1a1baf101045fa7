/* SPDX-License-Identifier: BSD-3-Clause */
/* The pure parts of the client library: text form of bytes, cliques. */
#include "unit.h"

#include <errno.h>

#include "../../../contrib/libpmi2x/clique.h"
#include "../../../contrib/libpmi2x/text.h"

static void round_trip(const void *data, size_t len)
{
	struct value v = { NULL, 0 };

	assert_int_equal(text_encode(data, len, &v), 0);
	assert_int_equal(strlen(v.data), v.len);
	assert_null(strpbrk(v.data, "; \n"));
	assert_int_equal(text_length(v.data, v.len), v.len);
	assert_int_equal(text_decode(&v), 0);
	assert_int_equal(v.len, len);
	assert_memory_equal(v.data, data, len);
	value_free(&v);
}

TEST(any_bytes_come_back)
{
	unsigned char bytes[1500];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * i + 13 * i);
	for (size_t len = 0; len < sizeof(bytes); len++)
		round_trip(bytes, len);
	round_trip("%b64:3:YWJj", 11);
}

TEST(plain_text_stays_as_it_is)
{
	struct value v = { NULL, 0 };

	assert_int_equal(text_encode("a=b,c\xc3\xa9", 7, &v), 0);
	assert_string_equal(v.data, "a=b,c\xc3\xa9");
	value_free(&v);
}

TEST(malformed_text_is_refused)
{
	static const char *const bad[] = {
		"%b64:", "%b64::", "%b64:1", "%b64:x:AA", "%b64:1:A",
		"%b64:1:A;", "%b64:2:AA", "%b64:99999999999999999999:A",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct value v = { NULL, 0 };

		assert_int_equal(value_set(&v, bad[i], strlen(bad[i])), 0);
		assert_int_equal(text_decode(&v), -EPROTO);
		value_free(&v);
	}
}

/* ---- cliques ---- */

static void assert_clique(const char *mapping, int rank, int size,
			  const int *want, int count)
{
	int ranks[16];

	assert_int_equal(clique_find(mapping, rank, size, ranks, 16), count);
	for (int i = 0; i < count; i++)
		assert_int_equal(ranks[i], want[i]);
}

TEST(finds_who_shares_the_node)
{
	assert_clique("(vector,(0,1,1))", 0, 1, (int[]){ 0 }, 1);
	assert_clique("(vector,(0,2,3))", 4, 6, (int[]){ 3, 4, 5 }, 3);
	assert_clique("(vector,(0,4,1))", 1, 10, (int[]){ 1, 5, 9 }, 3);
	assert_clique("(vector,(0,1,2),(1,1,1))", 2, 6, (int[]){ 2, 5 }, 2);
	assert_clique(" ( vector , ( 0 , 2 , 1 ) ) ", 0, 3, (int[]){ 0, 2 }, 2);
	assert_clique("(vector,(0,2,1),(0,2,1))", 3, 4, (int[]){ 1, 3 }, 2);
}

TEST(reports_more_than_fit)
{
	int ranks[2];

	assert_int_equal(clique_find("(vector,(0,1,8))", 0, 8, ranks, 2), 8);
	assert_int_equal(ranks[1], 1);
}

TEST(refuses_what_is_no_mapping)
{
	static const char *const bad[] = {
		"", "(", "vector", "(vector)", "(vector,)", "(vector,(0,1))",
		"(vector,(0,0,1))", "(vector,(0,1,0))", "(vector,(0,1,1)",
		"(vector,(0,1,1),)", "(vector,(0,1,-1))", "(vector,(a,1,1))",
		"(vector,(99999999999999999999,1,1))",
		"(vector,(9223372036854775807,4,1))",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(clique_find(bad[i], 0, 4, NULL, 0), -EPROTO);
}
