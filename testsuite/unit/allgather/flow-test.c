/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flow of blocks over a whole ring in one process, in many orders: chunks
 * are sent and delivered at random places, as links of any speed would.
 */
#include "unit.h"

#include <errno.h>

#include "bundle.h"
#include "flow.h"
#include "frame.h"

#define QUEUE_MAX 4 /* chunks on a link */

struct link {
	struct flow_chunk chunks[QUEUE_MAX];
	int count;
};

struct place {
	struct flow flow;
	uint64_t *have;            /* bytes of each block, by owner's place */
	struct link links[SIDES];  /* towards that side */
	uint64_t messages, bytes;  /* sent */
};

struct net {
	struct place *at;
	uint64_t *totals;
	uint32_t n, chunk_max, random;
};

static uint32_t draw(struct net *net, uint32_t below)
{
	net->random = net->random * 1664525u + 1013904223u;
	return (net->random >> 8) % below;
}

static struct net *net_new(uint32_t n, uint32_t chunk_max, uint32_t len_max)
{
	struct net *net = calloc(1, sizeof(*net));

	net->n = n;
	net->chunk_max = chunk_max;
	net->random = n * 31 + chunk_max;
	net->at = calloc(n, sizeof(*net->at));
	net->totals = calloc(n, sizeof(*net->totals));
	for (uint32_t i = 0; i < n; i++) {
		net->totals[i] = FLOW_BLOCK_MIN + draw(net, len_max);
		net->at[i].have = calloc(n, sizeof(uint64_t));
		assert_int_equal(flow_init(&net->at[i].flow, n,
					   net->totals[i]), 0);
	}
	return net;
}

static void net_free(struct net *net)
{
	for (uint32_t i = 0; i < net->n; i++) {
		flow_free(&net->at[i].flow);
		free(net->at[i].have);
	}
	free(net->at);
	free(net->totals);
	free(net);
}

static bool send_one(struct net *net, uint32_t i, enum ring_side side)
{
	struct place *p = &net->at[i];
	struct link *link = &p->links[side];
	struct flow_chunk c;

	if (link->count == QUEUE_MAX ||
	    !flow_next(&p->flow, side, net->chunk_max, &c))
		return false;
	assert_true(c.len > 0 && c.len <= net->chunk_max);
	/* Only what is here can be sent. */
	assert_int_equal(c.total, net->totals[(i + c.block) % net->n]);
	flow_sent(&p->flow, side, &c);
	link->chunks[link->count++] = c;
	p->messages++;
	p->bytes += c.len;
	return true;
}

static bool deliver_one(struct net *net, uint32_t i, enum ring_side side)
{
	struct link *link = &net->at[i].links[side];
	uint32_t to = (i + (side == SIDE_RIGHT ? 1 : net->n - 1)) % net->n;
	struct place *p = &net->at[to];
	struct flow_chunk c;

	if (!link->count)
		return false;
	c = link->chunks[0];
	memmove(link->chunks, link->chunks + 1,
		--link->count * sizeof(*link->chunks));
	c.block = UINT32_MAX;
	assert_int_equal(flow_received(&p->flow, other_side(side), &c), 0);
	p->have[(to + c.block) % net->n] += c.len;
	return true;
}

static bool act(struct net *net, uint32_t i, uint32_t what)
{
	return what < 2 ? send_one(net, i, what)
			: deliver_one(net, i, what - 2);
}

/* At random first, then in turn until nothing moves. */
static void run(struct net *net)
{
	bool moved = true;

	for (uint32_t k = 0; k < 40 * net->n; k++)
		act(net, draw(net, net->n), draw(net, 4));
	while (moved) {
		moved = false;
		for (uint32_t i = 0; i < net->n; i++)
			for (uint32_t what = 0; what < 4; what++)
				moved |= act(net, i, what);
	}
}

/*
 * The number of messages that doc/allgather.md states: every step's range in as few
 * pieces as it fits.
 */
