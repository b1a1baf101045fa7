/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine with ranks that enter collectives through their slots. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libshm/records.h"

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static uint32_t mallocs_left = UINT32_MAX; /* then one fails */

void *__wrap_malloc(size_t size)
{
	return mallocs_left-- ? __real_malloc(size) : NULL;
}

/* A rank's own view of the memory; what it has entered. */
struct user {
	struct net *net;
	struct net_node *node;
	uint32_t rank;
	uint32_t slot;
	unsigned char *map;
	const struct slots_board *board;
	uint32_t ticket;
};

static struct net *create(void)
{
	return net_create(&(struct net_options){.slots = true});
}

#define SLOTS_TEST(name) TEST_ON(name, struct net *n, create())

static void leave(void *user)
{
	struct user *u = user;

	munmap(u->map, slots_size(u->node->slots));
	free(u);
}

/* The rank uses its slots until the test ends. */
static struct user *use(struct net *n, uint32_t rank)
{
	struct net_node *node = net_node_of(n, rank);
	struct user *u = malloc(sizeof(*u));
	uint32_t count;

	layout_ranks_at(n->layout, node->position, &count);
	*u = (struct user){
		.net = n,
		.node = node,
		.rank = rank,
		.slot = net_slot_of(n, rank),
		.ticket = 1,
	};
	u->map = mmap(NULL, slots_size(node->slots), PROT_READ | PROT_WRITE,
		      MAP_SHARED, slots_fd(node->slots), 0);
	assert_true(u->map != MAP_FAILED);
	u->board = region_writer_bytes(node->region,
				       slots_board_offset(node->slots),
				       slots_board_size(count));
	net_init_slots(n, rank, SLOTS_VERSION);
	return unit_at_end(leave, u);
}

/* Put an entry into a cell. Does the count say: wake the agent? */
static bool put(struct user *u, uint32_t cell, uint32_t kind, const void *data,
		size_t len)
{
	struct slots_header *h = (struct slots_header *)u->map;
	struct slot_cell *c = slot_cell_at(u->map, u->slot, cell);
	uint32_t counted = kind < SLOT_KINDS ? kind : 0;

	memcpy(slot_data_at(u->map, u->slot, cell), data, len);
	c->kind = kind;
	c->len = len;
	c->stride = 0;
	c->done = 0;
	c->ticket = u->ticket++;
	return atomic_fetch_add(&h->kinds[counted].entered, 1) + 1 >=
	       u->board->need[counted];
}

/* The action of a rank: enter, and wake the agent if it should. */
static bool enter(struct user *u, uint32_t cell, uint32_t kind,
		  const void *data, size_t len)
{
	bool wake = put(u, cell, kind, data, len);

	if (wake)
		pmi_server_slots_input(u->node->server);
	net_run(u->net);
	return wake;
}

static void enter_over_socket(struct user *u, const char *body)
{
	u->ticket++;
	assert_null(net_pmi2(u->net, u->rank, body));
}

static const struct slot_reply *reply(const struct user *u, uint32_t cell)
{
	return &u->board->replies[u->slot].cells[cell];
}

static bool answered(const struct user *u, uint32_t cell, uint32_t ticket)
{
	return reply(u, cell)->ticket == ticket;
}

/* ---- tests ---- */

SLOTS_TEST(slots_are_negotiated)
{
	const struct net_options none = {0};
	const char *answer = net_init_slots(n, 4, 7);

	assert_non_null(strstr(answer, "pmi2x-region=1;"));
	assert_non_null(strstr(answer, "pmi2x-slots=4;"));
	assert_non_null(strstr(answer, "pmi2x-slot=2;"));
	assert_int_equal(n->ranks[4].fds, 3);
	assert_int_equal(n->ranks[4].fd, NET_WAKE_FD);
	/* A client that does not know them, one that declines. */
	assert_null(strstr(net_init_ext(n, 1, 1), "slots"));
	assert_int_equal(n->ranks[1].fds, 1);
	assert_null(strstr(net_init_slots(n, 2, SLOTS_VERSION - 1), "slots"));
	unit_end(n);
	n = net_create(&none); /* an agent that has none */
	assert_null(strstr(net_init_slots(n, 1, SLOTS_VERSION), "slots"));
	assert_int_equal(n->ranks[1].fds, 1);
}

