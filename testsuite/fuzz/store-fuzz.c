/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the store, of clients and of neighbours: parsed, and given to the store of the
 * root, or of the node in the middle, of three nodes in a row. A client of that node asks, too.
 */
#include "fuzz.h"

#include "libstore/store_msg.h"

#define NODES 3
#define KEYS_MAX 64
#define BYTES_MAX 65536

struct bed {
	struct store *store;
	struct store_client *client;
	uint32_t asked, answered;
};

static const char *const names[NODES] = { "n0", "n1", "n2" };

static void check_answer(const struct store_answer *a)
{
	FUZZ_CHECK(a->status < STORE_STATUSES && a->text && strlen(a->text) < STORE_TEXT_MAX);
	for (uint32_t i = 0; i < a->nvalues; i++)
		FUZZ_CHECK(!a->values[i] || a->values[i]->len <= STORE_VALUE_MAX);
}

static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct bed *b = arg;

	b->answered++;
	check_answer(a);
}

/* Messages that a store sends are whole. */
static void on_send(void *arg, uint32_t position, const struct payload_vec *message)
{
	struct payload *whole = payload_vec_join(message);
	struct store_msg m;

	FUZZ_CHECK(position < NODES && whole);
	FUZZ_CHECK(!store_msg_unpack(&m, whole));
	store_msg_free(&m);
	payload_unref(whole);
}

/* A message that is read is written again with the same bytes, but for texts. */
static void check_message(struct payload *p)
{
	struct store_msg m;
	struct payload *again;

	if (store_msg_unpack(&m, p))
		return;
	again = store_msg_make(&m, NULL);
	FUZZ_CHECK(again && again->len == p->len);
	if (m.type == STORE_MSG_ASK)
		FUZZ_CHECK(!memcmp(again->data, p->data, p->len));
	payload_unref(again);
	store_msg_free(&m);
}

/* The client asks what a neighbour's message asks. */
static void ask(struct bed *b, struct payload *p)
{
	struct store_msg m;

	if (store_msg_unpack(&m, p))
		return;
	if (m.type == STORE_MSG_ASK) {
		b->asked++;
		store_ask(b->client, b->asked, &m.rq);
	}
	store_msg_free(&m);
}

static void step(struct bed *b, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u16(in), &at);
	struct payload *p = payload_copy(at, len);

	FUZZ_CHECK(p);
	check_message(p);
	if (what % 8 < 4)
		(void)store_input(b->store, what % 4, p);
	else if (what % 8 < 6)
		ask(b, p);
	else if (what % 8 == 6 && store_cancel(b->client, b->asked))
		b->answered++;
	else if (what % 8 == 7)
		store_neighbour_gone(b->store, what / 8 % NODES, "gone");
	payload_unref(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t ranks[NODES] = { 0, 1, 2 }, counts[NODES] = { 1, 1, 1 };
	static const struct store_client_ops client_ops = { .answer = on_answer };
	const uint32_t *const lists[NODES] = { &ranks[0], &ranks[1], &ranks[2] };
	const struct store_options options = { .bytes = BYTES_MAX, .keys = KEYS_MAX };
	struct fuzz_input in = { data, size };
	/* Width 2 would have two children: three nodes in a row are a tree of width 1. */
	struct tree_place place = tree_place(NODES, 1, fuzz_u8(&in) % 2);
	struct bed b = { .asked = 0 };
	const struct store_ops ops = { .send = on_send, .arg = &b };
	struct layout *layout;

	FUZZ_CHECK(!layout_create(&layout, NODES, NODES, counts, lists));
	FUZZ_CHECK(!store_create(&b.store, layout, &place, names, &options, &ops));
	b.client = store_client_open(b.store, STORE_SYNC, &client_ops, &b);
	FUZZ_CHECK(b.client);
	while (in.left)
		step(&b, &in);
	FUZZ_CHECK(b.asked == b.answered + store_pending(b.client));
	FUZZ_CHECK(store_waiting(b.store) == store_pending(b.client));
	store_client_close(b.client);
	FUZZ_CHECK(!store_waiting(b.store));
	store_destroy(b.store);
	layout_destroy(layout);
	return 0;
}
