/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between agents and srun (the launcher): what is not a collective.
 * A request names the position it comes from and an id that is unique
 * there; its reply carries both back. Routed along the tree by the host.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libutil/buf.h"
#include "libutil/pack.h"

enum control_type {
	CONTROL_SPAWN,     /* body: spawn_pack */
	CONTROL_PUBLISH,   /* name, text (the port) */
	CONTROL_UNPUBLISH, /* name */
	CONTROL_LOOKUP,    /* name */
	CONTROL_NAMES,     /* of PMIx: rank and name (its namespace) of who asks,
	                      text (its node's name), body: names_pack_request */
	CONTROL_ABORT,     /* rank, code, text: a rank called abort, or a node
	                      cannot go on (CONTROL_NO_RANK, CONTROL_KEY_WAITS);
	                      no reply */
	CONTROL_REPORT,    /* text for srun's stderr: why a collective failed; or
	                      code 1: a rank has ended badly after it was told. A
	                      node passes on the first it gets; no reply */
	CONTROL_NOTE,      /* text for srun's stderr: a program was refused, or was killed
	                      while others waited for it, and the step goes on. A node
	                      passes on some, each text once; no reply */
	CONTROL_READY,     /* first rank of a spawned step is there, or, with a code,
	                      never will be (text); no reply */
	CONTROL_TRACE,     /* body: what a node has recorded; no reply */
	CONTROL_STALL,     /* code (seconds), rank (1: give up): a collective or a
	                      rank waits long; text: for what, where no status
	                      tells it, or empty; no reply */
	CONTROL_STATUS,    /* id, body (libpmi/status.h): answers a query; no reply */
	CONTROL_QUERY,     /* id: from srun to all nodes: send your status */
	CONTROL_EXPIRE,    /* id (seq), rank (kind), text (why): from srun to the
	                      root: end the waiting */
	CONTROL_STARTED,   /* id (position): from a node to srun: have the ranks
	                      of that node been started? From srun: they have;
	                      as long as not it says nothing */
	CONTROL_REPLY,     /* code (0 or a PMI error), text: port, jobid or error;
	                      body, to NAMES: names_pack_answer */
	CONTROL_TYPES,
};

#define CONTROL_NO_RANK UINT32_MAX     /* of an abort: no rank has called it */
#define CONTROL_KEY_WAITS (UINT32_MAX - 1) /* ... and srun adds the ranks that wait for a key */
#define CONTROL_TEXT_MAX 4096          /* bytes of name or text */
#define CONTROL_BODY_MAX (8u << 20)    /* bytes of a spawn request or of names */
#define CONTROL_FRAME_MAX (CONTROL_BODY_MAX + 3 * CONTROL_TEXT_MAX) /* packed */

#define CONTROL_REPLY_MAX (CONTROL_TEXT_MAX + 64) /* a packed reply without body */

struct control_msg {
	enum control_type type;
	uint32_t origin; /* position of the asking node */
	uint32_t id;
	uint32_t rank;   /* the rank it is about */
	int32_t code;
	char *name;      /* NULL or malloc'ed, see control_free */
	char *text;
	const void *body; /* points into the input or the caller's memory */
	size_t body_len;
};

/*
 * Append the wire form. 0, the errors of buf_append, or -EMSGSIZE (a name, text
 * or body over its limit). NULL texts travel as empty ones.
 */
int control_pack(struct buf *b, const struct control_msg *msg);
/* 0, -EPROTO or -ENOMEM; free *msg with control_free on success. */
int control_unpack(const void *data, size_t len, struct control_msg *msg);
/* Just type and origin, for routing. 0 or -EPROTO. */
int control_peek(const void *data, size_t len, enum control_type *type,
		 uint32_t *origin);
/*
 * Just the text, NUL-terminated; needs no memory. 0 or -EPROTO.
 */
int control_text(const void *data, size_t len, char out[CONTROL_TEXT_MAX + 1]);
void control_free(struct control_msg *msg);
/*
 * Text of a rank or a node must not steer logs and terminals: every byte of the string
 * that is not printable ASCII becomes '?'.
 */
void control_printable(char *text);
/* True when srun will answer. */
bool control_has_reply(enum control_type type);
