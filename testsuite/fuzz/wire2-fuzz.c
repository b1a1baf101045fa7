/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-2: framing and decoding; what can be written reads back the same. */
#include "fuzz.h"

#include "fuzz-message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	long len = pmi2_frame((const char *)data, size);
	struct pmi_message m;
	char *copy;

	if (len <= 0)
		return 0;
	FUZZ_CHECK((size_t)len <= size);
	FUZZ_CHECK(pmi2_frame((const char *)data, len - 1) == 0);
	copy = fuzz_copy(data, len, 0);
	pmi_message_init(&m);
	if (!pmi2_decode(copy, len, &m)) {
		fuzz_message_look(&m, copy, len);
		fuzz_message_rewrite(&m, PMI_PROTOCOL_2);
		fuzz_message_rewrite(&m, PMI_PROTOCOL_1);
	}
	pmi_message_free(&m);
	free(copy);
	return 0;
}
