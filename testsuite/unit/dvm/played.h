/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A head whose nodes and clients are played by the test: its messages go to the test, and
 * the test sends what a node or client would. Its journal is a buffer, with which another
 * head can go on.
 */
#pragma once

#include <jansson.h>

#include "idle.h"
#include "requests.h"
#include "sealed.h"
#include "unit.h"

#define CLIENT 1
#define PLAYED_NODES 8
#define JOURNAL_MAX ((size_t)64 << 20)

/*
 * The first member of a test's bed. Before played_start the test sets options, cores, and
 * perhaps now and the two functions; the rest is zero.
 */
struct played {
	struct dvm_head *head;
	struct dvm_time now;
	struct dvm_head_options options; /* of the next head */
	uint32_t cores;                  /* of each node */
	/* Each message of a frame to a node; NULL: ignored. */
	void (*message)(void *bed, uint32_t node, const struct dvm_msg *m);
	/* Each event to a client; true: it is the answer. NULL: each is. */
	bool (*event)(void *bed, json_t *event);
	json_t *answer;                  /* the last */
	struct buf journal;
	enum durable_wait wait;          /* the strongest of a record */
	bool full;                       /* no record can be written */
	bool down;                       /* the head has ended */
	bool broken[PLAYED_NODES];       /* links that the head has broken off */
};

/*
 * Make a head, and options.nodes nodes that register with it. With `ops`, operations that
 * are not played; NULL: none. `journal`: the head keeps one.
 */
void played_start(struct played *p, const struct dvm_head_ops *ops, bool journal);
void played_end(struct played *p);
/* A bed of this size, which is zero, and ends with the test. It begins with a struct played. */
void *played_new(size_t size);
/*
 * The head is lost, and another one goes on with the first `len` bytes of the journal,
 * after it has lost its first `lost` nodes.
 */
struct dvm_resumed played_next_head(struct played *p, size_t len, bool once, uint32_t lost);

/* A request in JSON, with ' in place of ", comes from CLIENT; then the head has a turn. */
void ask(struct played *p, const char *fmt, ...);
/* A number of the answer to the request `status`. */
json_int_t status(struct played *p, const char *key);
/* A message comes from a node; then the head has a turn. */
void say(struct played *p, uint32_t node, const struct dvm_msg *m);
/* A node registers, or is lost; then the head has a turn. */
void come(struct played *p, uint32_t node);
void lose(struct played *p, uint32_t node, const char *why);
void turn(struct played *p);
