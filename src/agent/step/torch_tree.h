/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agents of a step tell each other about PyTorch by keys of a space of their own in the step's
 * store: the ports that the first node keeps, the first rank that has failed, and that a client
 * of PyTorch has connected.
 */
#pragma once

#include "agent/step/service_internal.h"

/* On the first node: a rank of the step has failed, and the exit code for srun. */
typedef void torch_failed_fn(struct service *s, const char *why, int code);
/* On the first node: a client has connected, on any node. */
typedef void torch_used_fn(struct service *s);

/* 0 or a negative errno. */
int torch_tree_open(struct service *s, torch_failed_fn *failed, torch_used_fn *used);
void torch_tree_close(struct service *s);
void torch_tree_free(struct service *s);

/* This node waits for others. */
bool torch_tree_waits(const struct service *s);
/*
 * On the first node: another one uses the store, perhaps because its ranks wait for ports. If this
 * node keeps none, they learn that. Not from inside the store.
 */
void torch_tree_asked(struct service *s);
/* The port of the first node's TCPStore; 0: unknown. */
uint16_t torch_tree_port(const struct service *s);
/* Tell the first node that a client has connected here. */
void torch_tree_used(struct service *s);
/* Tell the first node. */
void torch_tree_rank_failed(struct service *s, const char *why, int code);
