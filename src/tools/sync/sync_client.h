/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection of a process with the store of its step. Blocks; one thread at a time.
 */
#pragma once

#include <stdint.h>

#include "libstore/store_msg.h"

#define SYNC_FOREVER (-1) /* instead of a time */

struct sync_client {
	int fd;
	uint32_t rank;
	uint32_t ranks; /* of the step */
	uint64_t last;  /* number of the last request */
};

/*
 * Connect by the environment's PMI2X_SYNC. 0; or -1, with a line about why, and what to do.
 */
int sync_connect(struct sync_client *c, char why[STORE_TEXT_MAX]);
void sync_close(struct sync_client *c);

/*
 * Ask, and wait for the answer up to a time of sync_now(). 0: *answer is to be freed with
 * sync_free; -ETIMEDOUT: the request goes on, and another one may be asked; -EPIPE: the agent
 * has gone; -EPROTO, -ENOMEM. The answer may be one that tells of an error.
 */
int sync_ask(struct sync_client *c, const struct store_request *rq, int64_t until_ms,
	     struct store_msg *answer);
void sync_free(struct store_msg *answer);

/* Milliseconds of a clock that nobody sets. */
int64_t sync_now(void);
