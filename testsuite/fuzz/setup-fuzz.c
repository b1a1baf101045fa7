/* SPDX-License-Identifier: BSD-3-Clause */
/* The setup of an agent, and messages with the process that started it. */
#include "fuzz.h"

#include "agent/setup.h"
#include "libconfine/host_msg.h"

static void check_message(const uint8_t *data, size_t len)
{
	struct host_msg m;

	if (host_msg_unpack(&m, data, len))
		return;
	FUZZ_CHECK(m.len <= HOST_DATA_MAX && m.type < HOST_TYPES);
}

static void check_setup(uint8_t *data, size_t len)
{
	struct setup s;

	if (setup_unpack(&s, data, len))
		return;
	FUZZ_CHECK(s.step.position < layout_nodes(s.step.layout));
	for (uint32_t i = 0; i < layout_nodes(s.step.layout); i++)
		FUZZ_CHECK(s.step.node_names[i]);
	setup_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	bool message = fuzz_u8(&in) % 2;
	size_t len = in.left;
	uint8_t *copy = fuzz_copy(in.at, len, 0);

	if (message)
		check_message(copy, len);
	else
		check_setup(copy, len);
	free(copy);
	return 0;
}
