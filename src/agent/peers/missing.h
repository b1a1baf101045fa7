/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours that have ended before their links were made. */
#pragma once

#include "agent/peers/neighbour.h"

/* An attempt has failed. May lose the neighbour. */
void missing_tried(struct neighbour *n, int error);
/* srun says that the ranks there have been started. 0 or -EPROTO. */
int missing_started(struct neighbour *n);
/* slurmd there was asked to call it, with this result: see agent_connect_back_sent. */
void missing_called(struct neighbour *n, int rc);
/* srun is being asked about it. */
bool missing_is_asked(const struct neighbour *n);
/* The connection to srun has come up. */
void missing_srun_up(struct neighbour *n);
