/* SPDX-License-Identifier: BSD-3-Clause */
/* Bundles of the tree of control: items come out as they went in, and in few bytes. */
#include "unit.h"

#include <errno.h>

#include "dvm/core/bundle.h"

#define ITEMS 40
#define DATA_MAX 300

struct random {
	uint64_t state;
};

static uint32_t below(struct random *r, uint32_t limit)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)(r->state >> 33) % limit;
}

struct sample {
	struct bundle_item item;
	char data[DATA_MAX];
};

/* New data, or the data of the item before with some bytes changed, moved or gone. */
static size_t make_data(struct random *r, const struct sample *before, char data[DATA_MAX])
{
	size_t len = below(r, DATA_MAX);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)below(r, 256);
	if (!before || !below(r, 3))
		return len;
	len = below(r, 2) ? before->item.data.len : below(r, DATA_MAX);
	for (size_t i = 0; i < len && i < before->item.data.len; i++)
		if (below(r, 40))
			data[i] = before->data[i];
	if (len > 20 && before->item.data.len > 20 && below(r, 2))
		memcpy(data + len - 20, before->data + before->item.data.len - 20, 20);
	return len;
}

static void make(struct random *r, const struct sample *before, struct sample *out)
{
	size_t len = make_data(r, before, out->data);

	out->item = (struct bundle_item){
		.kind = (enum bundle_kind)below(r, BUNDLE_KINDS), .position = below(r, 1000),
		.attach = below(r, 10), .seq = below(r, 1000), .ack = below(r, 1000),
		.data = { out->data, len },
	};
}

static void assert_same(const struct bundle_item *a, const struct bundle_item *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->position, b->position);
	assert_int_equal(a->attach, b->attach);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->ack, b->ack);
	assert_int_equal(a->data.len, b->data.len);
	assert_memory_equal(a->data.data, b->data.data, a->data.len);
}

static void pack_and_read(uint64_t seed)
{
	struct random r = { seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };
	static struct sample samples[ITEMS];
	struct bundle_reader in;
	struct bundle_item item;
	struct bundle b;

	bundle_init(&b);
	for (int i = 0; i < ITEMS; i++) {
		make(&r, i ? &samples[i - 1] : NULL, &samples[i]);
		assert_int_equal(bundle_add(&b, &samples[i].item), 0);
	}
	assert_true(bundle_is(b.bytes.data, b.bytes.len));
	bundle_reader_init(&in, b.bytes.data, b.bytes.len);
	for (int i = 0; i < ITEMS; i++) {
		assert_int_equal(bundle_next(&in, &item), 1);
		assert_same(&item, &samples[i].item);
	}
	assert_int_equal(bundle_next(&in, &item), 0);
	bundle_reader_free(&in);
	bundle_free(&b);
}

TEST(random_items_come_out_as_they_went_in)
{
	for (uint64_t seed = 0; seed < 2000; seed++)
		pack_and_read(seed);
}

TEST(cut_bundle_is_invalid_or_ends_with_a_whole_item)
{
	struct bundle_item item = { .kind = BUNDLE_DATA, .position = 1 };
	char data[64] = "the same data for two nodes, but for one byte: 0, and some more";
	struct bundle_reader in;
	struct bundle b;
	unsigned ends = 0;
	int rc;

	bundle_init(&b);
	item.data = (struct dvm_bytes){ data, sizeof(data) };
	assert_int_equal(bundle_add(&b, &item), 0);
	data[47] = '1';
	assert_int_equal(bundle_add(&b, &item), 0);
	for (size_t len = 1; len < b.bytes.len; len++) {
		char *copy = malloc(len);

		memcpy(copy, b.bytes.data, len);
		bundle_reader_init(&in, copy, len);
		while ((rc = bundle_next(&in, &item)) > 0)
			;
		assert_true(!rc || rc == -EPROTO);
		ends += !rc;
		bundle_reader_free(&in);
		free(copy);
	}
	assert_int_equal(ends, 2); /* before and behind the first item */
	bundle_free(&b);
}

/* LAUNCH for a node; `command` is common to all nodes. */
static void pack_launch(struct buf *out, uint32_t node, const char *command, size_t len)
{
	const struct dvm_msg m = {
		.type = DVM_LAUNCH,
		.launch = {
			.task = 7, .ranks = 4000, .nodes = 1000, .node = node,
			.first_rank = 4 * node, .ranks_here = 4, .argv = { command, len },
			.path = { "", 1 },
		},
	};

	buf_clear(out);
	assert_int_equal(dvm_msg_pack(out, &m), 0);
}

TEST(launch_for_many_nodes_crosses_a_link_once)
{
	char command[2000];
	struct buf launch;
	struct bundle b;
	size_t one;

	memset(command, 'x', sizeof(command));
	command[sizeof(command) - 1] = '\0';
	buf_init(&launch, DVM_LAUNCH_MAX);
	bundle_init(&b);
	for (uint32_t i = 0; i < 1000; i++) {
		struct bundle_item item = { .kind = BUNDLE_DATA, .position = i, .seq = 1 };

		pack_launch(&launch, i, command, sizeof(command));
		item.data = (struct dvm_bytes){ launch.data, launch.len };
		assert_int_equal(bundle_add(&b, &item), 0);
		one = i ? one : b.bytes.len;
	}
	assert_true(b.bytes.len < one + 1000 * 80);
	buf_free(&launch);
	bundle_free(&b);
}
