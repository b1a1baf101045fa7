/* SPDX-License-Identifier: BSD-3-Clause */
/* "Connect to me": only what proves the step's secret is believed. */
#include "fuzz.h"

#include "libio/agent_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct pmi_step step = { .position = 3 };
	struct agent *a = fuzz_copy(NULL, 0, sizeof(*a));
	bool proved = fuzz_u8(&in) % 2;
	size_t len = in.left;
	uint8_t *copy = fuzz_copy(in.at, len, 0);
	uint32_t from;
	uint16_t port;

	a->step = &step;
	if (proved && len >= PROOF_BYTES)
		proof_create(&a->options.secret, copy, len - PROOF_BYTES,
			     copy + len - PROOF_BYTES);
	if (!agent_tell_check(a, copy, len, &from, &port))
		FUZZ_CHECK(proved && port);
	free(copy);
	free(a);
	return 0;
}
