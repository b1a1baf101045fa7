/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compressed results that came over a link: whatever the bytes and the length
 * that is claimed, there comes a result of that length or an error.
 */
#include "fuzz.h"

#include <errno.h>

#include "libpmi/compress.h"

static struct payload *get(void *arg, size_t len)
{
	return payload_new(len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct image_memory memory = { get, NULL };
	struct fuzz_input in = { data, size };
	uint64_t len = fuzz_u32(&in);
	struct payload *packed, *raw;
	int error = 0;

	packed = payload_copy(in.at, in.left);
	FUZZ_CHECK(packed);
	raw = compress_unpack(packed, len, &memory, &error);
	if (raw)
		FUZZ_CHECK(raw->len == len);
	else
		FUZZ_CHECK(error == -EPROTO || error == -ENOMEM ||
			   error == -ENOTSUP);
	payload_unref(raw);
	payload_unref(packed);
	return 0;
}
