/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A relay is a part of the head and of each inner node of the tree of control: it knows
 * which link leads to which node, and makes the bundles for the links. A route is learned
 * from the ATTACH of a node, which passes all processes on its way to the head. The ATTACH
 * of a node with the highest number counts, also if an older one comes later. Calls no system function.
 *
 * A link is named by the position of the node at its other end, or RELAY_UP.
 */
#ifndef PMI2X_DVM_RELAY_H
#define PMI2X_DVM_RELAY_H

#include <stdbool.h>

#include "dvm/core/bundle.h"
#include "dvm/core/tree_layout.h"

#define RELAY_UP TREE_HEAD /* the link towards the head */

struct dvm_relay_ops {
	/* Send a frame over a link. Must not call back. */
	void (*send)(void *arg, uint32_t link, const void *data, size_t len);
	/* An item for the process itself: on a node down, at the head up. */
	void (*take)(void *arg, uint32_t link, const struct bundle_item *i);
	/* There is no memory for a bundle: the link has to end. */
	void (*fail)(void *arg, uint32_t link);
};

struct relay_link;
struct relay_route;

struct dvm_relay {
	struct dvm_relay_ops ops;
	void *arg;
	uint32_t self; /* position, or TREE_HEAD */
	struct relay_link *links;  /* by name */
	struct relay_link *ready;  /* those with items */
	struct relay_route *routes; /* by position of the node */
	uint64_t items; /* that it has put into bundles */
};

void dvm_relay_init(struct dvm_relay *r, uint32_t self, const struct dvm_relay_ops *ops, void *arg);
void dvm_relay_free(struct dvm_relay *r);

/* A link is there. 0 or -ENOMEM. It may have been there before. */
int dvm_relay_link_open(struct dvm_relay *r, uint32_t link);
/*
 * A link has ended: forget its items. On a node, the head hears of the nodes that were
 * reached by it; at the head, call `lost` for each of them.
 */
void dvm_relay_link_close(struct dvm_relay *r, uint32_t link, const char *why,
		      void (*lost)(void *arg, uint32_t position));
bool dvm_relay_has_link(const struct dvm_relay *r, uint32_t link);
/* The number of links to children. */
uint32_t dvm_relay_children(const struct dvm_relay *r);
/* Send an item to the process at the other end of each link to a child. */
void dvm_relay_tell_children(struct dvm_relay *r, enum bundle_kind kind);

/* A frame of a link; `ip`: the address of its other end. 0, or -EPROTO or -ENOMEM. */
int dvm_relay_input(struct dvm_relay *r, uint32_t link, const void *data, size_t len,
		const uint8_t ip[16]);
/* Put an item into the bundle of a link. Without the link it is dropped. */
void dvm_relay_put(struct dvm_relay *r, uint32_t link, const struct bundle_item *i);
/* Put an item into the bundle of the link that leads to a node. False: none does. */
bool dvm_relay_put_to(struct dvm_relay *r, uint32_t position, const struct bundle_item *i);
/* True: the node is reached by a link of this process, which is *link. */
bool dvm_relay_route(const struct dvm_relay *r, uint32_t position, uint32_t *link);
void dvm_relay_forget(struct dvm_relay *r, uint32_t position);
/* Send all bundles. */
void dvm_relay_turn(struct dvm_relay *r);

#endif