/* Ranks 1, 2 and 4 are on one node: 1 and 4 use slots, 2 its socket. */
SLOTS_TEST(both_ways_meet_in_one_fence)
{
	struct user *one = use(n, 1), *four = use(n, 4);
	struct buf b;
	const char *value;
	size_t len;

	net_init2(n, 2);
	net_init_ext(n, 0, 0);
	net_init2(n, 3);
	net_init2(n, 5);
	buf_init(&b, 1000);
	record_append(&b, "key", 3, "in a slot", 9);
	assert_int_equal(one->board->need[SLOT_FENCE], 2);
	assert_false(enter(one, 0, SLOT_FENCE, b.data, b.len));
	assert_int_equal(pmi_server_pending(one->node->server), 0);
	assert_true(enter(four, 3, SLOT_FENCE, "", 0));
	assert_int_equal(pmi_server_pending(one->node->server), 1);
	net_pmi2(n, 0, "cmd=pmi2x-fence;");
	net_pmi2(n, 3, "cmd=kvs-fence;");
	net_pmi2(n, 5, "cmd=kvs-fence;");
	assert_false(answered(one, 0, 1));
	assert_string_equal(net_pmi2(n, 2, "cmd=kvs-fence;"),
			    "cmd=kvs-fence-response;rc=0;");
	assert_true(answered(one, 0, 1));
	assert_true(answered(four, 3, 1));
	assert_int_equal(reply(one, 0)->rc, 0);
	assert_int_equal(one->node->wakes, 1);
	assert_null(net_read(n, 1)); /* nothing over the socket */
	assert_true(region_writer_find(net_node_of(n, 5)->region, "key", 3,
				       &value, &len));
	assert_memory_equal(value, "in a slot", 9);
	buf_free(&b);
}

/* The last of those that use slots always finds that it must wake the agent. */
SLOTS_TEST(the_last_one_wakes_the_agent)
{
	struct user *one, *two, *four;

	one = use(n, 1);
	assert_int_equal(one->board->need[SLOT_FENCE], 1);
	assert_true(enter(one, 0, SLOT_FENCE, "", 0)); /* alone so far */
	two = use(n, 2);
	four = use(n, 4);
	assert_int_equal(one->board->need[SLOT_FENCE], 2);
	assert_false(enter(two, 0, SLOT_FENCE, "", 0));
	assert_true(enter(four, 0, SLOT_FENCE, "", 0));
	/* One rank is ahead by two entries; the others are not counted twice. */
	enter(one, 1, SLOT_FENCE, "", 0);
	enter(one, 2, SLOT_FENCE, "", 0);
	pmi_server_slots_input(one->node->server);
	assert_int_equal(one->board->need[SLOT_FENCE], 2);
	assert_false(enter(four, 1, SLOT_FENCE, "", 0));
	/* A rank that enters over its socket need not be waited for. */
	enter_over_socket(two, "cmd=pmi2x-fence;");
	assert_int_equal(pmi_server_pending(one->node->server), 3);
	assert_int_equal(one->board->need[SLOT_FENCE], 2);
	/* Nor who has left: the agent looks at once. */
	enter(two, 0, SLOT_FENCE, "", 0);
	assert_int_equal(one->board->need[SLOT_FENCE], 2);
	net_eof(n, 4);
	assert_int_equal(one->board->need[SLOT_FENCE], 0);
}

/* Slot, socket and slot again, before the agent looks at all. */
SLOTS_TEST(the_order_of_a_rank_is_kept)
{
	static const char request[] =
		"41    cmd=pmi2x-allgather;thrid=1;value=socket;";
	struct net_node *node;
	struct user *five = use(n, 5);
	char key[2] = "a";
	struct buf b;

	node = five->node;
	buf_init(&b, 1000);
	for (int i = 0; i < 2; i++, key[0] += 2) {
		buf_clear(&b);
		record_append(&b, key, 1, "x", 1);
		put(five, i, SLOT_GATHER, b.data, b.len);
		five->ticket++; /* the socket's turn, read later */
	}
	five->ticket--;
	net_input(n, 5, request, strlen(request)); /* at once: no look between */
	pmi_server_slots_input(node->server);
	assert_null(net_read(n, 5));
	assert_int_equal(pmi_server_pending(node->server), 3);
	for (uint32_t r = 0; r < 5; r++) {
		net_init_ext(n, r, 0);
		for (int i = 0; i < 3; i++)
			net_pmi2(n, r, "cmd=pmi2x-allgather;value=other;");
	}
	assert_true(answered(five, 0, 1));
	assert_true(answered(five, 1, 3));
	assert_non_null(strstr(net_read(n, 5), "thrid=1;rc=0;"));
	buf_free(&b);
}

SLOTS_TEST(gathers_lie_where_the_reply_says)
{
	struct user *five = use(n, 5);
	struct image img;
	const void *bytes;
	uint64_t offset;
	size_t len;

	for (int round = 0; round < 3; round++) {
		put(five, 0, SLOT_GATHER, "value of 5", 10);
		pmi_server_slots_input(five->node->server);
		for (uint32_t r = 0; r < 5; r++) {
			if (round == 0)
				net_init_ext(n, r, 0);
			net_pmi2(n, r, "cmd=pmi2x-allgather;value=v;");
		}
		assert_true(answered(five, 0, five->ticket - 1));
		offset = reply(five, 0)->offset;
		bytes = region_writer_bytes(five->node->region, offset,
					    reply(five, 0)->length);
		assert_int_equal(image_open(&img, bytes,
					    reply(five, 0)->length), 0);
		assert_memory_equal(image_gather_value(&img, 5, &len),
				    "value of 5", 10);
	}
}

