/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status of a node for srun, when it asks, and word to srun of a collective
 * that waits long.
 *
 * Who waits long is found without a clock in the hot path: before each wait of
 * the loop one comparison says whether anything is pending that was pending
 * before. Only then a timer runs. Time in which all ranks of the node are
 * stopped (a suspended step), or in which this process itself was, does not
 * count.
 */
#ifndef PMI2X_AGENT_STATUS_H
#define PMI2X_AGENT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After so long the first node wakes up, and after so long again it connects to
 * srun, so that srun can ask.
 */
#define STATUS_LINE_MS 1000

struct agent;
struct control_msg;
struct payload;

int agent_status_open(struct agent *a);
void agent_status_close(struct agent *a);
void agent_status_free(struct agent *a);

/* The way to srun is not through a parent (any more). */
void agent_status_no_parent(struct agent *a);

/* A query of srun, from above; `frame` is for the nodes below, too. */
void agent_status_query(struct agent *a, uint32_t query, struct payload *frame);
/* An order of srun, from above: end the waiting. 0 or -EPROTO. */
int agent_status_expire(struct agent *a, const struct control_msg *order);

/* Of what the nodes below say about waiting, one in a while goes on to srun. */
bool agent_status_stall_passes(struct agent *a);

#endif
