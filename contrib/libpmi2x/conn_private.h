/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection inside, for conn.c and conn_responses.c. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

#define REFUSAL_MAX 640 /* of the server's words, NUL included; longer is cut */

struct conn {
	struct transport transport;
	struct pmi_fd *socket;
	enum pmi_protocol protocol;
	bool thrid;
	bool tagged;
	bool debug;
	int rank;
	uint32_t next_id;

	pthread_mutex_t lock;   /* all below, and the state of calls */
	pthread_cond_t changed; /* a call is done, or the reader's role is free */
	bool reading;           /* some thread has the reader's role */
	int broken;             /* why every call fails; 0 while it works */
	char refusal[REFUSAL_MAX];
	struct call *calls;     /* queued or sent, oldest first */
	struct call *sending;   /* of those, the one that is sent in part, or NULL */
};

/* ---- conn_responses.c; under the lock ---- */

/* Take the call, which is done, off the list. */
void conn_finish(struct conn *c, struct call *call, int error);
/* True: the call is the handshake, which reports its own failure; NULL is not. */
bool conn_is_init(const struct call *call);
/* Finish the calls whose responses have been read. 0, or why the connection is broken. */
int conn_deliver_all(struct conn *c);