static void expect_ring(const struct user *u, uint32_t cell, uint64_t place,
			const char *left, const char *right)
{
	const struct slot_reply *r = reply(u, cell);
	const struct slot_ring *ring;

	ring = region_writer_bytes(u->node->region,
				   slot_ring_offset(u->board, u->slot),
				   sizeof(*ring));
	assert_non_null(ring);
	assert_int_equal(r->rc, 0);
	assert_int_equal(r->offset, place);
	assert_int_equal(r->length, NET_RANKS);
	assert_int_equal(r->left, strlen(left));
	assert_memory_equal(ring->left, left, r->left);
	assert_int_equal(r->right, strlen(right));
	assert_memory_equal(ring->right, right, r->right);
}

/* Node by node: 0 and 3, then 1, 2 and 4, then 5; 1 and 4 use slots. */
SLOTS_TEST(both_ways_meet_in_one_ring)
{
	struct user *one = use(n, 1), *four = use(n, 4);

	for (int round = 0; round < 2; round++) {
		assert_int_equal(one->board->need[SLOT_RING], 2);
		assert_false(enter(one, 0, SLOT_RING, "of one", 6));
		assert_true(enter(four, 1, SLOT_RING, "4", 1));
		for (uint32_t r = 0; r < NET_RANKS; r++) {
			if (r == 1 || r == 4)
				continue;
			if (round == 0)
				net_init2(n, r);
			net_pmi2(n, r, "cmd=ring;ring-count=1;ring-left=l;"
				 "ring-right=right;");
		}
		assert_true(answered(one, 0, round + 1));
		assert_true(answered(four, 1, round + 1));
		expect_ring(one, 0, 2, "right", "l");
		expect_ring(four, 1, 4, "right", "l");
		assert_string_equal(net_read(n, 2), "cmd=ring-response;rc=0;"
				    "ring-count=3;ring-left=of one;"
				    "ring-right=4;ring-size=6;");
		net_forget(n);
	}
	assert_int_equal(one->node->wakes, 2);
}

/* Only who speaks PMI-2 by hand can show so much. */
SLOTS_TEST(a_value_that_does_not_fit_fails_the_ring)
{
	char body[SLOT_RING_MAX + 100];
	struct user *five = use(n, 5);

	put(five, 0, SLOT_RING, "5", 1);
	pmi_server_slots_input(five->node->server);
	snprintf(body, sizeof(body),
		 "cmd=ring;ring-count=1;ring-left=;ring-right=%0*d;",
		 SLOT_RING_MAX + 1, 0);
	for (uint32_t r = 0; r < 5; r++) {
		net_init2(n, r);
		net_pmi2(n, r, body);
	}
	assert_true(answered(five, 0, 1));
	assert_int_equal(reply(five, 0)->rc, PMI_RC_INVALID_LENGTH);
	assert_string_equal(five->board->replies[0].text,
			    "the values of the neighbours in the ring: "
			    "key or value too long");
}

SLOTS_TEST(odd_entries_are_answered)
{
	struct user *five = use(n, 5);

	enter(five, 0, SLOT_KINDS, "", 0);
	pmi_server_slots_input(five->node->server);
	assert_true(answered(five, 0, 1));
	assert_int_equal(reply(five, 0)->rc, PMI_RC_INVALID_ARG);
	enter(five, 1, SLOT_FENCE, "\377\377\377\377xxxx", 8);
	assert_int_equal(reply(five, 1)->rc, PMI_RC_INVALID_ARG);
	assert_string_equal(five->board->replies[0].text,
			    "records: malformed data");
	slot_cell_at(five->map, 0, 2)->stride = UINT32_MAX;
	put(five, 2, SLOT_GATHER, "", 0);
	slot_cell_at(five->map, 0, 2)->stride = UINT32_MAX;
	pmi_server_slots_input(five->node->server);
	assert_int_equal(reply(five, 2)->rc, PMI_RC_INVALID_SIZE);
	assert_int_equal(pmi_server_pending(five->node->server), 0);
}

