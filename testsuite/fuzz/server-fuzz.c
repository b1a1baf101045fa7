/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of three nodes whose ranks send anything, in any order and pieces, and
 * write anything into their slots. The engine answers, keeps its contract with
 * its host (server-net.c checks it), and no node takes another's frame for
 * wrong.
 */
#include "fuzz.h"

#include <sys/mman.h>

#include "../unit/engine/net.h"
#include "fuzz-pmi.h"
#include "libshm/slots_layout.h"

#define INPUT_BYTES_MAX 512
#define EVENTS_MAX 256
#define QUEUE_ENOUGH 1024 /* of server-net's 4096 frames */
#define OUT_ENOUGH (1u << 20)

struct step {
	struct net *net;
	void *slots[NET_NODES]; /* as a rank maps them */
};

static void map_slots(struct step *s)
{
	for (uint32_t i = 0; i < NET_NODES; i++) {
		struct slots *slots = s->net->nodes[i].slots;

		if (!slots)
			continue;
		s->slots[i] = mmap(NULL, slots_size(slots),
				   PROT_READ | PROT_WRITE, MAP_SHARED,
				   slots_fd(slots), 0);
		FUZZ_CHECK(s->slots[i] != MAP_FAILED);
	}
}

static void unmap_slots(struct step *s)
{
	for (uint32_t i = 0; i < NET_NODES; i++)
		if (s->slots[i])
			munmap(s->slots[i], slots_size(s->net->nodes[i].slots));
}

/* A cell of the rank's slot, with lengths that may be anything. */
static void enter_slot(struct step *s, uint32_t rank, struct fuzz_input *in)
{
	struct net_node *node = net_node_of(s->net, rank);
	void *map = s->slots[node->position];
	uint32_t slot = net_slot_of(s->net, rank);
	uint32_t cell = fuzz_u8(in) % SLOT_CELLS;
	struct slot_cell *c;
	const uint8_t *at;
	size_t len;

	if (!map)
		return;
	c = slot_cell_at(map, slot, cell);
	c->kind = fuzz_u8(in) % (SLOT_KINDS + 1);
	c->done = fuzz_u8(in) % 8;
	c->stride = fuzz_u8(in) % 2 ? 8 : fuzz_u32(in);
	len = fuzz_bytes(in, fuzz_u8(in), &at);
	c->len = fuzz_u8(in) % 8 ? len : fuzz_u16(in);
	memcpy(slot_data_at(map, slot, cell), at, len);
	c->ticket = fuzz_u8(in) % 8;
	((struct slots_header *)map)->kinds[SLOT_FENCE].entered +=
		fuzz_u8(in) % 4 - 1;
	pmi_server_slots_input(node->server);
}

/* A message that a client may send, in its wire form. */
static void send_known(struct step *s, uint32_t rank, struct fuzz_input *in)
{
	char bytes[INPUT_BYTES_MAX];
	size_t len = fuzz_pmi_message(in, bytes, sizeof(bytes));

	net_input(s->net, rank, bytes, len);
}

static void send_raw(struct step *s, uint32_t rank, struct fuzz_input *in)
{
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u16(in) % INPUT_BYTES_MAX, &at);
	void *copy = fuzz_copy(at, len, 0);

	net_input(s->net, rank, copy, len);
	free(copy);
}

static void leave(struct step *s, uint32_t rank, uint8_t how)
{
	struct net_node *node = net_node_of(s->net, rank);

	if (how % 2)
		net_eof(s->net, rank);
	else
		pmi_server_client_exit(node->server, net_slot_of(s->net, rank),
				       NULL);
}

/* All that is needed to come to the collectives. */
static void start_rank(struct step *s, uint32_t rank, uint8_t how)
{
	static const char pmi1[] = "cmd=init pmi_version=1 pmi_subversion=1\n";
	static const char pmi2[] = "cmd=init pmi_version=2 pmi_subversion=0\n"
		"50    cmd=fullinit;pmi2x=1;pmi2x-region=1;pmi2x-slots=3;";

	if (how % 3)
		net_input(s->net, rank, pmi2, sizeof(pmi2) - 1);
	else
		net_input(s->net, rank, pmi1, sizeof(pmi1) - 1);
}

static void event(struct step *s, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	uint32_t rank = what / 16 % NET_RANKS;

	switch (what % 16) {
	case 0:
		send_raw(s, rank, in);
		break;
	case 1:
	case 2:
		start_rank(s, rank, fuzz_u8(in));
		break;
	case 3:
		leave(s, rank, fuzz_u8(in));
		break;
	case 4:
	case 5:
	case 6:
		enter_slot(s, rank, in);
		break;
	case 7:
	case 8:
		net_run(s->net);
		break;
	case 9:
		if (s->net->spawn_token)
			step_services_spawned(s->net->launcher, s->net->spawn_token,
					 (int)fuzz_u8(in) % 2, "17.9");
		break;
	default:
		send_known(s, rank, in);
	}
}

static void settle(struct step *s)
{
	size_t waiting = 0;

	if (s->net->tail - s->net->head > QUEUE_ENOUGH || s->net->tail > 2048)
		net_run(s->net);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		waiting += s->net->ranks[r].out.len;
	if (waiting > OUT_ENOUGH)
		net_forget(s->net);
}

/* With every rank gone, and all told, no collective is left. */
static void end(struct step *s)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_eof(s->net, r);
	net_run(s->net);
	for (uint32_t i = 0; i < NET_NODES; i++)
		FUZZ_CHECK(!pmi_server_pending(s->net->nodes[i].server));
	unmap_slots(s);
	unit_end(s->net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t what = fuzz_u8(&in);
	struct net_options options = {
		.heap = what % 4 == 0,
		.slots = what % 4 > 1,
		.spawned = what & 16,
		.region_size = REGION_SIZE_MIN,
	};
	struct step s = { .net = net_create(&options) };

	map_slots(&s);
	for (int i = 0; in.left && i < EVENTS_MAX; i++) {
		event(&s, &in);
		settle(&s);
	}
	end(&s);
	return 0;
}
