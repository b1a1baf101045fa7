/* SPDX-License-Identifier: BSD-3-Clause */
/* "Connect to me": only what proves the step's secret is believed. */
#include "fuzz.h"

#include "agent/agent_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct pmi_step step = { .position = 3 };
	struct agent *a = fuzz_copy(NULL, 0, sizeof(*a));
	bool proved = fuzz_u8(&in) % 2;
	size_t len = in.left;
	uint8_t *copy = fuzz_copy(in.at, len, 0);
	struct whereabouts where;

	a->step = &step;
	if (proved && len >= PROOF_BYTES)
		proof_create(&a->self.secret, copy, len - PROOF_BYTES,
			     copy + len - PROOF_BYTES);
	if (!agent_tell_check(a, copy, len, &where))
		FUZZ_CHECK(proved && where.port);
	free(copy);
	free(a);
	return 0;
}
