/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of the slots against ranks that write anything into them. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshm/slots.h"

#define COUNT 3

struct node {
	struct region_writer *region;
	struct slots *slots;
	unsigned char *map; /* as a rank sees it */
	const struct slots_board *board;
};

static int setup(void **state)
{
	static struct node n;

	assert_int_equal(region_writer_create(&n.region, 1 << 20), 0);
	assert_int_equal(slots_create(&n.slots, n.region, COUNT), 0);
	n.map = mmap(NULL, slots_size(n.slots), PROT_READ | PROT_WRITE,
		     MAP_SHARED, slots_fd(n.slots), 0);
	assert_true(n.map != MAP_FAILED);
	n.board = region_writer_bytes(n.region, slots_board_offset(n.slots),
				      slots_board_size(COUNT));
	assert_non_null(n.board);
	*state = &n;
	return 0;
}

static int teardown(void **state)
{
	struct node *n = *state;

	munmap(n->map, slots_size(n->slots));
	slots_destroy(n->slots);
	region_writer_destroy(n->region);
	return 0;
}

static uint32_t changed_of(const struct node *n)
{
	return ((const struct slots_header *)n->map)->changed;
}

static void write_cell(struct node *n, uint32_t slot, uint32_t cell,
		       uint32_t ticket, uint32_t kind, uint32_t len,
		       uint32_t done)
{
	struct slot_cell *c = slot_cell_at(n->map, slot, cell);

	c->kind = kind;
	c->len = len;
	c->done = done;
	c->stride = 5;
	c->ticket = ticket;
}

#define WITH_NODE(test) TEST_WITH(test, setup, teardown)

WITH_NODE(entries_are_taken_by_ticket)
{
	struct node *n = *state;
	const uint64_t offset = 77;
	char copy[] = "......";
	struct slot_entry e;

	memcpy(slot_data_at(n->map, 1, 2), &offset, 8);
	memcpy(slot_data_at(n->map, 1, 2) + 8, "value", 5);
	write_cell(n, 1, 2, 9, SLOT_GATHER, 13, 1);
	write_cell(n, 1, 0, 8, SLOT_FENCE, 0, 0);
	assert_int_equal(slots_take(n->slots, 1, 7, &e), 0);
	assert_int_equal(slots_take(n->slots, 0, 9, &e), 0);
	assert_int_equal(slots_take(n->slots, 1, 9, &e), 1);
	assert_int_equal(e.kind, SLOT_GATHER);
	assert_int_equal(e.cell, 2);
	assert_int_equal(e.stride, 5);
	assert_int_equal(e.ndone, 1);
	assert_int_equal(slots_done(&e, 0), offset);
	assert_int_equal(e.len, 5);
	/* A later write of the rank changes no number. */
	write_cell(n, 1, 2, 9, SLOT_FENCE, SLOT_DATA_MAX, 9);
	slots_copy(&e, copy);
	assert_string_equal(copy, "value.");
	slots_reset(n->slots, 1);
	assert_int_equal(slots_take(n->slots, 1, 9, &e), 0);
	assert_int_equal(slots_take(n->slots, 1, 8, &e), 0);
}

WITH_NODE(the_last_byte_of_a_slot_is_inside)
{
	struct node *n = *state;
	struct slot_entry e;

	memset(slot_data_at(n->map, COUNT - 1, SLOT_CELLS - 1), 'x',
	       SLOT_DATA_MAX);
	assert_ptr_equal(slot_data_at(n->map, COUNT - 1, SLOT_CELLS - 1) +
			 SLOT_DATA_MAX, slot_shown_at(n->map, COUNT - 1));
	assert_ptr_equal(slot_shown_at(n->map, COUNT - 1) + 1,
			 n->map + slots_size(n->slots));
	write_cell(n, COUNT - 1, SLOT_CELLS - 1, 1, SLOT_FENCE, SLOT_DATA_MAX,
		   0);
	assert_int_equal(slots_take(n->slots, COUNT - 1, 1, &e), 1);
	assert_int_equal(e.len, SLOT_DATA_MAX);
}

WITH_NODE(impossible_entries_are_refused)
{
	static const uint32_t odd[][3] = {
		{ SLOT_KINDS, 0, 0 },
		{ UINT32_MAX, 0, 0 },
		{ SLOT_FENCE, SLOT_DATA_MAX + 1, 0 },
		{ SLOT_FENCE, UINT32_MAX, 0 },
		{ SLOT_GATHER, 7, 1 },
		{ SLOT_GATHER, SLOT_DATA_MAX, SLOT_DATA_MAX / 8 + 1 },
		{ SLOT_GATHER, 8, 0x20000001u },
		{ SLOT_GATHER, 8, UINT32_MAX },
	};
	struct node *n = *state;
	struct slot_entry e;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		write_cell(n, 0, 3, 4, odd[i][0], odd[i][1], odd[i][2]);
		assert_int_equal(slots_take(n->slots, 0, 4, &e), -EPROTO);
		assert_true(e.kind < SLOT_KINDS);
		assert_int_equal(e.cell, 3);
		assert_int_equal(e.ticket, 4);
	}
}

/* A hole reads as an empty slot; the size cannot be changed. */
WITH_NODE(ranks_can_punch_but_not_cut)
{
	struct node *n = *state;
	struct slot_entry e;
	int fd = slots_fd(n->slots);

	write_cell(n, 0, 0, 1, SLOT_FENCE, 0, 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE |
				   FALLOC_FL_KEEP_SIZE, 0,
				   slots_size(n->slots)), 0);
	assert_int_equal(slots_take(n->slots, 0, 1, &e), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, slots_size(n->slots) + 4096), -1);
}

