/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from connections with neighbours, and goodbyes. */
#pragma once

#include "agent/peers/neighbour.h"

/* Operations of all connections with neighbours; their argument is the struct conn. */
extern const struct link_ops links_conn_ops;

/* A frame that has come over a way of the host's. 0 or -EPROTO. */
int links_frame(struct neighbour *n, enum frame_type type, const void *head,
		size_t head_len, struct payload *body);
/*
 * Tells how many of its requests we have passed on: the rest will not be. A child's way
 * stays open, for it may have to answer later. It has a connection.
 */
void links_say_goodbye(struct neighbour *n);
/* Answer the goodbye of the parent, if it still waits for that. */
void links_answer(struct neighbour *n);
