/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rank's side of the slots (libshm/slots.h): entering collectives and
 * waiting for their end through memory shared with the agent of the node.
 *
 * Collectives of a session are entered under the lock, over the slot or over
 * the socket, because the agent takes both in one order. What was entered over
 * the slot is a struct call like any other: call_wait, call_test, call_end.
 */
#ifndef PMI2X_SLOTS_CLIENT_H
#define PMI2X_SLOTS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/region.h"
#include "libshm/slots_layout.h"

struct call;
struct conn;
struct ring_place;
struct slots_client;

/* What the agent has told. */
struct slots_place {
	const struct region *region;
	uint64_t board;  /* offset in the region */
	uint64_t size;   /* bytes of the slot region */
	uint32_t slot;
	int memory_fd;   /* of the slot region; stays the caller's */
	int wake_fd;     /* taken over, also on failure */
};

/* 0; -EPROTO (what was told cannot be), -ENOMEM, or the errno of mmap. */
int slots_client_open(struct slots_client **out, struct conn *conn,
		      const struct slots_place *at);
void slots_client_close(struct slots_client *sc);

void slots_client_lock(struct slots_client *sc);
void slots_client_unlock(struct slots_client *sc);

struct slot_request {
	enum slot_kind kind;
	const char *response; /* its name in messages */
	const void *data;
	size_t len;
	size_t stride;
	const uint64_t *done;
	size_t ndone;
};

/* Is a cell free, and would `len` bytes fit? Under the lock. */
bool slots_client_fits(const struct slots_client *sc, size_t len);
/*
 * Enter. 0, and then `call` is under way; -ENOSPC: it does not fit, nothing has
 * happened; or why the connection is broken. Under the lock.
 */
int slots_client_enter(struct slots_client *sc, const struct slot_request *r,
		       struct call *call);
/* The next collective was entered over the socket, or could not be (rc). */
void slots_client_posted(struct slots_client *sc, int rc);

/*
 * A ring, from its start to its end; `len` bytes are shown to both sides. 0 and
 * a place whose values the caller frees, also when it is an error; -ENOSPC: it does
 * not fit, or one of another thread is under way, and nothing has happened.
 */
int slots_client_ring(struct slots_client *sc, const void *value, size_t len,
		      struct ring_place *out);

/* What call_wait and call_test do for such a call. */
int slots_client_wait(struct call *call);
bool slots_client_test(struct call *call);

#endif
