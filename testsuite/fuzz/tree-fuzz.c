/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of control: head and node get frames of the input over links that come and go.
 * Whatever they send is a valid bundle, and numbered messages reach them in order.
 */
#include "fuzz.h"

#include "dvm/core/tree_head.h"
#include "dvm/core/tree_node.h"

#define LINKS 4
#define SELF 1

struct bed {
	struct tree_head head;
	struct tree_node node;
	uint64_t now_ms;
	unsigned first[256];
};

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct bundle_reader in;
	struct bundle_item i;
	int rc;

	FUZZ_CHECK(bundle_is(data, len));
	bundle_reader_init(&in, data, len);
	while ((rc = bundle_next(&in, &i)) > 0)
		;
	FUZZ_CHECK(!rc);
	bundle_reader_free(&in);
}

static void on_input(void *arg, const void *data, size_t len)
{
	FUZZ_CHECK(len);
}

static void on_head_input(void *arg, uint32_t position, const void *data, size_t len)
{
	FUZZ_CHECK(len);
}

static void on_first(void *arg, uint32_t position, const uint8_t ip[16])
{
	if (position < 256)
		FUZZ_CHECK(!((struct bed *)arg)->first[position]++);
}

static void on_event(void *arg)
{
}

static void on_parents(void *arg, const struct tree_ancestor *list, uint32_t count)
{
	FUZZ_CHECK(count <= TREE_ANCESTORS_MAX);
}

static void on_lost(void *arg, uint32_t position, const char *why)
{
	FUZZ_CHECK(*why);
}

static void on_fail(void *arg, uint32_t link)
{
}

/* Whole items from few bytes, so that most inputs have some. */
static void give_item(struct bed *b, struct fuzz_input *in, uint32_t link)
{
	struct bundle_item i = { 0 };
	struct bundle bundle;
	const uint8_t *data;
	uint8_t ip[16] = { 1 };

	i.kind = (enum bundle_kind)(fuzz_u8(in) % BUNDLE_KINDS);
	i.position = fuzz_u8(in) % 8;
	i.attach = fuzz_u8(in);
	i.seq = fuzz_u8(in);
	i.ack = fuzz_u8(in);
	i.data.len = fuzz_bytes(in, fuzz_u8(in) % 40, &data);
	i.data.data = data;
	bundle_init(&bundle);
	FUZZ_CHECK(!bundle_add(&bundle, &i));
	if (link == RELAY_UP || link & 1)
		(void)tree_node_input(&b->node, link, bundle.bytes.data, bundle.bytes.len, ip);
	else
		(void)tree_head_input(&b->head, link, bundle.bytes.data, bundle.bytes.len, ip,
				      b->now_ms);
	bundle_free(&bundle);
}

static void give_bytes(struct bed *b, struct fuzz_input *in, uint32_t link)
{
	const uint8_t *at, ip[16] = { 1 };
	size_t len = fuzz_bytes(in, fuzz_u16(in), &at);
	uint8_t *copy = malloc(len + 1);

	copy[0] = DVM_BUNDLE;
	if (len)
		memcpy(copy + 1, at, len);
	if (link & 1)
		(void)tree_node_input(&b->node, link == 1 ? RELAY_UP : link, copy, len + 1, ip);
	else
		(void)tree_head_input(&b->head, link, copy, len + 1, ip, b->now_ms);
	free(copy);
}

static void change_link(struct bed *b, uint8_t what, uint32_t link)
{
	switch (what % 6) {
	case 0: (void)tree_node_up(&b->node); break;
	case 1: tree_node_down(&b->node); break;
	case 2: (void)tree_node_child(&b->node, link); break;
	case 3: tree_node_child_lost(&b->node, link, "fuzz"); break;
	case 4: (void)tree_head_link(&b->head, link); break;
	default: tree_head_link_lost(&b->head, link, "fuzz", b->now_ms);
	}
}

static void send(struct bed *b, uint8_t what, uint32_t position)
{
	static const char m[] = "mm";

	switch (what % 5) {
	case 0: FUZZ_CHECK(!tree_node_send(&b->node, m, 2)); break;
	case 1: FUZZ_CHECK(!tree_head_send(&b->head, position, m, 2)); break;
	case 2: tree_head_end(&b->head, position, "fuzz"); break;
	case 3: tree_node_child_gone(&b->node, position); break;
	default: tree_head_gone(&b->head, position);
	}
}

static void step(struct bed *b, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), which = fuzz_u8(in);
	uint32_t link = which % LINKS;

	b->now_ms += which * 10;
	switch (what % 8) {
	case 0: change_link(b, which / LINKS, link); break;
	case 1: send(b, which / LINKS, link); break;
	case 2: give_bytes(b, in, link); break;
	case 3: give_item(b, in, RELAY_UP); break;
	default: give_item(b, in, link);
	}
	tree_node_turn(&b->node);
	tree_head_turn(&b->head, b->now_ms);
	tree_head_flush(&b->head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tree_node_ops node_ops = {
		.send = on_send, .input = on_input, .attached = on_event,
		.parents = on_parents, .leaving = on_event, .fail = on_fail,
	};
	static const struct tree_head_ops head_ops = {
		.send = on_send, .attached = on_first, .input = on_head_input,
		.lost = on_lost, .fail = on_fail,
	};
	struct fuzz_input in = { data, size };
	struct bed *b = calloc(1, sizeof(*b));

	tree_node_init(&b->node, SELF, &node_ops, b);
	tree_head_init(&b->head, &head_ops, b);
	while (in.left)
		step(b, &in);
	tree_node_free(&b->node);
	tree_head_free(&b->head);
	free(b);
	return 0;
}
