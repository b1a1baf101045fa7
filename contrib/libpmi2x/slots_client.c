/* SPDX-License-Identifier: BSD-3-Clause */
/* Enters collectives through the slot of the rank; waits on the node's futex. */
#include "config.h" /* _GNU_SOURCE */

#include "slots_client.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "entry.h"

#define WAIT_SECONDS 1 /* after it, look whether the agent lives */

struct slots_client {
	struct transport transport;
	struct conn *conn; /* tells when the agent has gone */
	void *map;
	size_t size;
	uint32_t slot;
	int wake_fd;
	const struct region *region;
	struct slots_board *board; /* read-only memory */
	const struct slot_replies *replies;

	uint32_t ticket;      /* of what is entered next; who enters has it */
	uint32_t shown;       /* bytes of records; who puts has it */
	/* Set by who enters, cleared by who completes the call. */
	atomic_bool busy[SLOT_CELLS];
	atomic_bool in_ring;  /* the board has room for one answer */
};

/* ---- mapping ---- */

/* A file that is shorter than its mapping would kill us by SIGBUS. */
static int check_place(const struct slots_place *at)
{
	struct stat st;

	if (at->memory_fd < 0 || at->wake_fd < 0 || at->size > SIZE_MAX / 2 ||
	    at->slot >= at->size / SLOT_SIZE ||
	    at->size != slots_region_size((at->size - SLOTS_HEADER_SIZE) /
					  SLOT_SIZE))
		return -EPROTO;
	if (fstat(at->memory_fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) && (uint64_t)st.st_size >= at->size ?
		       0 : -EPROTO;
}

static int find_board(struct slots_client *sc, const struct slots_place *at)
{
	uint32_t count = (at->size - SLOTS_HEADER_SIZE) / SLOT_SIZE;
	const void *board = region_bytes(at->region, at->board,
					 slots_board_size(count));

	sc->board = (struct slots_board *)board;
	if (!board || (uintptr_t)board % SLOTS_LINE ||
	    sc->board->count != count || at->slot >= count)
		return -EPROTO;
	sc->replies = &sc->board->replies[at->slot];
	return 0;
}

static int map_slots(struct slots_client *sc, const struct slots_place *at)
{
	int rc = check_place(at);

	if (!rc)
		rc = find_board(sc, at);
	if (rc)
		return rc;
	sc->size = at->size;
	sc->map = mmap(NULL, sc->size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE, at->memory_fd, 0);
	if (sc->map == MAP_FAILED) {
		sc->map = NULL;
		return -errno;
	}
	madvise(sc->map, sc->size, MADV_DONTDUMP);
	return 0;
}

void slots_client_close(struct slots_client *sc)
{
	if (!sc)
		return;
	if (sc->map)
		munmap(sc->map, sc->size);
	if (sc->wake_fd >= 0)
		close(sc->wake_fd);
	free(sc);
}

/* ---- in ---- */

static void wake_agent(struct slots_client *sc)
{
	const uint64_t one = 1;

	/* A write fails only if the eventfd is full: then the agent is being woken. */
	(void)!write(sc->wake_fd, &one, sizeof(one));
}

static uint32_t free_cell(const struct slots_client *sc)
{
	uint32_t cell = 0;

	while (cell < SLOT_CELLS && sc->busy[cell])
		cell++;
	return cell;
}

static size_t done_len(const struct entry *e)
{
	return e->ndone * sizeof(*e->done);
}

static bool fits(const struct slots_client *sc, const struct entry *e)
{
	return e->len <= SLOT_DATA_MAX - done_len(e) &&
	       free_cell(sc) < SLOT_CELLS &&
	       (e->kind != SLOT_RING || !sc->in_ring);
}

static void fill_cell(struct slots_client *sc, uint32_t cell,
		      const struct entry *e)
{
	struct slot_cell *c = slot_cell_at(sc->map, sc->slot, cell);
	unsigned char *to = slot_data_at(sc->map, sc->slot, cell);
	size_t done = done_len(e);

	if (done)
		memcpy(to, e->done, done);
	if (e->len)
		memcpy(to + done, e->data, e->len);
	c->kind = e->kind;
	c->len = (uint32_t)(done + e->len);
	c->stride = (uint32_t)e->stride;
	c->done = (uint32_t)e->ndone;
	atomic_store_explicit(&c->ticket, sc->ticket, memory_order_release);
}

/*
 * Sequentially consistent with the agent, which says its need first and looks
 * at the count then: either it sees this entry, or we see the new need.
 */
static void count_in(struct slots_client *sc, enum slot_kind kind)
{
	struct slots_header *h = sc->map;
	int32_t entered = atomic_fetch_add(&h->kinds[kind].entered, 1) + 1;

	if (entered >= atomic_load(&sc->board->need[kind]))
		wake_agent(sc);
}

static struct slots_client *slots_of(struct transport *t)
{
	return (struct slots_client *)t;
}

static void slots_skip(struct transport *t)
{
	struct slots_client *sc = slots_of(t);

	sc->ticket = slot_ticket_after(sc->ticket);
}

static int slots_enter(struct transport *t, const struct entry *e,
		       struct call *call)
{
	struct slots_client *sc = slots_of(t);
	int rc = conn_error(sc->conn);

	if (rc)
		return rc;
	if (!fits(sc, e))
		return -ENOSPC;
	call_init(call, t, entry_form(e->kind)->response);
	call->state = CALL_SENT;
	call->kind = e->kind;
	call->cell = free_cell(sc);
	call->ticket = sc->ticket;
	sc->busy[call->cell] = true;
	if (e->kind == SLOT_RING)
		sc->in_ring = true;
	fill_cell(sc, call->cell, e);
	slots_skip(t);
	count_in(sc, e->kind);
	return 0;
}

/* ---- what is shown ---- */

static struct slot_shown *shown(const struct slots_client *sc)
{
	return slot_shown_at(sc->map, sc->slot);
}

/*
 * Sequentially consistent with the agent, which says first that it waits and looks
 * then: either it sees these records, or we see that it waits.
 */
bool slots_client_show(struct slots_client *sc, const void *records, size_t len)
{
	struct slot_shown *to = shown(sc);

	if (len > SLOT_SHOWN_MAX - sc->shown)
		return false;
	memcpy(to->records + sc->shown, records, len);
	sc->shown += len;
	atomic_store(&to->len, sc->shown);
	if (atomic_load(&sc->replies->watched))
		wake_agent(sc);
	return true;
}

void slots_client_show_anew(struct slots_client *sc)
{
	struct slot_shown *to = shown(sc);

	atomic_fetch_add(&to->version, 1);
	sc->shown = 0;
	atomic_store(&to->len, 0);
	atomic_fetch_add(&to->version, 1);
}

/* ---- out ---- */

/* While the cell and the board are still this call's. */
static int take_neighbours(struct slots_client *sc,
			   const struct slot_reply *r, struct ring_place *out)
{
	const struct slot_ring *ring =
		region_bytes(sc->region, slot_ring_offset(sc->board, sc->slot),
			     sizeof(*ring));
	int rc;

	if (!ring || r->length > INT_MAX || r->offset >= r->length ||
	    r->left > SLOT_RING_MAX || r->right > SLOT_RING_MAX)
		return -EPROTO;
	out->rank = (int)r->offset;
	out->size = (int)r->length;
	rc = value_set(&out->left, ring->left, r->left);
	return rc ? rc : value_set(&out->right, ring->right, r->right);
}

static int take_outcome(struct slots_client *sc, struct call *call,
			const struct slot_reply *r)
{
	if (call->kind == SLOT_RING)
		return take_neighbours(sc, r, &call->outcome.place);
	call->outcome.offset = r->offset;
	call->outcome.length = r->length;
	return 0;
}

static void end_call(struct call *call, int error)
{
	struct slots_client *sc = slots_of(call->transport);

	call->error = error;
	call->state = CALL_DONE;
	if (call->kind == SLOT_RING)
		sc->in_ring = false;
	atomic_store_explicit(&sc->busy[call->cell], false,
			      memory_order_release);
}

/* The text of a failure is the last one's: good enough for people. */
static void report(struct slots_client *sc, const struct call *call, int error)
{
	char text[SLOT_TEXT_MAX];

	memcpy(text, sc->replies->text, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	conn_note_refusal(sc->conn, call->response, error, text);
}

static bool take_reply(struct call *call)
{
	struct slots_client *sc = slots_of(call->transport);
	const struct slot_reply *r = &sc->replies->cells[call->cell];
	int error;

	if (call->state == CALL_DONE)
		return true;
	if (atomic_load_explicit(&r->ticket, memory_order_acquire) !=
	    call->ticket)
		return false;
	error = conn_reply_error(r->rc);
	if (error)
		report(sc, call, error);
	else
		error = take_outcome(sc, call, r);
	end_call(call, error);
	return true;
}

/* The agent may have answered and then hung up: that order counts. */
static bool take_end(struct call *call)
{
	struct conn *conn = slots_of(call->transport)->conn;
	int error;

	conn_check(conn);
	error = conn_error(conn);
	if (take_reply(call))
		return true;
	if (error)
		end_call(call, error);
	return error != 0;
}

static bool slots_test(struct call *call)
{
	return take_reply(call) || take_end(call);
}

static _Atomic uint32_t *changed(const struct slots_client *sc)
{
	return &((struct slots_header *)sc->map)->changed;
}

/* False: nothing has changed for a long time. */
static bool await_change(struct slots_client *sc, uint32_t seen)
{
	const struct timespec limit = { .tv_sec = WAIT_SECONDS };

	return syscall(SYS_futex, changed(sc), FUTEX_WAIT, seen, &limit,
		       NULL, 0) == 0 || errno != ETIMEDOUT;
}

/*
 * Shows the agent the call's entry once more and wakes it, whatever the other ranks
 * have counted: a rank that writes over the slots of others may have hidden the
 * entry. An agent that has taken it already ignores its ticket.
 */
static void enter_again(struct slots_client *sc, const struct call *call)
{
	struct slot_cell *c = slot_cell_at(sc->map, sc->slot, call->cell);

	atomic_store_explicit(&c->ticket, call->ticket, memory_order_release);
	wake_agent(sc);
}

/* The agent is reminded after 1, 2, 4, ... seconds. */
static int slots_wait(struct call *call)
{
	struct slots_client *sc = slots_of(call->transport);
	uint32_t seen = atomic_load(changed(sc));
	unsigned waited = 0;

	while (!take_reply(call)) {
		if (!await_change(sc, seen)) {
			if (take_end(call))
				break;
			waited++;
			if ((waited & (waited - 1)) == 0)
				enter_again(sc, call);
		}
		seen = atomic_load(changed(sc));
	}
	return call->error;
}

static const struct transport_ops slots_ops = {
	.enter = slots_enter,
	.skip = slots_skip,
	.wait = slots_wait,
	.test = slots_test,
};

struct transport *slots_client_transport(struct slots_client *sc)
{
	return &sc->transport;
}

/* ---- life ---- */

int slots_client_open(struct slots_client **out, struct conn *conn,
		      const struct slots_place *at)
{
	struct slots_client *sc = calloc(1, sizeof(*sc));
	int rc;

	if (!sc) {
		if (at->wake_fd >= 0)
			close(at->wake_fd);
		return -ENOMEM;
	}
	sc->transport.ops = &slots_ops;
	sc->conn = conn;
	sc->region = at->region;
	sc->slot = at->slot;
	sc->wake_fd = at->wake_fd;
	sc->ticket = slot_ticket_after(0);
	rc = map_slots(sc, at);
	if (rc)
		slots_client_close(sc);
	else
		*out = sc;
	return rc;
}
