/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks of this node are connected to the TCPStore: their protocol does not say it. */
#pragma once

#include "agent/step/service_internal.h"

/*
 * Call for each connection of a rank of this node to that port: the rank, and the port that the
 * connection comes from; STATUS_PORT_HIDDEN: the connections of the rank cannot be seen, as it has
 * more rights than the agent, or has closed PMI_FD. Reads /proc of the ranks and of the processes
 * below them, so ask only for people.
 */
void torch_ranks_look(const struct service *s, uint16_t port,
		      void (*fn)(void *arg, uint32_t rank, uint16_t from), void *arg);
