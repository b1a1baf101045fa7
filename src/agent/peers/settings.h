/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options that all nodes of a step must have set alike (agent_options.settings),
 * compared by two neighbours when their link is made: a text of words "option=value".
 * An empty text is not compared.
 */
#pragma once

#include "agent/peers/neighbour.h"

/* Send a frame of this type with those of this node. 0 or an error of link_send. */
int settings_send(const struct conn *c, enum frame_type type);

/* Log how those of a neighbour differ, once for this node. 0, or -EPROTO: it is no text. */
int settings_compare(struct neighbour *n, const struct payload *theirs);

/*
 * The node at this place says that it is no neighbour of this one: loses it, naming
 * what differs. 0 or -EPROTO.
 */
int settings_apart(struct neighbour *n, const struct payload *theirs);
