/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a slot region and its board, SLOTS_VERSION 4. Shared by agent
 * and client on one machine, so in its byte order. slots.h explains them.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS_VERSION 4
#define SLOTS_LINE 64           /* a cache line */
#define SLOTS_HEADER_SIZE 4096  /* slots start on a page */
#define SLOT_CELLS 4            /* entries of a rank that have not ended */
#define SLOT_CELL_SIZE 8192
#define SLOT_HEAD_SIZE 128
#define SLOT_DATA_MAX (SLOT_CELL_SIZE - SLOT_HEAD_SIZE)
#define SLOT_TEXT_MAX 888       /* bytes of an error text, NUL included */
#define SLOT_RING_MAX 1024      /* bytes of a neighbour's value */
#define SLOT_SHOWN_SIZE 65536
#define SLOT_SHOWN_MAX (SLOT_SHOWN_SIZE - SLOTS_LINE) /* bytes of records */

enum slot_kind { SLOT_FENCE, SLOT_GATHER, SLOT_RING, SLOT_KINDS };

/* ---- the slot region: written by ranks ---- */

struct slots_counter {
	_Alignas(SLOTS_LINE) _Atomic int32_t entered; /* announced and not yet taken */
};

/*
 * The futex lies here and not on the board, because the kernel takes a detour
 * for a futex in memory that the waiter may only read. It says nothing but "look
 * at the board", so who forges it makes the ranks of its own job look too often
 * or, until their time limit, too late.
 */
struct slots_header {
	struct slots_counter kinds[SLOT_KINDS];
	_Alignas(SLOTS_LINE) _Atomic uint32_t changed;
};

static_assert(sizeof(struct slots_header) <= SLOTS_HEADER_SIZE,
	      "fixed by the format");

/* `done` offsets of 8 bytes are in front of the data, and counted in `len`. */
struct slot_cell {
	_Atomic uint32_t ticket; /* 0: empty; stored last */
	_Atomic uint32_t kind;
	_Atomic uint32_t len;    /* bytes */
	_Atomic uint32_t stride;
	_Atomic uint32_t done;
	uint32_t reserved[3];
};

/*
 * Records of what the rank has put last, for the agent to look at: they only grow,
 * but for when the rank starts over. `version` is odd while it does.
 */
struct slot_shown {
	_Atomic uint32_t version;
	_Atomic uint32_t len; /* bytes of records; stored last */
	_Alignas(SLOTS_LINE) unsigned char records[SLOT_SHOWN_MAX];
};

static_assert(sizeof(struct slot_shown) == SLOT_SHOWN_SIZE,
	      "fixed by the format");

/*
 * A slot: the heads of all its cells, then their data, then what it shows. Heads and the data of
 * the first cell share a page, so a rank that has one small entry at a time
 * uses no other page.
 */
#define SLOT_SIZE ((size_t)SLOT_CELLS * SLOT_CELL_SIZE + SLOT_SHOWN_SIZE)

static_assert(sizeof(struct slot_cell) == 32, "fixed by the format");
static_assert(SLOT_CELLS * sizeof(struct slot_cell) == SLOT_HEAD_SIZE,
	      "fixed by the format");

static inline struct slot_cell *slot_cell_at(void *map, uint32_t slot,
					     uint32_t cell)
{
	unsigned char *at = (unsigned char *)map + SLOTS_HEADER_SIZE +
			    slot * SLOT_SIZE;

	return (struct slot_cell *)at + cell;
}

/* SLOT_DATA_MAX bytes. */
static inline unsigned char *slot_data_at(void *map, uint32_t slot,
					  uint32_t cell)
{
	return (unsigned char *)map + SLOTS_HEADER_SIZE + slot * SLOT_SIZE +
	       cell * (size_t)SLOT_CELL_SIZE + SLOT_HEAD_SIZE;
}

static inline struct slot_shown *slot_shown_at(void *map, uint32_t slot)
{
	unsigned char *at = (unsigned char *)map + SLOTS_HEADER_SIZE +
			    slot * SLOT_SIZE;

	return (struct slot_shown *)(at + (size_t)SLOT_CELLS * SLOT_CELL_SIZE);
}

static inline uint32_t slot_ticket_after(uint32_t ticket)
{
	return ticket == UINT32_MAX ? 1 : ticket + 1;
}

/* ---- the board: written by the agent ---- */

struct slot_reply {
	_Atomic uint32_t ticket; /* of the request that the reply answers; stored last */
	int32_t rc;              /* a PMI code */
	uint64_t offset;         /* of a gather's result in the region; a ring:
	                            the rank's place in it */
	uint64_t length;         /* of the result; a ring: how many are in it */
	uint32_t left;           /* a ring: bytes of both values */
	uint32_t right;
};

struct slot_replies {
	struct slot_reply cells[SLOT_CELLS];
	char text[SLOT_TEXT_MAX]; /* of the last error */
	_Atomic uint32_t watched; /* 1: wake the agent after each put */
	uint32_t reserved;
};

struct slots_board {
	uint32_t reserved;
	uint32_t count; /* slots */
	uint64_t rings; /* where in the region a slot_ring for each slot is; 0:
	                   no ring has been answered */
	_Alignas(SLOTS_LINE) _Atomic int32_t need[SLOT_KINDS];
	_Alignas(SLOTS_LINE) struct slot_replies replies[];
};

/* The ring that a rank was answered last. */
struct slot_ring {
	char left[SLOT_RING_MAX];
	char right[SLOT_RING_MAX];
};

static_assert(sizeof(struct slot_reply) == 32 &&
	      sizeof(struct slot_ring) == 2048, "fixed by the format");
static_assert(sizeof(struct slot_replies) == 1024, "fixed by the format");
static_assert(offsetof(struct slots_board, need) == 64 &&
	      offsetof(struct slots_board, replies) == 128,
	      "fixed by the format");
static_assert(sizeof(_Atomic uint32_t) == 4 && ATOMIC_INT_LOCK_FREE == 2,
	      "processes share it: no lock may hide in it");

static inline size_t slots_region_size(uint32_t count)
{
	return SLOTS_HEADER_SIZE + count * SLOT_SIZE;
}

static inline size_t slots_board_size(uint32_t count)
{
	return sizeof(struct slots_board) +
	       count * sizeof(struct slot_replies);
}

/* Offset in the region of a slot's slot_ring, valid once a ring was answered. */
static inline uint64_t slot_ring_offset(const struct slots_board *board,
					uint32_t slot)
{
	return board->rings + slot * sizeof(struct slot_ring);
}
