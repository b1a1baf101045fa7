/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that wait for the ports of PyTorch. */
#include "unit.h"

#include "supervisor/supervisor_internal.h"

#define AT_ONCE 0
#define FOREVER -1

static struct supervisor of_step(bool wanted)
{
	struct supervisor s = { .options.agent.torch_ports_wanted = wanted };

	assert_int_equal(torch_ports_open(&s), 0);
	return s;
}

static void tell(struct supervisor *s, uint32_t first, uint32_t second)
{
	const struct host_msg m = { .number = first << 16 | second };

	torch_ports_known(s, &m);
}

TEST(every_rank_of_the_node_gets_the_ports)
{
	struct supervisor s = of_step(true);
	uint16_t ports[TORCH_PORTS];

	assert_false(supervisor_torch_ports(&s, AT_ONCE, ports));
	tell(&s, 65535, 1024);
	for (int rank = 0; rank < 64; rank++) {
		memset(ports, 0, sizeof(ports));
		assert_true(supervisor_torch_ports(&s, FOREVER, ports));
		assert_int_equal(ports[TORCH_PORT_STORE], 65535);
		assert_int_equal(ports[TORCH_PORT_JAX], 1024);
	}
	torch_ports_close(&s);
}

TEST(rank_does_not_begin_when_the_step_ends)
{
	struct supervisor s = of_step(true);
	uint16_t ports[TORCH_PORTS];

	torch_ports_refuse(&s);
	assert_false(supervisor_torch_ports(&s, FOREVER, ports));
	tell(&s, 28700, 28701); /* too late */
	assert_false(supervisor_torch_ports(&s, FOREVER, ports));
	torch_ports_close(&s);
}

TEST(ports_that_have_come_before_the_end_are_read)
{
	struct supervisor s = of_step(true);
	uint16_t ports[TORCH_PORTS];

	tell(&s, 28700, 28701);
	torch_ports_refuse(&s);
	assert_true(supervisor_torch_ports(&s, FOREVER, ports));
	assert_int_equal(ports[TORCH_PORT_STORE], 28700);
	torch_ports_close(&s);
}

/* The agent is the user's: what it says may be wrong. */
TEST(zero_is_no_port)
{
	struct supervisor s = of_step(true);
	uint16_t ports[TORCH_PORTS];

	tell(&s, 0, 28701);
	tell(&s, 28700, 0);
	assert_false(supervisor_torch_ports(&s, AT_ONCE, ports));
	tell(&s, 28700, 28701);
	assert_true(supervisor_torch_ports(&s, AT_ONCE, ports));
	torch_ports_close(&s);
}

TEST(agent_that_repeats_itself_blocks_nobody)
{
	struct supervisor s = of_step(true);
	uint16_t ports[TORCH_PORTS];

	tell(&s, 28700, 28701);
	for (int i = 0; i < 100000; i++)
		tell(&s, 1, 1);
	assert_true(supervisor_torch_ports(&s, AT_ONCE, ports));
	assert_int_equal(ports[TORCH_PORT_STORE], 28700);
	torch_ports_close(&s);
}

TEST(step_without_pytorch_has_no_socket)
{
	struct supervisor s = of_step(false);

	assert_int_equal(s.torch_ports.known, -1);
	tell(&s, 28700, 28701);
	torch_ports_refuse(&s);
	torch_ports_close(&s);
}
