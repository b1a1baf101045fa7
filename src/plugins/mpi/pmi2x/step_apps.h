/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The application of a step to which a rank belongs: a component of a het step, a line of
 * the file of srun --multi-prog, or a command of a spawn.
 */
#pragma once

#include <stdint.h>

#include "slurm_compat.h"

/* Consecutive ranks of one application, in rank order; sizes NULL: there is one only. */
struct step_apps {
	uint32_t *sizes;
	uint32_t *numbers; /* of the applications, from 0; NULL: in this order */
	uint32_t count;
};

/*
 * Applications of a step of `ranks` ranks that was not spawned. 0 or -ENOMEM;
 * step_apps_free is due in any case.
 */
int step_apps_read(struct step_apps *out, const stepd_step_rec_t *step, uint32_t ranks);
void step_apps_free(struct step_apps *a);
