/* SPDX-License-Identifier: BSD-3-Clause */
/* The shorter form of results: what comes back, and what is refused. */
#include "config.h" /* HAVE_LZ4 */

#include "unit.h"

#include <errno.h>

#include "libpmi/compress.h"

#define LEN (4 * COMPRESS_MIN)

static size_t asked; /* of the memory, last */

static struct payload *get(void *arg, size_t len)
{
	asked = len;
	return arg ? NULL : payload_new(len);
}

static const struct image_memory memory = { get, NULL };
static const struct image_memory no_memory = { get, &asked };

/* `noisy` of 16 bytes cannot be foreseen. */
static struct payload *bytes_of(size_t len, unsigned noisy)
{
	struct payload *p = payload_new(len);
	uint32_t x = 1;

	assert_non_null(p);
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		p->data[i] = i % 16 < noisy ? x >> 24 : 'a';
	}
	return p;
}

static void refuse_as(const struct payload *packed, uint64_t len, int expected)
{
	int error = 0;

	assert_null(compress_unpack(packed, len, &memory, &error));
	assert_int_equal(error, expected);
}

#ifdef HAVE_LZ4

static void comes_back(void **state)
{
	for (unsigned noisy = 0; noisy < 8; noisy += 7) {
		struct payload *raw = bytes_of(LEN + noisy, noisy);
		struct payload *packed = compress_pack(raw), *back;
		int error;

		assert_true(compress_available());
		assert_non_null(packed);
		assert_true(packed->len <=
			    raw->len - raw->len / COMPRESS_SAVE);
		back = compress_unpack(packed, raw->len, &memory, &error);
		assert_non_null(back);
		assert_int_equal(back->len, raw->len);
		assert_memory_equal(back->data, raw->data, raw->len);
		payload_unref(back);
		payload_unref(packed);
		payload_unref(raw);
	}
}

static void what_is_little_or_does_not_shrink_stays(void **state)
{
	struct payload *little = bytes_of(COMPRESS_MIN - 1, 0);
	struct payload *enough = bytes_of(COMPRESS_MIN, 0);
	struct payload *noise = bytes_of(LEN, 16);
	struct payload *nearly = bytes_of(LEN, 15); /* shrinks, not enough */
	struct payload *packed = compress_pack(enough);

	assert_non_null(packed);
	assert_null(compress_pack(little));
	assert_null(compress_pack(noise));
	assert_null(compress_pack(nearly));
	payload_unref(packed);
	payload_unref(little);
	payload_unref(enough);
	payload_unref(noise);
	payload_unref(nearly);
}

static void lying_lengths_are_refused(void **state)
{
	struct payload *raw = bytes_of(LEN, 8), *packed = compress_pack(raw);

	assert_non_null(packed);
	asked = 0;
	refuse_as(packed, LEN - 1, -EPROTO);
	refuse_as(packed, LEN + 1, -EPROTO);
	refuse_as(packed, packed->len + 1, -EPROTO);
	refuse_as(packed, packed->len * COMPRESS_RATIO_MAX, -EPROTO);
	refuse_as(packed, 0, -EPROTO);
	refuse_as(packed, packed->len, -EPROTO);
	refuse_as(packed, UINT64_C(2) << 30, -EPROTO);
	refuse_as(packed, UINT64_MAX, -EPROTO);
	packed->len = 100;
	refuse_as(packed, 101 * (uint64_t)COMPRESS_RATIO_MAX, -EPROTO);
	assert_int_equal(asked, 0); /* there was no need to allocate */
	payload_unref(packed);
	payload_unref(raw);
}

static void what_is_cut_short_is_refused(void **state)
{
	struct payload *raw = bytes_of(LEN, 8), *packed = compress_pack(raw);

	assert_non_null(packed);
	for (size_t len = packed->len - 1; len > 0; len -= len / 50 + 1) {
		struct payload *cut = payload_copy(packed->data, len);

		assert_non_null(cut);
		refuse_as(cut, LEN, -EPROTO);
		payload_unref(cut);
	}
	payload_unref(packed);
	payload_unref(raw);
}

/* Other bytes of the right length are for the image's checksum. */
static void damage_stays_inside(void **state)
{
	struct payload *raw = bytes_of(LEN, 8), *packed = compress_pack(raw);
	int refused = 0;

	assert_non_null(packed);
	for (size_t i = 0; i < packed->len; i += packed->len / 500) {
		struct payload *back;
		int error = 0;

		packed->data[i] ^= 0xff;
		back = compress_unpack(packed, LEN, &memory, &error);
		refused += !back;
		assert_int_equal(back ? 0 : error, back ? 0 : -EPROTO);
		payload_unref(back);
		packed->data[i] ^= 0xff;
	}
	assert_true(refused > 0);
	payload_unref(packed);
	payload_unref(raw);
}

static void no_memory_is_told(void **state)
{
	struct payload *raw = bytes_of(LEN, 8), *packed = compress_pack(raw);
	int error = 0;

	assert_non_null(packed);
	assert_null(compress_unpack(packed, LEN, &no_memory, &error));
	assert_int_equal(error, -ENOMEM);
	payload_unref(packed);
	payload_unref(raw);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(comes_back),
	cmocka_unit_test(what_is_little_or_does_not_shrink_stays),
	cmocka_unit_test(lying_lengths_are_refused),
	cmocka_unit_test(what_is_cut_short_is_refused),
	cmocka_unit_test(damage_stays_inside),
	cmocka_unit_test(no_memory_is_told),
};

#else

static void without_lz4_all_is_refused(void **state)
{
	struct payload *raw = bytes_of(LEN, 0);
	int error = 0;

	assert_false(compress_available());
	assert_null(compress_pack(raw));
	refuse_as(raw, 2 * LEN, -ENOTSUP);
	assert_null(compress_unpack(raw, 2 * LEN, &no_memory, &error));
	payload_unref(raw);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(without_lz4_all_is_refused),
};

#endif

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
