/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of the slots: takes entries, writes replies. */
#include "config.h" /* _GNU_SOURCE */

#include "libshm/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshm/region_memory.h"

#define SLOTS_NAME "pmi2x-slots" /* in /proc/PID/maps */

struct slots {
	void *map;
	size_t size;
	int fd;
	uint32_t count;
	struct region_writer *region;
	struct slots_board *board;
	uint64_t board_offset;
	struct slot_ring *rings; /* NULL: none has been answered */
};

/* ---- life ---- */

static int make_memory(struct slots *s)
{
	s->fd = region_memory_object(SLOTS_NAME);
	if (s->fd < 0)
		return s->fd;
	if (ftruncate(s->fd, s->size) ||
	    fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	s->map = mmap(NULL, s->size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_NORESERVE, s->fd, 0);
	if (s->map == MAP_FAILED) {
		s->map = NULL;
		return -errno;
	}
	madvise(s->map, s->size, MADV_DONTFORK);
	madvise(s->map, s->size, MADV_DONTDUMP);
	return 0;
}

static int make_board(struct slots *s)
{
	size_t len = slots_board_size(s->count);
	int rc = region_reserve(s->region, len, &s->board_offset,
				(void **)&s->board);

	if (rc)
		return rc;
	memset(s->board, 0, len);
	s->board->count = s->count;
	return 0;
}

int slots_create(struct slots **out, struct region_writer *region,
		 uint32_t count)
{
	struct slots *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->region = region;
	s->count = count;
	s->size = slots_region_size(count);
	rc = make_memory(s);
	if (!rc)
		rc = make_board(s);
	if (rc)
		slots_destroy(s);
	else
		*out = s;
	return rc;
}

void slots_destroy(struct slots *s)
{
	if (!s)
		return;
	if (s->map)
		munmap(s->map, s->size);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

int slots_fd(const struct slots *s)
{
	return s->fd;
}

size_t slots_size(const struct slots *s)
{
	return s->size;
}

uint64_t slots_board_offset(const struct slots *s)
{
	return s->board_offset;
}

void slots_reset(struct slots *s, uint32_t slot)
{
	for (uint32_t i = 0; i < SLOT_CELLS; i++) {
		atomic_store(&slot_cell_at(s->map, slot, i)->ticket, 0);
		atomic_store(&s->board->replies[slot].cells[i].ticket, 0);
	}
	atomic_store(&slot_shown_at(s->map, slot)->len, 0);
}

/* ---- entries ---- */

static uint32_t look(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static struct slot_cell *find_cell(struct slots *s, uint32_t slot,
				   uint32_t ticket, uint32_t *cell)
{
	for (*cell = 0; *cell < SLOT_CELLS; ++*cell) {
		struct slot_cell *c = slot_cell_at(s->map, slot, *cell);

		if (atomic_load_explicit(&c->ticket, memory_order_acquire) ==
		    ticket)
			return c;
	}
	return NULL;
}

/* The rank may go on writing: nothing is read twice. */
static int take_cell(const struct slots *s, uint32_t slot,
		     const struct slot_cell *c, struct slot_entry *out)
{
	uint32_t kind = look(&c->kind), len = look(&c->len);
	uint32_t done = look(&c->done);

	out->kind = kind < SLOT_KINDS ? (enum slot_kind)kind : SLOT_FENCE;
	out->stride = look(&c->stride);
	if (kind >= SLOT_KINDS || len > SLOT_DATA_MAX ||
	    done > len / sizeof(uint64_t))
		return -EPROTO;
	out->shared = slot_data_at(s->map, slot, out->cell);
	out->ndone = done;
	out->len = len - done * sizeof(uint64_t);
	return 1;
}

uint64_t slots_done(const struct slot_entry *e, uint32_t i)
{
	uint64_t offset;

	memcpy(&offset, e->shared + i * sizeof(offset), sizeof(offset));
	return offset;
}

void slots_copy(const struct slot_entry *e, void *to)
{
	if (e->len)
		memcpy(to, e->shared + e->ndone * sizeof(uint64_t), e->len);
}

int slots_take(struct slots *s, uint32_t slot, uint32_t ticket,
	       struct slot_entry *out)
{
	const struct slot_cell *c;

	memset(out, 0, sizeof(*out));
	c = find_cell(s, slot, ticket, &out->cell);
	if (!c)
		return 0;
	out->ticket = ticket;
	return take_cell(s, slot, c, out);
}

static struct slots_counter *counter(const struct slots *s, int kind)
{
	return &((struct slots_header *)s->map)->kinds[kind];
}

void slots_taken(struct slots *s, enum slot_kind kind, uint32_t n)
{
	if (n)
		atomic_fetch_sub(&counter(s, kind)->entered, (int32_t)n);
}

/* Sequentially consistent, as are the rank's addition and its look at need. */
void slots_set_need(struct slots *s, enum slot_kind kind, uint32_t need)
{
	atomic_store(&s->board->need[kind], (int32_t)need);
}

bool slots_waiting(const struct slots *s)
{
	for (int kind = 0; kind < SLOT_KINDS; kind++)
		if (atomic_load(&counter(s, kind)->entered) > 0)
			return true;
	return false;
}

/* ---- what ranks show ---- */

uint64_t slots_shown(const struct slots *s, uint32_t slot)
{
	const struct slot_shown *shown = slot_shown_at(s->map, slot);

	return (uint64_t)look(&shown->version) << 32 | look(&shown->len);
}

#define COPIES_MAX 8 /* a rank starts over once in many puts */

int slots_copy_shown(const struct slots *s, uint32_t slot, struct buf *b)
{
	const struct slot_shown *shown = slot_shown_at(s->map, slot);
	size_t start = b->len;

	for (int i = 0; i < COPIES_MAX; i++) {
		uint32_t version = atomic_load(&shown->version);
		uint32_t len = atomic_load(&shown->len);
		int rc = -EAGAIN;

		if (version % 2 == 0 && len <= SLOT_SHOWN_MAX)
			rc = buf_append(b, shown->records, len);
		if (rc && rc != -EAGAIN)
			return rc;
		atomic_thread_fence(memory_order_acquire);
		if (!rc && look(&shown->version) == version)
			return 0;
		b->len = start;
	}
	return -EAGAIN;
}

/* Sequentially consistent, as are the rank's store of `len` and its look at this. */
void slots_watch(struct slots *s, uint32_t slot, bool yes)
{
	atomic_store(&s->board->replies[slot].watched, yes);
}

/* ---- replies ---- */

void slots_reply(struct slots *s, uint32_t slot, uint32_t cell, uint32_t ticket,
		 int rc, uint64_t offset, uint64_t length, const char *text)
{
	struct slot_replies *replies = &s->board->replies[slot];
	struct slot_reply *r = &replies->cells[cell];

	if (rc)
		snprintf(replies->text, sizeof(replies->text), "%s",
			 text ? text : "");
	r->rc = rc;
	r->offset = offset;
	r->length = length;
	atomic_store_explicit(&r->ticket, ticket, memory_order_release);
}

/* A step without rings does not pay for them. */
static int make_rings(struct slots *s)
{
	void *at;
	int rc = region_reserve(s->region, s->count * sizeof(*s->rings),
				&s->board->rings, &at);

	if (rc == 0)
		s->rings = at;
	return rc;
}

int slots_reply_ring(struct slots *s, uint32_t slot, uint32_t cell,
		     uint32_t ticket, const struct slot_neighbours *n)
{
	struct slot_reply *r = &s->board->replies[slot].cells[cell];
	int rc = 0;

	if (n->left_len > SLOT_RING_MAX || n->right_len > SLOT_RING_MAX)
		return -EMSGSIZE;
	if (!s->rings)
		rc = make_rings(s);
	if (rc)
		return rc;
	memcpy(s->rings[slot].left, n->left, n->left_len);
	memcpy(s->rings[slot].right, n->right, n->right_len);
	r->left = (uint32_t)n->left_len;
	r->right = (uint32_t)n->right_len;
	slots_reply(s, slot, cell, ticket, 0, n->place, n->size, NULL);
	return 0;
}

void slots_changed(struct slots *s)
{
	atomic_fetch_add(&((struct slots_header *)s->map)->changed, 1);
}

void *slots_futex(struct slots *s)
{
	return &((struct slots_header *)s->map)->changed;
}
