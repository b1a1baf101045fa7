/* SPDX-License-Identifier: BSD-3-Clause */
/* Wake-ups through the memory that a node's ranks and the agent share. */
#pragma once

#include "agent/step/service_internal.h"

/* Without a region, or where the kernel lacks something: 0, and no slots. */
int slot_wakes_open(struct service *s);
void slot_wakes_close(struct service *s);
void slot_wakes_free(struct service *s); /* after the server */

/* Operations of the engine; `service` is one. */
void slot_wakes_wake(void *service);
void slot_wakes_again(void *service);