static uint64_t messages_of(const struct net *net, uint32_t i)
{
	uint64_t count = 0;

	for (uint32_t s = 0; s < schedule_steps(net->n); s++)
		for (int side = 0; side < SIDES; side++) {
			uint32_t b = schedule_sends(net->n, i, side, s);
			struct schedule_range r = schedule_bytes(net->n, side,
				s, net->totals[b]);

			count += (r.end - r.first + net->chunk_max - 1) /
				 net->chunk_max;
		}
	return count;
}

static void check(struct net *net)
{
	for (uint32_t i = 0; i < net->n; i++) {
		struct place *p = &net->at[i];

		assert_true(flow_all_sent(&p->flow));
		assert_true(flow_all_received(&p->flow));
		assert_int_equal(p->messages, messages_of(net, i));
		for (uint32_t b = 0; b < net->n; b++)
			assert_int_equal(p->have[b],
					 b == i ? 0 : net->totals[b]);
	}
}

TEST(blocks_reach_everybody_in_any_order)
{
	static const uint32_t chunks[] = { 1, 3, 64, 100000 };

	for (uint32_t n = 1; n <= 40; n++)
		for (int c = 0; c < 4; c++) {
			struct net *net = net_new(n, chunks[c], 100);

			run(net);
			check(net);
			net_free(net);
		}
}

TEST(large_rings_complete)
{
	static const uint32_t sizes[] = { 99, 100, 257, 999, 1000 };

	for (int i = 0; i < 5; i++) {
		struct net *net = net_new(sizes[i], 100000, 100);

		run(net);
		check(net);
		net_free(net);
	}
}

/* A long block is passed on before all of it has come. */
TEST(chunks_are_passed_on_at_once)
{
	struct net *net = net_new(7, 10, 5);

	flow_free(&net->at[0].flow);
	net->totals[0] = 1000;
	flow_init(&net->at[0].flow, 7, 1000);
	assert_true(send_one(net, 0, SIDE_RIGHT));
	assert_true(send_one(net, 1, SIDE_RIGHT));
	assert_true(deliver_one(net, 0, SIDE_RIGHT));
	assert_true(send_one(net, 1, SIDE_RIGHT));
	assert_int_equal(net->at[1].links[SIDE_RIGHT].chunks[1].total, 1000);
	assert_int_equal(net->at[1].links[SIDE_RIGHT].chunks[1].len, 10);
	run(net);
	check(net);
	net_free(net);
}

