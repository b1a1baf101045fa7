/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compressed results that came over a link: whatever the bytes and the length
 * that is claimed, there comes a result of that length or an error; and memory is
 * asked for when it is the length that the bytes stand for.
 */
#include "config.h" /* HAVE_LZ4 */

#include "fuzz.h"

#include <errno.h>
#include <string.h>
#ifdef HAVE_LZ4
#include <lz4.h>
#endif

#include "libpmi/compress.h"

#define RAW_MAX (1 << 20) /* bytes */

/* How long the result is, as the library finds by making it; -1: it is none. */
static int true_len(const struct payload *packed)
{
#ifdef HAVE_LZ4
	static char raw[RAW_MAX];

	return LZ4_decompress_safe((const char *)packed->data, raw,
				   (int)packed->len, RAW_MAX);
#else
	return -1;
#endif
}

/* Memory is asked for a result that is there, or for one that ends wrongly. */
static struct payload *get(void *arg, size_t len)
{
	int expected = true_len(arg);

	FUZZ_CHECK(expected < 0 || (size_t)expected == len);
	return payload_new(len);
}

static struct payload *get_any(void *arg, size_t len)
{
	return payload_new(len);
}

/* The input again and again, as long as what is packed. */
static struct payload *repeated(const uint8_t *data, size_t size)
{
	struct payload *p = payload_new(COMPRESS_MIN);

	FUZZ_CHECK(p);
	for (size_t i = 0; i < p->len; i++)
		p->data[i] = size ? data[i % size] : 0;
	return p;
}

static void round_trip(const uint8_t *data, size_t size)
{
	struct image_memory memory = { .get = get_any };
	struct payload *raw = repeated(data, size);
	struct payload *packed = compress_pack(raw);
	struct payload *again;
	int error;

	if (packed) {
		again = compress_unpack(packed, raw->len, &memory, &error);
		FUZZ_CHECK(again && again->len == raw->len &&
			   !memcmp(again->data, raw->data, raw->len));
		payload_unref(again);
	}
	payload_unref(packed);
	payload_unref(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_memory memory = { .get = get };
	struct fuzz_input in = { data, size };
	uint64_t len = fuzz_u32(&in);
	struct payload *packed, *raw;
	int error = 0;

	packed = payload_copy(in.at, in.left);
	FUZZ_CHECK(packed);
	memory.arg = packed;
	raw = compress_unpack(packed, len, &memory, &error);
	if (raw)
		FUZZ_CHECK(raw->len == len);
	else
		FUZZ_CHECK(error == -EPROTO || error == -ENOMEM ||
			   error == -ENOTSUP);
	payload_unref(raw);
	payload_unref(packed);
	round_trip(data, size);
	return 0;
}
