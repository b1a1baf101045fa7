/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvmd in the tree of control (core/tree_node.h): its link to its parent, and those of
 * its children, which come to the listener of the mesh. In a star none of this is used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libio/frames.h"
#include "libio/link.h"

struct dvmd;

/* Read the addresses of the ancestors from standard input; blocks. 0 or a negative errno. */
int dvmd_tree_open(struct dvmd *d);
/* Before the loop. 0 or a negative errno. */
int dvmd_tree_begin(struct dvmd *d);
/* Connect to the nearest ancestor that answers, the head last. */
void dvmd_tree_connect(struct dvmd *d);
/* Try the addresses that are left. 0, or the error of the last one. */
int dvmd_tree_dial(struct dvmd *d, int error);
/* A child has come: its first frame. Takes over the link. */
void dvmd_tree_child(void *arg, struct link *l, struct payload *body);
/* Send messages to the head. 0 or a negative errno. */
int dvmd_tree_send(struct dvmd *d, const void *data, size_t len);
/* False: messages wait until the node has attached. */
bool dvmd_tree_is_attached(const struct dvmd *d);
/* The head has not answered for a third of a lease: the parent may hang. */
void dvmd_tree_try_another(struct dvmd *d, uint64_t now_ms);
/* No rank is left. `done` follows when all children have gone to others. */
void dvmd_tree_leave(struct dvmd *d, void (*done)(struct dvmd *d));
/* Send what waits for this turn of the loop. */
void dvmd_tree_flush(struct dvmd *d);
/* Close all links but that to the parent. NULL of d->tree is allowed, also below. */
void dvmd_tree_close(struct dvmd *d);
/* After the loop. */
void dvmd_tree_free(struct dvmd *d);