WITH_NODE(counts_and_needs_meet)
{
	struct node *n = *state;
	struct slots_header *h = (struct slots_header *)n->map;

	assert_false(slots_waiting(n->slots));
	atomic_fetch_add(&h->kinds[SLOT_GATHER].entered, 2);
	assert_true(slots_waiting(n->slots));
	slots_taken(n->slots, SLOT_GATHER, 2);
	assert_false(slots_waiting(n->slots));
	/* Taken before the rank has counted itself. */
	slots_taken(n->slots, SLOT_FENCE, 1);
	assert_false(slots_waiting(n->slots));
	slots_set_need(n->slots, SLOT_FENCE, 3);
	assert_int_equal(n->board->need[SLOT_FENCE], 3);
}

WITH_NODE(replies_carry_the_ticket_and_the_reason)
{
	struct node *n = *state;
	const struct slot_replies *r = &n->board->replies[2];
	uint32_t before = changed_of(n);

	slots_reply(n->slots, 2, 1, 6, 0, 4096, 99, NULL);
	assert_int_equal(r->cells[1].ticket, 6);
	assert_int_equal(r->cells[1].rc, 0);
	assert_int_equal(r->cells[1].offset, 4096);
	assert_int_equal(r->cells[1].length, 99);
	assert_int_equal(r->cells[0].ticket, 0);
	slots_reply(n->slots, 2, 0, 7, 14, 0, 0, "because");
	assert_int_equal(r->cells[0].rc, 14);
	assert_string_equal(r->text, "because");
	assert_int_equal(changed_of(n), before);
	slots_changed(n->slots);
	assert_int_not_equal(changed_of(n), before);
}

/* The region has room for them only once there is a ring. */
WITH_NODE(rings_carry_both_values)
{
	struct node *n = *state;
	const struct slot_reply *r = &n->board->replies[2].cells[1];
	static const char long_value[SLOT_RING_MAX + 1] = "x";
	struct slot_neighbours at = {
		.place = 7, .size = (uint64_t)1 << 33, .left = "abc",
		.left_len = 3, .right = long_value, .right_len = SLOT_RING_MAX,
	};
	const struct slot_ring *rings;

	assert_int_equal(n->board->rings, 0);
	assert_int_equal(slots_reply_ring(n->slots, 2, 1, 6, &at), 0);
	rings = region_writer_bytes(n->region, n->board->rings,
				    COUNT * sizeof(*rings));
	assert_non_null(rings);
	assert_int_equal(r->ticket, 6);
	assert_int_equal(r->rc, 0);
	assert_int_equal(r->offset, 7);
	assert_true(r->length == (uint64_t)1 << 33);
	assert_int_equal(r->left, 3);
	assert_memory_equal(rings[2].left, "abc", 3);
	assert_int_equal(r->right, SLOT_RING_MAX);
	assert_memory_equal(rings[2].right, long_value, SLOT_RING_MAX);
	at.right_len++;
	assert_int_equal(slots_reply_ring(n->slots, 2, 1, 8, &at), -EMSGSIZE);
	at.left_len = at.right_len;
	at.right_len = 0;
	assert_int_equal(slots_reply_ring(n->slots, 2, 1, 8, &at), -EMSGSIZE);
	assert_int_equal(r->ticket, 6);
}

/* Values for which the region has no room. */
WITH_NODE(a_ring_needs_room)
{
	struct node *n = *state;
	struct slot_neighbours at = { .size = 1, .left = "", .right = "" };
	uint64_t offset;
	void *block;

	while (region_reserve(n->region, 4096, &offset, &block) == 0)
		;
	assert_int_equal(slots_reply_ring(n->slots, 0, 0, 1, &at), -ENOSPC);
	assert_int_equal(n->board->replies[0].cells[0].ticket, 0);
}

WITH_NODE(what_ranks_show_is_copied)
{
	struct node *n = *state;
	struct slot_shown *shown = slot_shown_at(n->map, 1);
	uint64_t before = slots_shown(n->slots, 1);
	struct buf b;

	buf_init(&b, SLOT_SHOWN_MAX + 1);
	assert_int_equal(slots_copy_shown(n->slots, 1, &b), 0);
	assert_int_equal(b.len, 0);
	memset(shown->records, 'x', SLOT_SHOWN_MAX);
	shown->len = SLOT_SHOWN_MAX;
	assert_int_not_equal(slots_shown(n->slots, 1), before);
	buf_append(&b, "a", 1);
	assert_int_equal(slots_copy_shown(n->slots, 1, &b), 0);
	assert_int_equal(b.len, SLOT_SHOWN_MAX + 1);
	assert_int_equal(b.data[SLOT_SHOWN_MAX], 'x');
	/* More than there is; in the middle of a change; somebody else's. */
	b.len = 1;
	shown->len = SLOT_SHOWN_MAX + 1;
	assert_int_equal(slots_copy_shown(n->slots, 1, &b), -EAGAIN);
	shown->len = 1;
	shown->version = 7;
	assert_int_equal(slots_copy_shown(n->slots, 1, &b), -EAGAIN);
	assert_int_equal(slots_copy_shown(n->slots, 0, &b), 0);
	assert_int_equal(b.len, 1);
	/* Another program begins without. */
	shown->version = 8;
	slots_reset(n->slots, 1);
	assert_int_equal(slots_copy_shown(n->slots, 1, &b), 0);
	assert_int_equal(b.len, 1);
	slots_watch(n->slots, 1, true);
	assert_int_equal(n->board->replies[1].watched, 1);
	assert_int_equal(n->board->replies[0].watched, 0);
	buf_free(&b);
}