TEST(invalid_chunks_are_rejected)
{
	struct flow_chunk good = { .step = 0, .total = 100, .len = 40 };
	struct flow_chunk wrong[] = {
		{ .step = 1, .total = 100, .len = 40 },
		{ .step = 0, .total = 100, .offset = 1, .len = 40 },
		{ .step = 0, .total = 100, .len = 101 },
		{ .step = 0, .total = 100, .len = 0 },
		{ .step = 0, .total = 1, .len = 1 },
		{ .step = 0, .total = 0, .len = 0 },
		{ .step = UINT32_MAX, .total = UINT64_MAX, .len = UINT32_MAX },
	};
	struct flow_chunk other = { .step = 0, .total = 99, .offset = 40,
				    .len = 10 };
	struct flow f;

	assert_int_equal(flow_init(&f, 5, 10), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(flow_received(&f, SIDE_LEFT, &wrong[i]),
				 -EPROTO);
	assert_int_equal(flow_received(&f, SIDE_LEFT, &good), 0);
	/* The total length may not change, and no piece may come twice. */
	assert_int_equal(flow_received(&f, SIDE_LEFT, &other), -EPROTO);
	assert_int_equal(flow_received(&f, SIDE_LEFT, &good), -EPROTO);
	flow_free(&f);
	/* More than all is too much. */
	assert_int_equal(flow_init(&f, 1, 10), 0);
	assert_int_equal(flow_received(&f, SIDE_LEFT, &good), -EPROTO);
	flow_free(&f);
}

/* ---- frames and bundles: what travels ---- */

TEST(frames_survive_the_wire)
{
	struct frame in = {
		.kind = FRAME_CHUNK, .operation = 0x89abcdef,
		.chunk = { .step = 77, .total = UINT64_C(1) << 40,
			   .offset = (UINT64_C(1) << 40) - 3 },
	};
	unsigned char message[FRAME_HEADER_LEN + 3];
	struct frame out;

	frame_pack(&in, message);
	memcpy(message + FRAME_HEADER_LEN, "abc", 3);
	assert_int_equal(frame_parse(&out, message, sizeof(message)), 0);
	assert_int_equal(out.operation, in.operation);
	assert_int_equal(out.chunk.step, 77);
	assert_int_equal(out.chunk.total, in.chunk.total);
	assert_int_equal(out.chunk.offset, in.chunk.offset);
	assert_int_equal(out.chunk.len, 3);
	assert_memory_equal(out.bytes, "abc", out.len);
	for (size_t len = 0; len < FRAME_HEADER_LEN; len++)
		assert_int_equal(frame_parse(&out, message, len), -EPROTO);
	message[2] = 9;
	assert_int_equal(frame_parse(&out, message, sizeof(message)), -EPROTO);
	message[2] = FRAME_ABORT;
	message[0] ^= 1;
	assert_int_equal(frame_parse(&out, message, sizeof(message)), -EPROTO);
}

struct gathered {
	char buffer[5 * 8];
	size_t lengths[5];
	unsigned char seen[1];
};

static struct bundle_sink sink_for(struct gathered *g, size_t *lengths)
{
	memset(g, 0, sizeof(*g));
	return (struct bundle_sink){ .buffer = g->buffer, .stride = 8,
		.lengths = lengths, .size = 5, .seen = g->seen };
}

static size_t make_bundle(char *out)
{
	static const struct bundle_entry entries[] = {
		{ 4, 3 }, { 1, 0 }, { 2, 10 } };
	char *at = bundle_begin(out, entries, 3);

	memcpy(at, "abc0123456789", 13);
	return bundle_size(entries, 3);
}

TEST(bundles_are_put_into_rank_order)
{
	char bundle[200];
	size_t len = make_bundle(bundle);
	struct gathered g;
	struct bundle_sink sink = sink_for(&g, g.lengths);

	assert_int_equal(bundle_scatter(bundle, len, &sink), 0);
	assert_int_equal(sink.count, 3);
	assert_memory_equal(g.buffer + 4 * 8, "abc", 4);
	assert_memory_equal(g.buffer + 2 * 8, "01234567", 8);
	assert_int_equal(g.buffer[3 * 8], 0);
	assert_int_equal(g.lengths[4], 3);
	assert_int_equal(g.lengths[2], 10);
	/* The bundle of the same ranks again: somebody's block has come twice. */
	assert_int_equal(bundle_scatter(bundle, len, &sink), -EPROTO);
	assert_int_equal(sink.culprit, 4);
}

TEST(blocks_of_another_length_are_told)
{
	char bundle[200];
	size_t len = make_bundle(bundle);
	struct gathered g;
	struct bundle_sink sink = sink_for(&g, NULL);

	assert_int_equal(bundle_scatter(bundle, len, &sink), -EMSGSIZE);
	assert_int_equal(sink.culprit, 4);
}

/* Cut or changed anywhere: an error or other bytes, never out of bounds. */
TEST(wrong_bundles_do_no_harm)
{
	char bundle[200];
	size_t len = make_bundle(bundle);
	struct gathered g;

	for (size_t cut = 0; cut < len; cut++) {
		struct bundle_sink sink = sink_for(&g, g.lengths);
		char *exact = malloc(cut + 1);

		memcpy(exact, bundle, cut);
		assert_int_equal(bundle_scatter(exact, cut, &sink), -EPROTO);
		free(exact);
	}
	for (size_t i = 0; i < len; i++)
		for (int bit = 0; bit < 8; bit++) {
			struct bundle_sink sink = sink_for(&g, g.lengths);

			bundle[i] ^= 1 << bit;
			bundle_scatter(bundle, len, &sink);
			bundle[i] ^= 1 << bit;
		}
}
