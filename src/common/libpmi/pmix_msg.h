/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between pmi2x-pmixd, which serves a node's PMIx clients with libpmix, and
 * its host (the node's agent) over a SOCK_STREAM pair: frames of a u32 length of what
 * follows, little-endian, then a message. The reader of a message trusts it as little
 * as a stranger's. The data path is this one only: pmi2x-pmixd knows no network.
 *
 * A helper may serve several namespaces (a step has one): each message names one by the
 * number that the host has given it.
 *
 *   helper                              host
 *   HELLO                          ->
 *                                  <-   NSPACE for each namespace
 *   READY, or REFUSED and why      ->
 *   CONNECTED, FINALIZED, LOST     ->             a rank's connection comes, goes
 *   ASKS                           ->             requests wait in the helper
 *                                  <-   PMI       ADMIT is asked from here on
 *   USER                           ->             a client is of another user
 *   ADMIT id                       ->             a client waits
 *                                  <-   ADMITTED id
 *   ENTER id                       ->
 *                                  <-   ENDED id  at once or later, once
 *   FETCH id                       ->
 *                                  <-   FETCHED id
 *   NAMES id                       ->
 *                                  <-   NAMED id
 *   SPAWN id                       ->
 *                                  <-   SPAWNED id
 *                                  <-   FETCH id  from another node, for a rank of this
 *   FETCHED id                     ->
 *   ABORT id                       ->
 *                                  <-   ABORTED id
 *                                  <-   GONE      a rank of this node has gone
 *   EVENT                          ->
 *                                  <-   EVENT     of another node
 *                                  <-   DROP
 *
 * An id is the sender's; FETCH of both directions count apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/pack.h"

#define PMIX_MSG_VERSION 6
#define PMIX_SOCKET_BYTES 12 /* a client's socket: owner_pack */
#define PMIX_MSG_TEXT_MAX 1024                  /* bytes of `text`: as of a tag of MPI */
#define PMIX_MSG_BYTES_MAX ((uint32_t)1 << 30)  /* of a message */

enum pmix_msg_type {
	PMIX_MSG_HELLO = 1, /* number: PMIX_MSG_VERSION; text: version of libpmix */
	PMIX_MSG_NSPACE,    /* data: struct pmix_nspace, packed; number: ms after which people
	                       want to hear of a wait, 0: never */
	PMIX_MSG_READY,     /* the namespace's clients are let in */
	PMIX_MSG_REFUSED,   /* text: why it cannot be served */
	PMIX_MSG_DROP,
	PMIX_MSG_CONNECTED, /* rank: a client has been let in; number: 1: the rank's program
	                       before has missed a collective; data: the client's socket, or
	                       none */
	PMIX_MSG_FINALIZED, /* rank: it has said goodbye */
	PMIX_MSG_ENTER,     /* id; op; text: name of a group; data: the members
	                       (pmix_members_pack), then an entry of each of the node's
	                       ranks among them, also of those that give nothing */
	PMIX_MSG_ENDED,     /* id; status; text: why it failed; data: an entry of each member
	                       that gave some, in tree order (libcoll/layout.h) */
	PMIX_MSG_FETCH,     /* id; rank: whose; number: ms to wait until the key is there,
	                       0: answer with what there is; text: a key, "": any */
	PMIX_MSG_FETCHED,   /* id; status; text: why it failed; data: all that the rank has
	                       committed, as libpmix packs it */
	PMIX_MSG_ABORT,     /* id; rank: who asks for it; status: exit code; text */
	PMIX_MSG_GONE,      /* rank: ended without goodbye; number: 1: the step goes on
	                       without it; text: how */
	PMIX_MSG_EVENT,     /* data: what all other nodes are told, at most 64 KiB; the same
	                       from another node */
	PMIX_MSG_NAMES,     /* id; rank: who asks; data: names_pack_request */
	PMIX_MSG_NAMED,     /* id; status: nobody has answered; text: why; data:
	                       names_pack_answer */
	PMIX_MSG_SPAWN,     /* id; rank: who asks; data: spawn_pack */
	PMIX_MSG_SPAWNED,   /* id; status; text: the new namespace, or why there is none */
	PMIX_MSG_LOG,       /* number: enum log_level; text: a line */
	PMIX_MSG_ABORTED,   /* id: the host has heard it: now the rank may end */
	PMIX_MSG_PMI,       /* ranks of this node use PMI: ask for each client, whose
	                       process may not be the one that does */
	PMIX_MSG_ADMIT,     /* id; rank: its client waits; number: 1: it is refused anyway, for
	                       the rank has a client that lives: tell people of both; data:
	                       its socket; with number 1 then the other client's */
	PMIX_MSG_ADMITTED,  /* id; status: 0, or -EBUSY: it is refused */
	PMIX_MSG_LOST,      /* rank: its client has ended without goodbye some seconds ago, and
	                       the rank has not, nor has it another one */
	PMIX_MSG_ASKS,      /* number: of the node's clients whose last request has had no answer
	                       for some time; data: their ranks (pmix_members_pack). Sent anew
	                       when one of them has got an answer, or one more waits */
	PMIX_MSG_USER,      /* rank: its client says that it is of another user than the job;
	                       number: that user. libpmix refuses the client */
	PMIX_MSG_TYPES,
};

/* The operation that ENTER enters. All members give the same op, name and members. */
enum pmix_op {
	PMIX_OP_FENCE = 1,
	PMIX_OP_CONSTRUCT, /* of a group: its name; those of different names are independent */
	PMIX_OP_DESTRUCT,
	PMIX_OP_CONNECT, /* without data */
	PMIX_OP_DISCONNECT,
	PMIX_OP_END,
};

#define PMIX_NO_RANK UINT32_MAX

/* A message. Unused fields are 0, PMIX_NO_RANK for the rank, NULL. */
struct pmix_msg {
	enum pmix_msg_type type;
	uint32_t nspace;
	uint64_t id;
	uint32_t rank;
	int32_t status;   /* 0, or a negative errno */
	uint32_t number;
	enum pmix_op op;
	const char *text; /* in what was received, not terminated, any bytes */
	size_t text_len;
	const void *data; /* the same */
	size_t len;
};

/* Append it with its length before it. 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int pmix_msg_pack(struct buf *b, const struct pmix_msg *m);
/* Packs all but the `len` bytes of data, which come behind it: m->data is not read. */
int pmix_msg_pack_head(struct buf *b, const struct pmix_msg *m);
#define PMIX_MSG_LENGTH_BYTES 4 /* a message begins with them */

/* Name another namespace in a message that has been packed. */
void pmix_msg_set_nspace(void *message, uint32_t nspace);
/* The size of a message that begins with this length: all its bytes, or -EPROTO. */
int64_t pmix_msg_size(const void *length);
/*
 * The first message of `len` bytes: how many of them it takes, 0: more are needed, or
 * -EPROTO.
 */
int64_t pmix_msg_unpack(struct pmix_msg *m, const void *data, size_t len);

/*
 * The members of the operation, the beginning of ENTER's data: `ranks`, ascending, or,
 * with a count of 0, all of the namespace. Errors of buf_append.
 */
int pmix_members_pack(struct buf *b, const uint32_t *ranks, uint32_t count);
/*
 * Read it back; no more than `max`. 0, -EPROTO or -ENOMEM; free *ranks, which is NULL
 * for all. That they ascend and exist is not checked.
 */
int pmix_members_unpack(struct cursor *c, uint32_t **ranks, uint32_t *count,
			uint32_t max);

/* The entry of a rank. */
struct pmix_entry {
	uint32_t rank;
	uint32_t len;
	const void *bytes; /* in what was received */
};

/* Append it: u32 rank, u32 length, bytes. */
int pmix_entry_pack(struct buf *b, const struct pmix_entry *e);
/* Packs all but the e->len bytes, which come behind it: e->bytes is not read. */
int pmix_entry_pack_head(struct buf *b, const struct pmix_entry *e);
/* The next one; false at the end, or (cursor_ok says so) where the rest is none. */
bool pmix_entry_next(struct cursor *c, struct pmix_entry *e);
