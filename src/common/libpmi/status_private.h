/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that status.c, which has the collectives, and status_keys.c share. */
#ifndef PMI2X_STATUS_PRIVATE_H
#define PMI2X_STATUS_PRIVATE_H

#include "libpmi/status.h"
#include "libutil/coder.h"

#define NODES_SHOWN 8 /* in a text */

struct step_status {
	uint32_t nodes;
	uint32_t answered;
	status_name_fn name;
	void *arg;
	struct node_status *all; /* by position; without runs: not answered */
	struct buf packed;       /* position and bytes of each, for tools */
};

/* `wait` and `keys`. */
void status_code_waits(struct coder *c, struct node_status *n);

#endif
