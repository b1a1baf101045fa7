/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from the program that serves a node's PMIx clients, and those that are sent
 * to it: parsed, and given to the engine of one node of two.
 */
#include "fuzz.h"

#include "libengine/pmi_server.h"
#include "libpmi/pmix_frame.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"

#define NODES 2
#define RANKS 5
#define BYTES_MAX 4096 /* of a message */

struct host {
	struct pmi_server *server;
	bool closed[RANKS];
	bool lost;
};

/* ---- parsing ---- */

static void check_entries(const struct pmix_msg *m)
{
	const uint8_t *end;
	struct pmix_entry e;
	uint32_t *ranks, count;
	struct cursor c;

	if (!m->len)
		return;
	end = (const uint8_t *)m->data + m->len;
	cursor_init(&c, m->data, m->len);
	if (pmix_members_unpack(&c, &ranks, &count, RANKS))
		return;
	FUZZ_CHECK(count <= RANKS && !ranks == !count);
	free(ranks);
	while (pmix_entry_next(&c, &e))
		FUZZ_CHECK((const uint8_t *)e.bytes + e.len <= end);
}

static void check_message(const uint8_t *data, size_t len)
{
	struct pmix_msg m;
	int64_t size = pmix_msg_unpack(&m, data, len);
	struct buf b;

	if (size <= 0)
		return;
	FUZZ_CHECK((uint64_t)size <= len && pmix_msg_size(data) == size);
	FUZZ_CHECK(m.type > 0 && m.type < PMIX_MSG_TYPES);
	buf_init(&b, SIZE_MAX);
	FUZZ_CHECK(!pmix_msg_pack(&b, &m));
	FUZZ_CHECK(b.len == (size_t)size && !memcmp(b.data, data, b.len));
	buf_free(&b);
	check_entries(&m);
}

/* Takes the messages that are complete; how many bytes of `data` they have. */
static size_t take_messages(struct pmix_frame *f, const uint8_t *data, size_t len,
			    int *error)
{
	struct payload *message;
	size_t taken = 0;

	while ((*error = pmix_frame_next(f, &message)) > 0) {
		FUZZ_CHECK(message->len <= len - taken &&
			   !memcmp(message->data, data + taken, message->len));
		FUZZ_CHECK(pmix_msg_size(message->data) == (int64_t)message->len);
		taken += message->len;
		payload_unref(message);
	}
	return taken;
}

/* The stream comes in portions; how many bytes of it are in whole messages. */
static size_t check_stream(const uint8_t *data, size_t len, size_t portion)
{
	struct pmix_frame f;
	size_t at = 0, taken = 0;
	int error = 0;

	pmix_frame_init(&f, NULL);
	while (at < len && !error) {
		void *to;
		size_t n = pmix_frame_room(&f, &to);

		FUZZ_CHECK(n > 0);
		n = n < portion ? n : portion;
		n = n < len - at ? n : len - at;
		memcpy(to, data + at, n);
		pmix_frame_filled(&f, n);
		at += n;
		taken += take_messages(&f, data + taken, at - taken, &error);
	}
	pmix_frame_free(&f);
	return taken;
}

static void check_nspace(const uint8_t *data, size_t len)
{
	struct pmix_nspace n;

	if (pmix_nspace_unpack(&n, data, len))
		return;
	FUZZ_CHECK(n.position < layout_nodes(n.layout));
	for (uint32_t i = 0; i < layout_nodes(n.layout); i++)
		FUZZ_CHECK(n.node_names[i]);
	pmix_nspace_free(&n);
}

/* ---- the host ---- */

static void client_send(void *arg, uint32_t slot, const void *data, size_t len,
			const struct passed_fds *fds)
{
}

static void client_close(void *arg, uint32_t slot)
{
	struct host *h = arg;

	FUZZ_CHECK(slot < RANKS - 1 && !h->closed[slot]);
	h->closed[slot] = true;
}

static void node_send(void *arg, uint32_t position, const struct coll_msg *msg,
		      const void *head, size_t head_len,
		      const struct payload_vec *body)
{
	FUZZ_CHECK(position == 1 && head_len <= PMI_NODE_HEAD_MAX);
}

static void node_break(void *arg, uint32_t position)
{
}

static void nothing(void *arg)
{
}

static void control_send(void *arg, const void *data, size_t len)
{
}

static void pmix_send(void *arg, const void *head, size_t len, struct payload *data)
{
	const struct host *h = arg;
	struct pmix_msg m;
	size_t more = data ? data->len : 0;
	uint8_t *copy = fuzz_copy(head, len, more);

	FUZZ_CHECK(!h->lost);
	if (more)
		memcpy(copy + len, data->data, more);
	FUZZ_CHECK(pmix_msg_unpack(&m, copy, len + more) == (int64_t)(len + more));
	free(copy);
}

