/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bundles: what crosses one link of the tree of control in a turn. A bundle has items, each
 * from the head for a node or from a node for the head. The data of an item is packed as its
 * difference from the data of the item before, if that is shorter. So the common bytes of a
 * LAUNCH or PROFILE for many nodes cross a link once. Calls no system function.
 *
 *   kind            from, to           data
 *   ATTACH          node -> head       16 bytes: the node's IP, zero in the node's own
 *                                      message; the next process on the way fills it in
 *   ATTACHED        head -> node       none
 *   DATA            both               messages of dvm_msg.h
 *   DETACHED        relay -> head      a text: why the node is not reached any more
 *   MOVED           relay -> child     none; for all nodes behind the link: attach again
 *   LEAVING         relay -> child     none; attach to another relay
 *   PARENTS         head -> relay      addresses of its ancestors, nearest first
 */
#pragma once

#include "dvm/core/dvm_msg.h"
#include "libutil/buf.h"
#include "libutil/pack.h"

#define DVM_BUNDLE 0xb0 /* the first byte of a frame; none of enum dvm_msg_type */
#define BUNDLE_MAX ((size_t)768 << 20)     /* bytes of a bundle */
#define BUNDLE_DATA_MAX ((size_t)512 << 20) /* bytes of the data of an item */

enum bundle_kind {
	BUNDLE_ATTACH,
	BUNDLE_ATTACHED,
	BUNDLE_DATA,
	BUNDLE_DETACHED,
	BUNDLE_MOVED,
	BUNDLE_LEAVING,
	BUNDLE_PARENTS,
	BUNDLE_KINDS,
};

struct bundle_item {
	enum bundle_kind kind;
	uint32_t position; /* of the node; not of MOVED and LEAVING */
	uint32_t attach;   /* how many times the node has attached; not of DATA */
	uint64_t seq;      /* of DATA, from 1; 0: not numbered */
	uint64_t ack;      /* number of DATA that its sender has received; not of relays */
	struct dvm_bytes data;
};

struct bundle {
	struct buf bytes;
	size_t last, last_len; /* data of the last item, if it was packed whole */
	struct buf previous;   /* ... and else */
	bool whole;
};

void bundle_init(struct bundle *b);
void bundle_free(struct bundle *b);
/* Forget the items. */
void bundle_clear(struct bundle *b);
/* True: there are no items. */
bool bundle_is_empty(const struct bundle *b);
/* 0, or -ENOMEM, -ENOBUFS or -EMSGSIZE; then nothing is added. */
int bundle_add(struct bundle *b, const struct bundle_item *item);

/* True: a frame is a bundle, and not a message of dvm_msg.h. */
bool bundle_is(const void *data, size_t len);

struct bundle_reader {
	struct cursor in;
	struct buf now, previous;
	struct dvm_bytes last;
};

/* Read a frame for which bundle_is() is true. bundle_reader_free() ends it. */
void bundle_reader_init(struct bundle_reader *r, const void *data, size_t len);
void bundle_reader_free(struct bundle_reader *r);
/* 1: the next item, whose data is valid until the next call; 0: none; -EPROTO or -ENOMEM. */
int bundle_next(struct bundle_reader *r, struct bundle_item *out);
