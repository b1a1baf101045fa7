/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entering collectives of the extension: through the slots where they fit, else over
 * the socket. After 0 the caller waits for the call and ends it. Any thread.
 */
#pragma once

#include "call.h"

struct job;

/* A fence, with what is in the batch. */
int collective_fence(struct job *job, struct call *call);
/* A gather, with some of what collective_done has noted. */
int collective_gather(struct job *job, const void *value, size_t len,
		      size_t stride, struct call *call);
/* A ring, from its start to its end; the caller frees the place's values. */
int collective_ring(struct job *job, const void *value, size_t len,
		    struct ring_place *out);
/* Nobody reads the gather at `offset` any more. */
void collective_done(struct job *job, uint64_t offset);
