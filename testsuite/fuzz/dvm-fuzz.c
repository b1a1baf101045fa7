/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DVM's head and node, told by the input what clients, nodes and a head say: what is
 * refused changes nothing, and what a head has given it gets back.
 */
#include "../unit/dvm-requests.h"
#include "fuzz.h"

#include "libdvm/head.h"
#include "libdvm/node.h"

#define NODES 2
#define CORES 4
#define PROCESSES 64
#define CLIENTS 3

struct bed {
	struct dvm_head *head;
	struct dvm_node *node;
	bool broken[NODES];
	struct dvm_time now;
	int64_t processes; /* ever started */
	bool ended;
};

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, data, len);
	while (cursor_left(&c))
		FUZZ_CHECK(!dvm_msg_unpack(&c, &m));
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	struct bed *b = arg;

	FUZZ_CHECK(*why);
	b->broken[node] = true;
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	FUZZ_CHECK(client && len && line[len - 1] == '\n');
}

static void head_end(void *arg)
{
	((struct bed *)arg)->ended = true;
}

static void to_head(void *arg, const void *data, size_t len)
{
	node_send(arg, 0, data, len);
}

static int open_output(void *arg, uint32_t part)
{
	return 0;
}

static void close_output(void *arg, uint32_t part)
{
}

static int open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	FUZZ_CHECK(node_wants_pmi(launch));
	return 0;
}

static void pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
}

static void close_pmi(void *arg, uint32_t part)
{
}

static int64_t start(void *arg, const struct node_rank *rank)
{
	struct bed *b = arg;

	FUZZ_CHECK(rank->local < rank->launch->ranks_here);
	return b->processes < PROCESSES ? ++b->processes : -11;
}

static void look(void *arg, int64_t process, struct dvm_rank *out)
{
	out->state = 'S';
}

static void ask_pmi(void *arg, const struct dvm_pmi_ask *ask)
{
}

static void signal_process(void *arg, int64_t process, int number)
{
}

static void leave(void *arg)
{
}

static void open_bed(struct bed *b)
{
	static const struct dvm_head_ops head_ops = {
		.node_send = node_send, .node_break = node_break,
		.client_send = client_send, .end = head_end,
	};
	static const struct dvm_node_ops node_ops = {
		.send = to_head, .open_output = open_output,
		.close_output = close_output, .open_pmi = open_pmi,
		.pmi_rank_ended = pmi_rank_ended, .close_pmi = close_pmi,
		.start = start, .look = look, .ask_pmi = ask_pmi,
		.signal = signal_process, .leave = leave,
	};
	const struct dvm_head_options options = {
		.name = "fuzz", .build = "fuzz", .nodes = NODES,
		.queue = { .window = 10, .patience_ms = 1000 },
		.grace_ms = 100, .max_waiting = 100,
	};

	memset(b, 0, sizeof(*b));
	FUZZ_CHECK(!dvm_head_create(&b->head, &options, &head_ops, b, NULL));
	FUZZ_CHECK(!dvm_node_create(&b->node, &node_ops, b));
	for (uint32_t i = 1; i <= CLIENTS; i++)
		dvm_head_client_opened(b->head, i);
}

static void end_process(struct bed *b, uint8_t which, uint8_t status)
{
	const struct node_end end = { .status = status << 8 };

	(void)dvm_node_ended(b->node, which % PROCESSES, &end, b->now);
}

static void step(struct bed *b, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), who = fuzz_u8(in);
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u16(in), &at);
	char *copy = fuzz_copy(at, len, 0);

	b->now.ms += who;
	switch (what % 6) {
	case 0:
		dvm_head_client_input(b->head, 1 + who % CLIENTS, copy, len, b->now);
		break;
	case 1:
		if (!b->broken[who % NODES])
			dvm_head_node_input(b->head, who % NODES, copy, len, b->now);
		break;
	case 2:
		FUZZ_CHECK(!tell_registered(b->head, who % NODES, CORES, b->now));
		break;
	case 3:
		(void)dvm_node_input(b->node, copy, len, b->now);
		break;
	case 4:
		end_process(b, who, len ? (uint8_t)*copy : 0);
		break;
	default:
		if (who % 4)
			dvm_head_client_closed(b->head, who % 4, b->now);
		else
			dvm_head_node_lost(b->head, who % NODES, "fuzz", b->now);
	}
	free(copy);
	dvm_head_turn(b->head, b->now);
	dvm_node_turn(b->node, b->now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct bed b;

	open_bed(&b);
	while (in.left && !b.ended)
		step(&b, &in);
	dvm_head_destroy(b.head);
	dvm_node_destroy(b.node);
	return 0;
}
