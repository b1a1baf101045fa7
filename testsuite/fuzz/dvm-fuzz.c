/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DVM's head and node, told by the input what clients, nodes and a head say: what is
 * refused changes nothing, and what a head has given it gets back.
 */
#include "../unit/dvm/idle.h"
#include "../unit/dvm/requests.h"
#include "../unit/dvm/sealed.h"
#include "../unit/dvm/starts.h"
#include "fuzz.h"

#include "dvm/core/head.h"
#include "dvm/core/node.h"

#define NODES 2
#define CORES 4
#define CLIENTS 3

struct bed {
	struct dvm_head *head;
	struct dvm_node *node;
	bool broken[NODES];
	struct dvm_time now;
	struct starts starts;
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

static int open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	FUZZ_CHECK(node_wants_pmi(launch));
	return 0;
}

/* `which` and `error` come from the input. */
static void tell_started(struct bed *b, uint8_t which, uint8_t error)
{
	const struct start s = b->starts.items[which % STARTS_MAX];
	uint64_t processes[LEDGER_RANKS_MAX] = { 1 };
	uint32_t count = error && s.count ? error % s.count : s.count;

	if (which % STARTS_MAX < b->starts.count)
		b->starts.items[which % STARTS_MAX] = b->starts.items[--b->starts.count];
	dvm_node_started(b->node, s.part, processes, count, -(int)error, b->now);
}

static void start(void *arg, const struct node_start *what)
{
	const uint32_t ranks = what->launch->ranks_here;
	struct bed *b = arg;

	FUZZ_CHECK(what->first < ranks && what->message.len);
	starts_add(&b->starts, (struct start){ what->part, ranks - what->first, 1, 0 });
}

static void look(void *arg, uint64_t process, struct dvm_rank *out)
{
	out->state = 'S';
}

static void signal_part(void *arg, uint32_t part, int number)
{
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	FUZZ_CHECK(len || wait != DURABLE_LATER);
	return 0;
}

static void make_head(struct bed *b, bool adopts)
{
	static const struct dvm_head_ops head_ops = {
		.node_send = node_send, .node_break = node_break,
		.format = &dvm_json, .client_send = client_send, .record = record, .end = head_end,
	};
	const struct dvm_head_options options = {
		.name = "fuzz", .build = "fuzz", .nodes = NODES,
		.queue = { .window = 10, .patience_ms = 1000 },
		.grace_ms = 100, .max_waiting = 100, .fast = true,
		.keeps = true, .adopts = adopts,
	};

	FUZZ_CHECK(!dvm_head_create(&b->head, &options, &head_ops, b, NULL));
	for (uint32_t i = 1; i <= CLIENTS; i++)
		dvm_head_client_opened(b->head, i);
}

static void open_bed(struct bed *b)
{
	static const struct dvm_node_ops node_ops = {
		.send = to_head, .open_output = idle_open_output,
		.close_output = idle_part, .open_pmi = open_pmi,
		.pmi_rank_ended = idle_rank_ended, .close_pmi = idle_part,
		.start = start, .look = look, .pmi_status = idle_pmi_status, .profile = idle_profile, .forget = idle_part,
		.signal = signal_part, .all_started = idle_part, .give_up = idle_part, .leave = idle,
	};

	memset(b, 0, sizeof(*b));
	make_head(b, false);
	FUZZ_CHECK(!dvm_node_create(&b->node, &node_ops, b));
}

static void end_process(struct bed *b, uint8_t which, uint8_t status)
{
	const struct node_end end = { .status = status << 8 };

	(void)dvm_node_ended(b->node, which / 4, which % 4, &end, b->now);
}

static void put(struct buf *out, struct journal_record r)
{
	FUZZ_CHECK(!put_sealed(out, &r));
}

/* Two tasks that have been started. */
static void put_journal(struct buf *out)
{
	static const char json[] = "{\"argv\":[\"x\"],\"ranks\":6}";
	const struct dvm_bytes task = { json, sizeof(json) - 1 };

	buf_init(out, 4096);
	FUZZ_CHECK(!journal_put_header(out));
	put(out, (struct journal_record){ .type = JOURNAL_PROFILE,
		.profile = { 0, { "p", 1 }, { "/", 1 }, { "", 0 } } });
	for (uint64_t i = 1; i <= 2; i++) {
		put(out, (struct journal_record){ .type = JOURNAL_SUBMIT,
			.submit = { .task = i, .json = task } });
		put(out, (struct journal_record){ .type = JOURNAL_START,
			.start = { .task = i, .placed_ns = 1 } });
	}
}

/* Another head goes on, when its nodes have said this. */
static void adopt(struct bed *b, uint8_t who, const char *said, size_t len)
{
	struct journal_reader in;
	struct dvm_resumed found;
	struct buf journal;
	uint32_t version;

	dvm_head_destroy(b->head);
	memset(b->broken, 0, sizeof(b->broken));
	make_head(b, true);
	for (uint32_t i = 0; i < NODES; i++)
		FUZZ_CHECK(!tell_registered(b->head, i, CORES, b->now));
	dvm_head_node_input(b->head, who % NODES, said, len, b->now);
	put_journal(&journal);
	FUZZ_CHECK(!journal_open(&in, journal.data, journal.len, &version));
	FUZZ_CHECK(!dvm_head_resume(b->head, &in, who & 64, &found, b->now));
	FUZZ_CHECK(found.adopted + found.again + found.lost == 2);
	buf_free(&journal);
}

static void step(struct bed *b, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), who = fuzz_u8(in);
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u16(in), &at);
	char *copy = fuzz_copy(at, len, 0);

	b->now.ms += who;
	switch (what % 9) {
	case 0:
		dvm_json_request(b->head, 1 + who % CLIENTS, copy, len, b->now);
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
	case 7:
		tell_started(b, who, len ? (uint8_t)*copy : 0);
		break;
	case 8:
		dvm_node_pmi_failed(b->node, who, &(struct node_failure){
			len ? *copy + 1 : 1, who, len & 1, "it fails" }, b->now);
		dvm_node_pmi_over(b->node, who, b->now);
		break;
	case 6:
		adopt(b, who, copy, len);
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
