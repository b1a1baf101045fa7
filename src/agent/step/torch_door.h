/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front door of PyTorch: a server of the TCPStore protocol (libpmi/tcpstore.h) on the
 * first node, which has the keys of the step's store (libstore/store.h).
 */
#pragma once

#include "agent/step/service_internal.h"
#include "libpmi/cause.h"

/* Serve the socket in torch_fd, if there is one. 0 or a negative errno. */
int torch_door_open(struct service *s);
void torch_door_close(struct service *s);
void torch_door_free(struct service *s);

/* The port of the door; 0: it is closed. */
uint16_t torch_door_port(const struct service *s);
/* Where a client, by its argument in the store, comes from. False: it has ended. */
bool torch_door_origin(const void *client, uint32_t *position, uint16_t *port);

/* A rank of the step has failed. If PyTorch uses the store, now or later, the step ends. */
void torch_door_rank_failed(struct service *s, const char *why, int code);
/* On the first node: a client has connected, here or at the door of another node. */
void torch_door_used(struct service *s);
/*
 * A rank of this node, which may not be the first, has ended. Others may wait in the
 * TCPStore for what it was to set.
 */
void torch_door_rank_ended(struct service *s, uint32_t rank, const struct pmi_exit *end);
