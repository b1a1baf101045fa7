/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of one node whose neighbours and srun send anything, while its
 * ranks are at work. Invalid messages are refused, and the link broken; the engine keeps
 * its contract with the host.
 */
#include "fuzz.h"

#include <sys/stat.h>

#include "fuzz-pmi.h"
#include "libcoll/fetch.h"
#include "libengine/pmi_server.h"
#include "libpmi/control.h"

#define NODES 7
#define RANKS 8
#define SLOTS 2        /* of the node under test */
#define POSITION 1     /* has a parent and children */
#define FRAME_BYTES_MAX 512
#define REQUESTS_MAX 32
#define REGION_SIZE ((size_t)256 << 20)
#define MEMORY_MAX ((uint64_t)8 << 20) /* of it that inputs can make use of */

struct host {
	struct pmi_server *server;
	struct region_writer *region; /* or NULL */
	bool closed[SLOTS];
	bool lost[NODES];
	bool to_break[NODES];
	uint32_t requests[REQUESTS_MAX], nrequests; /* ids that srun has seen */
};

/* ---- the host ---- */

static void client_send(void *arg, uint32_t slot, const void *data, size_t len,
			const struct passed_fds *fds)
{
	struct host *h = arg;

	FUZZ_CHECK(slot < SLOTS && !h->closed[slot] && len > 0);
}

static void client_close(void *arg, uint32_t slot)
{
	struct host *h = arg;

	FUZZ_CHECK(slot < SLOTS && !h->closed[slot]);
	h->closed[slot] = true;
}

static void node_send(void *arg, uint32_t position, const struct coll_msg *msg,
		      const void *head, size_t head_len,
		      const struct payload_vec *body)
{
	struct host *h = arg;

	FUZZ_CHECK(position < NODES && !h->lost[position]);
	FUZZ_CHECK(head_len > 0 && head_len <= PMI_NODE_HEAD_MAX);
}

static void node_break(void *arg, uint32_t position)
{
	struct host *h = arg;

	FUZZ_CHECK(position < NODES);
	h->to_break[position] = true;
}

static void nothing(void *arg)
{
}

static void tidy_later(void *arg, bool soon)
{
}

static void control_send(void *arg, const void *data, size_t len)
{
	struct host *h = arg;
	struct control_msg msg;

	FUZZ_CHECK(!control_unpack(data, len, &msg));
	FUZZ_CHECK(msg.type != CONTROL_REPLY && msg.origin == POSITION);
	if (control_has_reply(msg.type) && h->nrequests < REQUESTS_MAX)
		h->requests[h->nrequests++] = msg.id;
	control_free(&msg);
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
	.tidy_later = tidy_later,
};

/* ---- events ---- */

static void lose(struct host *h, uint32_t position)
{
	h->lost[position] = true;
	pmi_server_link_lost(h->server, position, false, "the link broke");
}

static void frame(struct host *h, uint32_t from, const struct buf *head,
		  const uint8_t *bytes, size_t len)
{
	struct payload *body = NULL;
	struct coll_msg msg;

	if (h->lost[from])
		return;
	if (coll_msg_read(head->data, head->len, &msg)) {
		lose(h, from);
		return;
	}
	if (len)
		body = pmi_server_node_room(h->server, from, &msg, len);
	FUZZ_CHECK(!body || body->len == len);
	if (body)
		memcpy(body->data, bytes, len);
	else
		body = payload_copy(bytes, len);
	FUZZ_CHECK(body);
	if (pmi_server_node_input(h->server, from, &msg, body))
		lose(h, from);
	payload_unref(body);
}

/* A header that fits, with a body. */
static void good_frame(struct host *h, struct fuzz_input *in)
{
	uint32_t from = fuzz_u8(in) % NODES;
	struct coll_msg msg = { .type = fuzz_u8(in) % COLL_MSG_TYPES };
	const uint8_t *at;
	struct buf b;
	size_t len;

	msg.kind = fuzz_u8(in) % COLL_KINDS;
	msg.seq = fuzz_u8(in) % 8;
	msg.count = fuzz_u8(in);
	msg.total = fuzz_u8(in);
	msg.size = msg.total;
	msg.more = msg.count % 8 == 7;
	msg.left_len = fuzz_u8(in) % 4;
	msg.fetch = (struct coll_fetch_msg){
		.id = msg.seq, .op = msg.count % 4, .rank = msg.total % 16,
		.timeout = msg.more, .status = msg.total % COLL_FETCH_STATUSES,
	};
	for (int kind = 0; kind < COLL_KINDS; kind++)
		msg.fault.from[kind] = fuzz_u8(in) - 1u;
	snprintf(msg.fault.reason, COLL_REASON_MAX, "it is said");
	buf_init(&b, SIZE_MAX);
	FUZZ_CHECK(!coll_msg_pack(&b, &msg));
	len = fuzz_bytes(in, fuzz_u8(in), &at);
	frame(h, from, &b, at, len);
	buf_free(&b);
}

