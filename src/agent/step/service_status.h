/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status of a node for srun, when it asks, and word to srun of a collective
 * that waits long.
 *
 * A long wait is found without a clock in the hot path: before each wait of the loop one
 * comparison says whether anything is pending that was pending before. Only then a timer
 * runs. Time in which all ranks of the node are stopped (a suspended step), or in which
 * this process itself was, does not count.
 */
#pragma once

#include "agent/step/service_internal.h"
#include "libpmi/control.h"

/* 0 or a negative errno. */
int service_status_open(struct service *s);
void service_status_close(struct service *s);
void service_status_free(struct service *s);

/* The way to srun is not through a parent (any more). */
void service_status_no_parent(struct service *s);

/* A query of srun, from above; `frame` is for the nodes below, too. */
void service_status_query(struct service *s, uint32_t query, struct payload *frame);
/* An order of srun, from above: end the waiting. 0 or -EPROTO. */
int service_status_expire(struct service *s, const struct control_msg *order);
