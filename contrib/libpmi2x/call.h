/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls: what a process has asked for and waits for, and the transports that
 * carry them. There are two of these behind one table: the socket (conn.h) takes
 * requests and collectives, the slots (slots_client.h) take collectives.
 *
 * Errors are those of conn.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpmi/message.h"
#include "libshm/slots_layout.h"
#include "value.h"

struct call;

/* A collective, and what this rank gives to it. */
struct entry {
	enum slot_kind kind;
	const void *data;     /* records, or the rank's value */
	size_t len;
	size_t stride;        /* of a gather; 0: not expanded */
	const uint64_t *done; /* with a gather: earlier ones that nobody reads */
	size_t ndone;         /* up to ENTRY_DONE_MAX */
};

#define ENTRY_DONE_MAX 32

struct ring_place {
	int rank;
	int size; /* 0: the server did not tell */
	struct value left;
	struct value right;
};

/* The result of a collective that has ended without an error. */
struct outcome {
	uint64_t offset; /* of a gather's result in the region */
	uint64_t length;
	struct ring_place place; /* of a ring; see call_end */
};

/* Embedded in a transport as its first member. */
struct transport {
	const struct transport_ops *ops;
};

struct transport_ops {
	/*
	 * Enter: 0, and then `call` is under way; -ENOSPC: it does not fit, nothing
	 * has happened; or an error, and then there is no call to end. One thread
	 * at a time.
	 */
	int (*enter)(struct transport *t, const struct entry *e,
		     struct call *call);
	/* Another transport carries the collective. NULL: nothing to do. */
	void (*skip)(struct transport *t);
	/* Implement call_wait and call_test. */
	int (*wait)(struct call *call);
	bool (*test)(struct call *call);
};

enum call_state {
	CALL_NEW,    /* being written */
	CALL_QUEUED, /* not sent whole, or kept back behind one of the same name */
	CALL_SENT,
	CALL_DONE,   /* `error` and, when that is 0, reply or outcome are set */
};

/* The caller owns it; it must not move. */
struct call {
	struct transport *transport; /* NULL: it ended at once */
	const char *response;     /* name of the response that is expected */
	enum call_state state;
	int error;
	const struct entry_form *form; /* a collective's (entry.h), else NULL */
	struct outcome outcome;
	/* Over the socket. */
	uint32_t id;
	int tag;                  /* of a barrier, where the server tells it */
	bool no_response;         /* done when it is sent */
	size_t sent;              /* bytes of the request */
	struct buf request;
	struct pmi_writer writer; /* add the fields of the request here */
	char *data;               /* memory of the fields of `reply` */
	struct pmi_message reply;
	struct call *prev, *next;
	/* Through the slots. */
	enum slot_kind kind;
	uint32_t cell;
	uint32_t ticket;
};

/* Start one on `t`; all but these fields is 0. */
void call_init(struct call *call, struct transport *t, const char *response);
/* Wait for the end. 0 or the call's error. */
int call_wait(struct call *call);
/* Look, without waiting: has it ended? */
bool call_test(struct call *call);
/*
 * Free what it holds, with the values of its place in a ring: who wants those
 * takes them out before. It must not be under way.
 */
void call_end(struct call *call);
