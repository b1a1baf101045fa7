/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From Slurm's record of a step to the layout that the engine knows. */
#pragma once

#include "libcoll/layout.h"
#include "slurm_compat.h"

/* Names and layout of all nodes of a step, het components together. */
struct step_layout {
	struct layout *layout;
	char **names;     /* by node id */
	uint32_t nnodes;
	uint32_t node_id; /* of this node */
};

/*
 * 0, -ENOMEM, or -EINVAL: Slurm's record contradicts itself, *why then says in
 * what. Free with step_layout_free on success.
 */
int step_layout_read(struct step_layout *out, const stepd_step_rec_t *step,
		     const char **why);
void step_layout_free(struct step_layout *l);
