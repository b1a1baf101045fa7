/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a node for srun, when it asks, and word to srun of a collective
 * that waits long.
 *
 * Who waits long is found without a clock in the hot path: before each wait of
 * the loop one comparison says whether anything is pending that was pending
 * before. Only then a timer runs. Time in which all ranks of the node are
 * stopped (a suspended step), or in which this process itself was, does not
 * count.
 */
#ifndef PMI2X_AGENT_STATE_H
#define PMI2X_AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "libutil/payload.h"

/*
 * After so long the first node wakes up, and after so long again it connects to
 * srun, so that srun can ask.
 */
#define STATE_LINE_MS 1000
#define STALL_TICK_MAX_MS 15000

struct agent;

int agent_state_open(struct agent *a);
void agent_state_close(struct agent *a);
void agent_state_free(struct agent *a);

/* The way to srun is not through a parent (any more). */
void agent_state_no_parent(struct agent *a);

/* A query or an order of srun, from above. 0 or -EPROTO. */
int agent_state_query(struct agent *a, struct payload *frame);
int agent_state_expire(struct agent *a, struct payload *frame);

/* Of what the nodes below say about waiting, one in a while goes on to srun. */
bool agent_state_stall_passes(struct agent *a);

#endif