static const struct pmi_host_ops ops = {
	.client_send = client_send,
	.client_close = client_close,
	.node_send = node_send,
	.node_break = node_break,
	.links_wanted = nothing,
	.control_send = control_send,
	.slots_wake = nothing,
	.slots_again = nothing,
	.pmix_send = pmix_send,
};

/* ---- events ---- */

static void lose(struct host *h)
{
	h->lost = true;
	pmi_server_pmix_lost(h->server, "it is lost");
}

static void give(struct host *h, struct payload *p)
{
	if (pmi_server_pmix_input(h->server, p))
		lose(h);
	payload_unref(p);
}

static void raw(struct host *h, struct fuzz_input *in)
{
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u8(in), &at);

	give(h, payload_copy(at, len));
}

/* Members, or all, and entries of some ranks. */
static void put_entries(struct fuzz_input *in, struct buf *b)
{
	uint32_t members[4], count = fuzz_u8(in) % 8;

	count = count > 4 ? 0 : count;
	for (uint32_t i = 0; i < count; i++)
		members[i] = fuzz_u8(in) % (RANKS + 1);
	FUZZ_CHECK(!pmix_members_pack(b, members, count));
	for (uint32_t n = fuzz_u8(in) % 8; n; n--) {
		struct pmix_entry e = { .rank = fuzz_u8(in) % (RANKS + 1) };
		const uint8_t *at;

		e.len = fuzz_bytes(in, fuzz_u8(in) % 16, &at);
		e.bytes = at;
		FUZZ_CHECK(!pmix_entry_pack(b, &e));
	}
}

static void good(struct host *h, struct fuzz_input *in)
{
	struct pmix_msg m = { .type = 1 + fuzz_u8(in) % (PMIX_MSG_TYPES - 1) };
	struct buf data, b;
	const uint8_t *at;

	m.rank = fuzz_u8(in) % (RANKS + 1);
	m.id = fuzz_u8(in) % 4;
	m.number = PMIX_MSG_VERSION;
	m.op = PMIX_OP_FENCE + fuzz_u8(in) / 64;
	m.text_len = fuzz_bytes(in, fuzz_u8(in) % 8, &at);
	m.text = (const char *)at;
	buf_init(&data, BYTES_MAX);
	buf_init(&b, BYTES_MAX);
	if (m.type == PMIX_MSG_ENTER)
		put_entries(in, &data);
	m.data = data.data;
	m.len = data.len;
	FUZZ_CHECK(!pmix_msg_pack(&b, &m));
	give(h, payload_copy(b.data, b.len));
	buf_free(&data);
	buf_free(&b);
}

/* The other node's ranks are in, or it is lost. */
static void neighbour(struct host *h, struct fuzz_input *in)
{
	struct coll_msg up = {
		.type = COLL_MSG_UP, .kind = COLL_PMIX, .seq = fuzz_u8(in) % 4,
	};

	if (pmi_server_node_input(h->server, 1, &up, NULL))
		pmi_server_link_lost(h->server, 1, false, "the link broke");
}

static void event(struct host *h, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what % 8) {
	case 0:
		raw(h, in);
		break;
	case 1:
		neighbour(h, in);
		break;
	case 2:
		pmi_server_client_exit(h->server, what / 8 % (RANKS - 1), NULL);
		break;
	default:
		good(h, in);
	}
}

static struct layout *make_layout(void)
{
	static const uint32_t counts[NODES] = { RANKS - 1, 1 };
	static const uint32_t ranks[RANKS] = { 0, 1, 2, 3, 4 };
	const uint32_t *lists[NODES] = { ranks, ranks + RANKS - 1 };
	struct layout *l;

	FUZZ_CHECK(!layout_create(&l, NODES, RANKS, counts, lists));
	return l;
}

static void serve(struct fuzz_input *in)
{
	static const char *const names[NODES] = { "n0", "n1" };
	struct layout *layout = make_layout();
	const struct pmi_step step = {
		.jobid = "17.2", .layout = layout, .tree_width = 2,
		.node_names = names, .build = "fuzz",
	};
	struct host h = { .lost = false };

	FUZZ_CHECK(!pmi_server_create(&h.server, &step, NULL, &ops, &h, NULL));
	pmi_server_use_pmix(h.server, 1, 1, 60000);
	while (in->left)
		event(&h, in);
	pmi_server_destroy(h.server);
	layout_destroy(layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t what = fuzz_u8(&in) % 3, *copy;
	size_t len = in.left;

	if (what == 2) {
		serve(&in);
		return 0;
	}
	copy = fuzz_copy(in.at, len, 0);
	if (what == 0) {
		check_message(copy, len);
		FUZZ_CHECK(check_stream(copy, len, 1 + len % 61) ==
			   check_stream(copy, len, SIZE_MAX));
	} else {
		check_nspace(copy, len);
	}
	free(copy);
	return 0;
}
