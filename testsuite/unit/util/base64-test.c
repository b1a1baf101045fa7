/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as text of 64 characters, and back. */
#include "unit.h"


#include "libutil/base64.h"

#define LENGTHS 100

TEST(vectors_of_the_standard_are_met)
{
	static const char *const pairs[][2] = {
		{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
	};
	char text[16];

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		size_t n = strlen(pairs[i][0]);

		assert_int_equal(BASE64_LEN(n), strlen(pairs[i][1]));
		base64_encode(pairs[i][0], n, text);
		assert_memory_equal(text, pairs[i][1], BASE64_LEN(n));
	}
}

TEST(all_bytes_come_back)
{
	unsigned char data[256 + LENGTHS], back[BASE64_LEN(sizeof(data)) / 4 * 3];
	char text[BASE64_LEN(sizeof(data))];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	for (size_t n = sizeof(data) - LENGTHS; n <= sizeof(data); n++) {
		base64_encode(data, n, text);
		assert_int_equal(base64_decode(text, BASE64_LEN(n), back), n);
		assert_memory_equal(back, data, n);
	}
}

TEST(other_text_is_refused)
{
	static const char *const texts[] = {
		"Zg", "Zg=", "Zg==Zg==", "Z g=", "====", "Zm9\x80", "=m9v", "Zg=v",
	};
	char out[16];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_true(base64_decode(texts[i], strlen(texts[i]), out) == SIZE_MAX);
}