/* A count that says more, or less, than there is costs nothing but time. */
SLOTS_TEST(forged_counts_do_no_harm)
{
	struct slots_header *h;
	struct user *five = use(n, 5);

	h = (struct slots_header *)five->map;
	h->kinds[SLOT_FENCE].entered = INT32_MAX;
	pmi_server_slots_input(five->node->server);
	assert_int_equal(five->node->agains, 0);
	h->kinds[SLOT_FENCE].entered = INT32_MIN;
	assert_false(enter(five, 0, SLOT_FENCE, "", 0));
	pmi_server_slots_input(five->node->server); /* after a second */
	assert_int_equal(pmi_server_pending(five->node->server), 1);
}

SLOTS_TEST(a_failure_reaches_the_slots)
{
	struct user *one = use(n, 1), *two = use(n, 2);

	use(n, 4);
	assert_false(enter(one, 0, SLOT_FENCE, "", 0));
	assert_false(enter(two, 0, SLOT_FENCE, "", 0));
	net_eof(n, 4);
	assert_true(answered(one, 0, 1));
	assert_true(answered(two, 0, 1));
	assert_int_equal(reply(one, 0)->rc, PMI_RC_OTHER);
	assert_non_null(strstr(one->board->replies[one->slot].text,
			       "rank 4 (node n1) "));
	/* A rank that enters from now on is told at once, not with the others. */
	assert_true(enter(two, 1, SLOT_FENCE, "", 0));
	assert_int_equal(reply(two, 1)->rc, PMI_RC_OTHER);
}

/* An entry that a rank put into its slot before it died still counts. */
SLOTS_TEST(the_last_entry_of_a_rank_counts)
{
	struct user *one = use(n, 1), *two = use(n, 2), *four = use(n, 4);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (net_node_of(n, r) != one->node) {
			net_init2(n, r);
			net_pmi2(n, r, "cmd=kvs-fence;");
		}
	assert_false(enter(one, 0, SLOT_FENCE, "", 0));
	assert_false(enter(four, 0, SLOT_FENCE, "", 0));
	net_hang_up(n, 4);
	assert_false(answered(one, 0, 1));
	put(two, 0, SLOT_FENCE, "", 0);
	pmi_server_slots_input(two->node->server);
	net_run(n);
	assert_true(answered(one, 0, 1));
	assert_int_equal(reply(one, 0)->rc, 0);
}

SLOTS_TEST(a_second_program_starts_anew)
{
	struct user *five = use(n, 5);

	assert_string_equal(net_pmi2(n, 5, "cmd=finalize;"),
			    "cmd=finalize-response;rc=0;");
	put(five, 0, SLOT_FENCE, "", 0); /* nobody will look there */
	pmi_server_slots_input(five->node->server);
	assert_int_equal(five->board->need[SLOT_FENCE], 0);
	unit_end(five);
	five = use(n, 5);
	pmi_server_slots_input(five->node->server);
	assert_int_equal(pmi_server_pending(five->node->server), 0);
	assert_true(put(five, 1, SLOT_FENCE, "", 0));
	pmi_server_slots_input(five->node->server);
	assert_int_equal(pmi_server_pending(five->node->server), 1);
}

/* The first gather has what rank 5 entered first, or it has failed. */
static void expect_first(struct net *n, uint32_t rank, const char *answer)
{
	struct region_writer *region = net_node_of(n, rank)->region;
	char *offset, *length;
	struct image img;
	const void *bytes;
	size_t len;

	assert_non_null(answer);
	if (!strstr(answer, "rc=0;"))
		return;
	offset = net_field(answer, "offset");
	length = net_field(answer, "length");
	bytes = region_writer_bytes(region, strtoull(offset, NULL, 10),
				    strtoull(length, NULL, 10));
	assert_int_equal(image_open(&img, bytes, strtoull(length, NULL, 10)), 0);
	assert_memory_equal(image_gather_value(&img, 5, &len), "first", 5);
	free(offset);
	free(length);
}

/* With one malloc failing; false: there are not as many. */
static bool one_failure(uint32_t fail)
{
	static const char request[] =
		"41    cmd=pmi2x-allgather;thrid=1;value=second;";
	struct net *n = create();
	struct user *five = use(n, 5);
	bool refused;

	for (uint32_t r = 0; r < 5; r++) {
		net_init_ext(n, r, 0);
		assert_null(net_pmi2(n, r, "cmd=pmi2x-allgather;value=other;"));
	}
	put(five, 0, SLOT_GATHER, "first", 5);
	five->ticket++;
	mallocs_left = fail;
	net_input(n, 5, request, strlen(request));
	refused = mallocs_left > fail;
	mallocs_left = UINT32_MAX;
	net_run(n);
	for (uint32_t r = 0; r < 5; r++)
		expect_first(n, r, net_read(n, r));
	unit_end(five);
	unit_end(n);
	return refused;
}

TEST(entry_after_a_failed_one_does_not_replace_it)
{
	uint32_t fail = 0;

	while (one_failure(fail))
		fail++;
	assert_true(fail > 1);
}
