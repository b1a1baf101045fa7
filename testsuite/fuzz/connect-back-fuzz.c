/* SPDX-License-Identifier: BSD-3-Clause */
/* "Connect to me": only what proves the step's secret is believed. */
#include "fuzz.h"

#include "agent/peers/connect_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct node *node = fuzz_copy(NULL, 0, sizeof(*node));
	bool proved = fuzz_u8(&in) % 2;
	size_t len = in.left;
	uint8_t *copy = fuzz_copy(in.at, len, 0);
	struct whereabouts where;

	node->self.position = 3;
	if (proved && len >= PROOF_BYTES)
		proof_create(&node->self.secret, copy, len - PROOF_BYTES,
			     copy + len - PROOF_BYTES);
	if (!connect_back_check(node, copy, len, &where))
		FUZZ_CHECK(proved && where.port);
	free(copy);
	free(node);
	return 0;
}
