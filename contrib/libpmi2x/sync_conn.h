/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection of a process with the store of its step: messages of libstore/store_msg.h to
 * the agent of its node. Blocks; one thread at a time.
 */
#pragma once

#include <stdint.h>

#include "libstore/store_msg.h"

#define SYNC_CONN_FOREVER (-1) /* instead of a time */

struct sync_conn {
	int fd;
	uint32_t rank;
	uint32_t ranks; /* of the step */
	uint64_t last;  /* number of the last request */
};

/*
 * Connect by the environment's PMI2X_SYNC. 0; or -1, with a line about why, and what to do.
 */
int sync_conn_open(struct sync_conn *c, char why[STORE_TEXT_MAX]);
void sync_conn_close(struct sync_conn *c);

/*
 * Ask, and wait for the answer up to a time of sync_conn_now(). 0: *answer is to be freed with
 * sync_conn_free; -ETIMEDOUT: the request goes on, and another one may be asked; -EPIPE: the
 * agent has gone; -EPROTO, -ENOMEM. The answer may be one that tells of an error.
 */
int sync_conn_ask(struct sync_conn *c, const struct store_request *rq, int64_t until,
		  struct store_msg *answer);
/* The first half of sync_conn_ask: `last` is the number of the request. */
int sync_conn_send(struct sync_conn *c, const struct store_request *rq);
/* The next answer, to whatever request. As sync_conn_ask. */
int sync_conn_receive(struct sync_conn *c, int64_t until, struct store_msg *answer);
/* Withdraw a request, which may be answered nevertheless. 0, -EPIPE or -ENOMEM. */
int sync_conn_cancel(struct sync_conn *c, uint64_t number);
void sync_conn_free(struct store_msg *answer);

/* Milliseconds of a clock that nobody sets. */
int64_t sync_conn_now(void);
