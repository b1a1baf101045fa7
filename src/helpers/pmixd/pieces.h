/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of a message as a list of pieces: small fields that are packed here, and
 * large bytes that stay where they are.
 */
#pragma once

#include "libutil/payload.h"

struct pieces {
	struct payload_vec list;
	struct buf last; /* fields are packed into it; they come behind the list */
};

/* The fields may have `limit` bytes. */
void pieces_init(struct pieces *p, size_t limit);
void pieces_free(struct pieces *p);

/*
 * Append `data` behind the fields that have been packed, and take a reference. 0 or
 * -ENOMEM.
 */
int pieces_add(struct pieces *p, struct payload *data);
/* All of it is in the list. 0 or -ENOMEM. */
int pieces_end(struct pieces *p);
