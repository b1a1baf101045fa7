/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front door of pmi2x-sync: processes of this node that connect to the socket of the
 * step, and use the store (libstore/store_msg.h).
 */
#pragma once

#include "agent/step/service_internal.h"

/* Serve the sockets in sync_fds, if there are any. 0 or a negative errno. */
int sync_door_open(struct service *s);
/* Call for each rank of this node that has ever been a client. */
void sync_door_each_comer(const struct service *s, void (*fn)(void *arg, uint32_t rank), void *arg);
void sync_door_close(struct service *s);
void sync_door_free(struct service *s);
