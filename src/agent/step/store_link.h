/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of the step on this node: made with the service, and fed with messages. */
#pragma once

#include "agent/step/service_internal.h"
#include "libpmi/cause.h"
#include "libstore/store.h"

/* After the engine, whose place in the tree the store shares. 0 or a negative errno. */
int store_link_open(struct service *s);
void store_link_free(struct service *s);

/* One of struct peers_ops, with the service. */
int store_link_message(void *service, uint32_t from, struct payload *message);
void store_link_gone(struct service *s, const struct peer_gone *gone);
/* A rank of this node has ended; `end` may be NULL. */
void store_link_rank_gone(struct service *s, uint32_t rank, const struct pmi_exit *end);
