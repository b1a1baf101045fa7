/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a node: the memory through which its ranks enter collectives
 * and hear of their end, without a socket.
 *
 * Two pieces. The *slot region* is a memory object that every rank of the node
 * may write, at any time and with anything (its size alone is sealed). The
 * *board* is a block of the results region, which only the agent can write.
 *
 *   rank   writes an entry into a free cell of its own slot, its ticket last;
 *          adds one to `entered` of the kind; when that reaches `need` on the
 *          board, wakes the agent.
 *   agent  copies the entry to where its bytes belong, once, subtracts it from `entered`, later writes the
 *          reply for the cell onto the board, its ticket last; then changes
 *          the word `changed` in the slot region and wakes all who wait on it.
 *
 *   rank   also shows records of what it has put, before a fence takes them, so that
 *          the agent can answer who asks for them; wakes it when that waits for one.
 *
 * A ticket numbers what a rank enters, over cells or over its socket, so that
 * the agent can take both in the order in which the rank made them. Whoever
 * forges something here, or punches out pages for which the system then has no memory
 * (SIGBUS: the agent says so and ends, and with it the step, by name),
 * can make its own job wait, and no more: the agent
 * bounds every number, and a rank that waits long writes its ticket again and wakes
 * the agent all the same.
 *
 * Threads: the agent's side belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/region.h"
#include "libshm/slots_layout.h"
#include "libutil/buf.h"

struct slots;

/*
 * Make the slot region for `count` ranks, and the board in `region`, which must
 * outlive the slots. Call before privileges are dropped. 0 or a negative errno.
 */
int slots_create(struct slots **out, struct region_writer *region,
		 uint32_t count);
void slots_destroy(struct slots *s);

/* Values that ranks get: a descriptor (CLOEXEC, the slots' own) and sizes. */
int slots_fd(const struct slots *s);
size_t slots_size(const struct slots *s);
uint64_t slots_board_offset(const struct slots *s);

/* Another program starts in this slot: its tickets count from 1 again. */
void slots_reset(struct slots *s, uint32_t slot);

/* An entry that was taken: its bytes are still where the rank may change them. */
struct slot_entry {
	enum slot_kind kind;
	uint32_t cell;
	uint32_t ticket;
	uint32_t stride;  /* of a gather; not checked */
	uint32_t ndone;   /* how many offsets of gathers are given back */
	size_t len;       /* of records, or the value of a gather or ring */
	const unsigned char *shared; /* for the two below only */
};

/* The i-th offset; the `len` bytes. Each once, and before the entry is answered. */
uint64_t slots_done(const struct slot_entry *e, uint32_t i);
void slots_copy(const struct slot_entry *e, void *to);

/*
 * Take the entry with this ticket out of a slot. 1; 0: there is none; -EPROTO:
 * there is one, whose kind and cell are set, with lengths that cannot be.
 */
int slots_take(struct slots *s, uint32_t slot, uint32_t ticket,
	       struct slot_entry *out);
/* `n` entries of a kind have been taken. */
void slots_taken(struct slots *s, enum slot_kind kind, uint32_t n);

/* How many more entries it takes until the agent wants to be woken. */
void slots_set_need(struct slots *s, enum slot_kind kind, uint32_t need);
/*
 * True: an entry was announced and not taken. Call it after slots_set_need: either this
 * function sees the entry, or the rank that made it has seen the new need.
 */
bool slots_waiting(const struct slots *s);

/*
 * Something that changes whenever a rank has shown more; and append what it shows to `b`,
 * which may be no records at all. 0; -EAGAIN: it does not hold still; or the errors of
 * buf_reserve.
 */
uint64_t slots_shown(const struct slots *s, uint32_t slot);
int slots_copy_shown(const struct slots *s, uint32_t slot, struct buf *b);
/*
 * The rank is to wake the agent when it shows more, or no longer. Look at the request
 * that it shows after this: then nothing is missed.
 */
void slots_watch(struct slots *s, uint32_t slot, bool yes);

/*
 * Answer the entry in a cell. `text` says why when rc is not 0; it may be NULL.
 * Ranks look only after slots_changed and a futex wake of slots_futex.
 */
void slots_reply(struct slots *s, uint32_t slot, uint32_t cell, uint32_t ticket,
		 int rc, uint64_t offset, uint64_t length, const char *text);

/* A rank's position in a ring, and the values of its neighbours, which are the caller's. */
struct slot_neighbours {
	uint64_t place, size;
	const void *left, *right;
	size_t left_len, right_len;
};

/*
 * Answer a ring. A rank has one of them at a time: another reply takes the place
 * of its values. 0; -EMSGSIZE: one is over SLOT_RING_MAX; -ENOSPC or -ENOMEM: no
 * room for them. Then nothing was done.
 */
int slots_reply_ring(struct slots *s, uint32_t slot, uint32_t cell,
		     uint32_t ticket, const struct slot_neighbours *n);

void slots_changed(struct slots *s);
void *slots_futex(struct slots *s);