static void raw_frame(struct host *h, struct fuzz_input *in)
{
	uint32_t from = fuzz_u8(in) % NODES;
	const uint8_t *at;
	struct buf b;
	size_t len = fuzz_bytes(in, fuzz_u8(in) % 40 + 1, &at);

	if (!len)
		return;
	buf_init(&b, SIZE_MAX);
	FUZZ_CHECK(!buf_append(&b, at, len));
	len = fuzz_bytes(in, fuzz_u8(in), &at);
	frame(h, from, &b, at, len);
	buf_free(&b);
}

static void reply(struct host *h, struct fuzz_input *in)
{
	struct control_msg msg = { .type = CONTROL_REPLY, .origin = POSITION };
	uint8_t which = fuzz_u8(in);
	const uint8_t *at;
	struct buf b;
	size_t len;

	msg.id = h->nrequests ? h->requests[which % h->nrequests] : which;
	msg.code = fuzz_u8(in) % 2;
	len = fuzz_bytes(in, fuzz_u8(in), &at);
	msg.text = fuzz_copy(at, len, 1);
	buf_init(&b, CONTROL_FRAME_MAX);
	FUZZ_CHECK(!control_pack(&b, &msg));
	pmi_server_control_input(h->server, b.data, b.len);
	buf_free(&b);
	control_free(&msg);
}

static void raw_reply(struct host *h, struct fuzz_input *in)
{
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u8(in), &at);
	void *copy = fuzz_copy(at, len, 0);

	pmi_server_control_input(h->server, copy, len);
	free(copy);
}

static void client(struct host *h, uint32_t slot, struct fuzz_input *in)
{
	char bytes[FRAME_BYTES_MAX];
	size_t len = fuzz_pmi_message(in, bytes, sizeof(bytes));

	if (!h->closed[slot])
		pmi_server_client_input(h->server, slot, bytes, len);
}

/* Whatever is claimed, memory is for what has come. */
static void check_memory(const struct host *h)
{
	struct stat st;

	if (!h->region)
		return;
	FUZZ_CHECK(!fstat(region_writer_fd(h->region), &st));
	FUZZ_CHECK((uint64_t)st.st_blocks * 512 <= MEMORY_MAX);
}

static void event(struct host *h, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	uint32_t slot = what / 16 % SLOTS, position = what / 16 % NODES;

	switch (what % 16) {
	case 0:
		raw_frame(h, in);
		break;
	case 1:
	case 2:
	case 3:
	case 4:
		good_frame(h, in);
		break;
	case 5:
		raw_reply(h, in);
		break;
	case 6:
		reply(h, in);
		break;
	case 7:
		if (what / 16 == 15)
			lose(h, fuzz_u8(in) % NODES);
		else if (!h->lost[position])
			pmi_server_link_up(h->server, position);
		break;
	case 8:
		if (what / 16 == 15)
			pmi_server_control_lost(h->server, "srun is gone");
		else if (what / 16 > 11)
			pmi_server_client_exit(h->server, slot, NULL);
		break;
	default:
		client(h, slot, in);
	}
	for (uint32_t i = 0; i < NODES; i++)
		if (h->to_break[i] && !h->lost[i])
			lose(h, i);
	check_memory(h);
}

/* ---- the node ---- */

static struct layout *make_layout(void)
{
	static const uint32_t counts[NODES] = { 1, SLOTS, 1, 1, 1, 1, 1 };
	static const uint32_t ranks[RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const uint32_t *lists[NODES], *next = ranks;
	struct layout *l;

	for (uint32_t i = 0; i < NODES; next += counts[i++])
		lists[i] = next;
	FUZZ_CHECK(!layout_create(&l, NODES, RANKS, counts, lists));
	return l;
}

/* The ranks have agreed on the extension, or not. */
static void start_ranks(struct host *h, bool extended)
{
	static const char pmi1[] = "cmd=init pmi_version=1 pmi_subversion=1\n";
	static const char pmi2[] = "cmd=init pmi_version=2 pmi_subversion=0\n"
				   "21    cmd=fullinit;pmi2x=1;";

	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		pmi_server_client_open(h->server, slot);
		if (slot == 1 && !extended)
			pmi_server_client_input(h->server, slot, pmi1,
						sizeof(pmi1) - 1);
		else
			pmi_server_client_input(h->server, slot, pmi2,
						sizeof(pmi2) - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4",
						  "n5", "n6" };
	struct fuzz_input in = { data, size };
	struct layout *layout = make_layout();
	uint8_t what = fuzz_u8(&in);
	struct pmi_step step = {
		.jobid = "17.2", .layout = layout, .position = POSITION,
		.tree_width = 2, .universe_size = 12, .build = "test",
		.spawned = what & 2, .node_names = names,
	};
	struct host h = { 0 };

	if (what & 4)
		FUZZ_CHECK(!region_writer_create(&h.region, REGION_SIZE));
	FUZZ_CHECK(!pmi_server_create(&h.server, &step, h.region, &ops, &h,
				      NULL));
	start_ranks(&h, what & 1);
	while (in.left)
		event(&h, &in);
	pmi_server_destroy(h.server);
	if (h.region)
		region_writer_destroy(h.region);
	layout_destroy(layout);
	return 0;
}
