/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of any server that the client library reads: the process mapping, the text
 * form of bytes, lists of numbers.
 */
#include "fuzz.h"

#include <errno.h>
#include <limits.h>

#include "api.h"
#include "clique.h"
#include "text.h"

#define RANKS 64

static void mapping(const char *text, uint32_t rank)
{
	int ranks[8], n = clique_find(text, rank, RANKS, ranks, 8);

	FUZZ_CHECK(n == -EPROTO || (n >= 1 && n <= RANKS));
	for (int i = 0; i < n && i < 8; i++)
		FUZZ_CHECK(ranks[i] >= 0 && ranks[i] < RANKS &&
			   (i == 0 || ranks[i] > ranks[i - 1]));
}

static void decode(const char *text, size_t len)
{
	struct value v = { NULL, 0 };

	FUZZ_CHECK(!value_set(&v, text, len));
	FUZZ_CHECK(text_length(v.data, v.len) <= LONG_MAX);
	text_decode(&v);
	value_free(&v);
}

static void encode(const char *bytes, size_t len)
{
	struct value v = { NULL, 0 };

	FUZZ_CHECK(!text_encode(bytes, len, &v));
	FUZZ_CHECK(text_length(v.data, v.len) == (long)v.len);
	FUZZ_CHECK(!memchr(v.data, ';', v.len) && !memchr(v.data, ' ', v.len));
	FUZZ_CHECK(!text_decode(&v));
	FUZZ_CHECK(v.len == len && !memcmp(v.data, bytes, len));
	value_free(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t what = fuzz_u8(&in);
	size_t len = in.left;
	char *text = fuzz_copy(in.at, len, 1);
	int numbers[4], n;

	switch (what % 4) {
	case 0:
		mapping(text, what / 4);
		break;
	case 1:
		decode(text, len);
		break;
	case 2:
		encode(text, len);
		break;
	default:
		n = parse_ints(text, numbers, 4);
		FUZZ_CHECK(n <= 4);
	}
	free(text);
	return 0;
}
