/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a stream of messages (libpmi/pmix_msg.h). Each comes out whole and in memory of
 * its own. That memory grows with the bytes that come, so a length alone takes none, and
 * large messages are read to where they stay. Nothing here reads: the caller does, to
 * the place that pmix_frame_room names.
 *
 *   room, read, filled, next until it returns 0, room, ...
 */
#pragma once

#include <stddef.h>

#include "libutil/budget.h"
#include "libutil/payload.h"

#define PMIX_FRAME_AHEAD 4096 /* bytes that are read before a message is known */

struct pmix_frame {
	struct budget *budget;   /* messages count there; or NULL */
	struct payload *message; /* being read; NULL: none */
	size_t size;             /* bytes it will have */
	size_t filled;           /* bytes that have come */
	size_t from, to;         /* of `ahead`: no message has them yet */
	unsigned char ahead[PMIX_FRAME_AHEAD];
};

void pmix_frame_init(struct pmix_frame *f, struct budget *budget);
/* Forget a message of which only a part has come. */
void pmix_frame_free(struct pmix_frame *f);

/* The place of the next bytes, and how many may come, which is never 0. */
size_t pmix_frame_room(struct pmix_frame *f, void **at);
/* `n` bytes have been written there. */
void pmix_frame_filled(struct pmix_frame *f, size_t n);
/*
 * The next message that is complete. 1: *out is the caller's; 0: more bytes are needed;
 * -EPROTO: its length is invalid; -ENOMEM (also: budget).
 */
int pmix_frame_next(struct pmix_frame *f, struct payload **out);
