/* SPDX-License-Identifier: BSD-3-Clause */
/* Enters collectives through the slot of the rank; waits on the node's futex. */
#include "config.h" /* _GNU_SOURCE */

#include "slots_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define WAIT_SECONDS 1 /* then look whether the agent is still there */

struct slots_client {
	struct conn *conn;
	void *map;
	size_t size;
	uint32_t slot;
	int wake_fd;
	const struct region *region;
	struct slots_board *board; /* read-only memory */
	const struct slot_replies *replies;

	pthread_mutex_t lock; /* of entering */
	uint32_t ticket;      /* of what is entered next */
	atomic_bool busy[SLOT_CELLS]; /* set under the lock, cleared without */
	atomic_bool in_ring;  /* so, too: the board has room for one answer */
};

/* ---- life ---- */

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
	sc->conn = conn;
	sc->region = at->region;
	sc->slot = at->slot;
	sc->wake_fd = at->wake_fd;
	sc->ticket = slot_ticket_after(0);
	pthread_mutex_init(&sc->lock, NULL);
	rc = map_slots(sc, at);
	if (rc)
		slots_client_close(sc);
	else
		*out = sc;
	return rc;
}

void slots_client_close(struct slots_client *sc)
{
	if (!sc)
		return;
	if (sc->map)
		munmap(sc->map, sc->size);
	if (sc->wake_fd >= 0)
		close(sc->wake_fd);
	pthread_mutex_destroy(&sc->lock);
	free(sc);
}

void slots_client_lock(struct slots_client *sc)
{
	pthread_mutex_lock(&sc->lock);
}

void slots_client_unlock(struct slots_client *sc)
{
	pthread_mutex_unlock(&sc->lock);
}

/* ---- in ---- */

static void wake_agent(struct slots_client *sc)
{
	const uint64_t one = 1;

	/* It fails only when it is full: then the agent is being woken. */
	(void)!write(sc->wake_fd, &one, sizeof(one));
}

static uint32_t free_cell(const struct slots_client *sc)
{
	uint32_t cell = 0;

	while (cell < SLOT_CELLS && sc->busy[cell])
		cell++;
	return cell;
}

bool slots_client_fits(const struct slots_client *sc, size_t len)
{
	return len <= SLOT_DATA_MAX && free_cell(sc) < SLOT_CELLS;
}

static void fill_cell(struct slots_client *sc, uint32_t cell,
		      const struct slot_request *r)
{
	struct slot_cell *c = slot_cell_at(sc->map, sc->slot, cell);
	unsigned char *to = slot_data_at(sc->map, sc->slot, cell);
	size_t done = r->ndone * sizeof(*r->done);

	if (done)
		memcpy(to, r->done, done);
	if (r->len)
		memcpy(to + done, r->data, r->len);
	c->kind = r->kind;
	c->len = (uint32_t)(done + r->len);
	c->stride = (uint32_t)r->stride;
	c->done = (uint32_t)r->ndone;
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

static void begin_call(struct slots_client *sc, struct call *call,
		       const char *response, uint32_t cell)
{
	memset(call, 0, sizeof(*call));
	pmi_message_init(&call->reply);
	call->response = response;
	call->state = CALL_SENT;
	call->conn = sc->conn;
	call->slots = sc;
	call->cell = cell;
	call->ticket = sc->ticket;
}

int slots_client_enter(struct slots_client *sc, const struct slot_request *r,
		       struct call *call)
{
	uint32_t cell = free_cell(sc);
	int rc = conn_error(sc->conn);

	if (rc)
		return rc;
	if (!slots_client_fits(sc, r->len + r->ndone * sizeof(*r->done)))
		return -ENOSPC;
	begin_call(sc, call, r->response, cell);
	sc->busy[cell] = true;
	fill_cell(sc, cell, r);
	sc->ticket = slot_ticket_after(sc->ticket);
	count_in(sc, r->kind);
	return 0;
}

void slots_client_posted(struct slots_client *sc, int rc)
{
	if (!rc)
		sc->ticket = slot_ticket_after(sc->ticket);
}

/* ---- out ---- */

static void end_call(struct call *call, int error)
{
	struct slots_client *sc = call->slots;

	call->error = error;
	call->state = CALL_DONE;
	atomic_store_explicit(&sc->busy[call->cell], false,
			      memory_order_release);
}

/* The text of a failure is the last one's: good enough for people. */
static void report(const struct call *call)
{
	const struct slots_client *sc = call->slots;
	char text[SLOT_TEXT_MAX];

	memcpy(text, sc->replies->text, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	conn_note_refusal(sc->conn, call->response, call->error, text);
}

static bool take_reply(struct call *call)
{
	const struct slot_reply *r = &call->slots->replies->cells[call->cell];

	if (call->state == CALL_DONE)
		return true;
	if (atomic_load_explicit(&r->ticket, memory_order_acquire) !=
	    call->ticket)
		return false;
	call->offset = r->offset;
	call->length = r->length;
	end_call(call, conn_reply_error(r->rc));
	if (call->error)
		report(call);
	return true;
}

/* The agent may have answered and then hung up: that order counts. */
static bool take_end(struct call *call)
{
	int error;

	conn_check(call->conn);
	error = conn_error(call->conn);
	if (take_reply(call))
		return true;
	if (error)
		end_call(call, error);
	return error != 0;
}

bool slots_client_test(struct call *call)
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
 * Wakes the agent, whatever the others counted. Who writes over the slots of
 * others may have hidden this entry; to one that was taken its ticket says no more.
 */
static void enter_again(struct slots_client *sc, const struct call *call)
{
	struct slot_cell *c = slot_cell_at(sc->map, sc->slot, call->cell);

	atomic_store_explicit(&c->ticket, call->ticket, memory_order_release);
	wake_agent(sc);
}

/* The agent is reminded after 1, 2, 4, ... seconds. */
int slots_client_wait(struct call *call)
{
	struct slots_client *sc = call->slots;
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

/* ---- ring ---- */

static int enter_ring(struct slots_client *sc, const void *value, size_t len,
		      struct call *call)
{
	const struct slot_request r = {
		.kind = SLOT_RING,
		.response = "ring-response",
		.data = value,
		.len = len,
	};
	int rc = -ENOSPC;

	slots_client_lock(sc);
	if (!sc->in_ring)
		rc = slots_client_enter(sc, &r, call);
	if (!rc)
		sc->in_ring = true;
	slots_client_unlock(sc);
	return rc;
}

/* The cell may be in use again, but not for a ring: its lengths still stand. */
static int take_neighbours(const struct slots_client *sc,
			   const struct call *call, struct ring_place *out)
{
	const struct slot_reply *r = &sc->replies->cells[call->cell];
	const struct slot_ring *ring =
		region_bytes(sc->region, slot_ring_offset(sc->board, sc->slot),
			     sizeof(*ring));
	int rc;

	if (!ring || call->length > INT_MAX || call->offset >= call->length ||
	    r->left > SLOT_RING_MAX || r->right > SLOT_RING_MAX)
		return -EPROTO;
	out->rank = (int)call->offset;
	out->size = (int)call->length;
	rc = value_set(&out->left, ring->left, r->left);
	return rc ? rc : value_set(&out->right, ring->right, r->right);
}

int slots_client_ring(struct slots_client *sc, const void *value, size_t len,
		      struct ring_place *out)
{
	struct call call;
	int rc = enter_ring(sc, value, len, &call);

	if (rc)
		return rc;
	rc = slots_client_wait(&call);
	if (!rc)
		rc = take_neighbours(sc, &call, out);
	sc->in_ring = false;
	call_end(&call);
	return rc;
}
